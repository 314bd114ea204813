//! `oxshmem run`: jobs, their output, their status and their options.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use oxshmem_topo::{CpuSet, Machine, usable_cpus};

use crate::process::{BINARY, command, finish, outcome, run, stdout_of};

#[test]
fn run_exits_with_the_first_failing_status_and_names_the_pe() {
    let script = "test $OXSHMEM_RANK != 2 || exit 7; exec sleep 100";
    let (status, _, stderr) = run(&["run", "-n", "4", "sh", "-c", script]);
    assert_eq!(status, Some(7), "{stderr}");
    assert!(stderr.contains("PE 2") && stderr.contains('7'), "{stderr}");

    let (status, _, stderr) = run(&["run", "-n", "2", "sh", "-c", "kill -9 $$"]);
    assert_eq!(status, Some(128 + 9), "{stderr}");
    assert!(stderr.contains("SIGKILL"), "{stderr}");

    assert_eq!(
        run(&["run", "-n", "3", "true"]),
        (Some(0), String::new(), String::new())
    );
}

#[test]
fn run_ends_a_job_that_takes_too_long() {
    let (status, _, stderr) = run(&["run", "-n", "2", "--timeout", "100ms", "sleep", "100"]);
    assert_eq!(status, Some(124), "{stderr}");
    assert!(stderr.contains("PE"), "{stderr}");
}

#[test]
fn run_tags_lines_and_passes_arguments_on_raw() {
    let mut lines: Vec<String> = stdout_of(&[
        "run",
        "-n",
        "3",
        "--tag-output",
        "echo",
        "--tag-output",
        "-n",
        "--",
        "x",
    ])
    .lines()
    .map(str::to_owned)
    .collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "[0] --tag-output -n -- x",
            "[1] --tag-output -n -- x",
            "[2] --tag-output -n -- x"
        ]
    );
    assert_eq!(stdout_of(&["run", "--", "echo", "-n", "x"]), "x");
}

#[test]
fn run_gives_the_input_to_pe_0_alone() {
    let script = format!("echo word | {BINARY} run -n 3 --tag-output sh -c 'echo got $(cat)'");
    let output = finish(Command::new("sh").args(["-c", &script]));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] got word", "[1] got", "[2] got"]);
}

#[test]
fn run_refuses_what_is_no_program_as_shells_do() {
    let (status, _, stderr) = run(&["run", "-n", "4", "no-such-program-anywhere"]);
    assert_eq!(status, Some(127), "{stderr}");
    assert!(
        stderr.contains("no-such-program-anywhere") && stderr.contains("PATH"),
        "{stderr}"
    );

    let (status, _, stderr) = run(&["run", "/no/such/program"]);
    assert_eq!(status, Some(127), "{stderr}");

    // Tests run in the package's folder.
    let (status, _, stderr) = run(&["run", "Cargo.toml"]);
    assert_eq!(status, Some(127), "{stderr}");
    assert!(stderr.contains("./Cargo.toml"), "{stderr}");

    let (status, _, stderr) = run(&["run", "./Cargo.toml"]);
    assert_eq!(status, Some(126), "{stderr}");
    assert!(stderr.contains("chmod"), "{stderr}");

    // The file exists and may be executed, but its interpreter is missing.
    let name = format!("oxshmem-no-interpreter-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (status, _, stderr) = run(&["run", "-n", "2", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(status, Some(126), "{stderr}");
    assert!(stderr.contains("cannot start"), "{stderr}");
}

#[test]
fn what_nobody_reads_of_a_complaint_changes_no_status() {
    for (args, expected) in [
        (&["run", "/nowhere/none"][..], 127),
        (&["info", "--explain", "7"], 1),
        (&["litmus", "none-of-these"], 2),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command(args).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{args:?}");
    }
}

#[test]
fn run_refuses_bad_arguments_with_a_remedy() {
    for (args, remedy) in [
        (&["run", "-n", "0", "true"][..], "1 to 4096"),
        (&["run", "-n", "99999999", "true"], "1 to 4096"),
        (&["run", "-n", "two", "true"], "1 to 4096"),
        (&["run", "--bind", "socket", "true"], "none, core, numa"),
        (&["run", "--timeout", "soon", "true"], "90s"),
        (&["run", "-n", "2"], "<PROG>"),
        (&["run", "--tag", "true"], "--tag-output"),
        (&["run", "--bind-to", "board", "true"], "none, core, numa"),
        (
            &["run", "--map-by", "ppr:2:node", "true"],
            "--hosts a:2,b:2",
        ),
        (&["run", "-N", "2", "true"], "--hosts a:2,b:2"),
    ] {
        let (status, stdout, stderr) = run(args);
        assert_eq!(
            (status, stdout.as_str()),
            (Some(2), ""),
            "{args:?}: {stderr}"
        );
        assert!(stderr.contains(remedy), "{args:?}: {stderr}");
    }
}

#[test]
fn run_takes_the_options_of_another_launcher_and_says_which_mean_nothing() {
    let line = "run --allow-run-as-root --oversubscribe -q -np 2 --bind-to none -x GIVEN=3 sh -c";
    let mut line: Vec<&str> = line.split_whitespace().collect();
    let told = |line: &[&str]| {
        let (status, stdout, stderr) = run(line);
        assert_eq!((status, stdout.as_str()), (Some(0), "3\n3\n"), "{stderr}");
        stderr
    };
    line.push("echo $GIVEN");
    assert_eq!(told(&line), "");
    let tuned = ["--mca", "btl", "self", "--map-by", "core"];
    line.splice(1..1, tuned);
    assert_eq!(
        told(&line),
        "oxshmem run: this has no meaning here: --mca btl self, --map-by core\n"
    );
}

#[test]
fn run_binds_each_pe_to_a_core() {
    let stdout = stdout_of(&[
        "run",
        "-n",
        "3",
        "--bind",
        "core",
        "--tag-output",
        "grep",
        "Cpus_allowed_list",
        "/proc/self/status",
    ]);
    assert_eq!(stdout.lines().count(), 3, "{stdout}");
    let usable = usable_cpus().unwrap().allowed;
    for line in stdout.lines() {
        let cpus: CpuSet = line.split_whitespace().last().unwrap().parse().unwrap();
        // All CPUs of one core that this process may use.
        let cores = Machine::discover().unwrap().cores;
        let exactly = cores
            .iter()
            .filter(|core| core.cpus.intersection(&usable) == cpus)
            .count();
        assert_eq!(exactly, 1, "{stdout}");
    }
}

/// Runs each host's agent here, with the host's name in a variable.
const HERE: &str = "env AT={host}";

#[test]
fn run_deals_pes_out_to_hosts() {
    let shell = "echo $OXSHMEM_RANK at $AT, $OXSHMEM_LOCAL_RANK there, $GIVEN $PASSED";
    let arguments = [
        "run",
        "--hosts",
        "a:2,b:2",
        "-n",
        "3",
        "--rsh",
        HERE,
        "-x",
        "GIVEN=1 2",
        "-x",
        "PASSED",
        "sh",
        "-c",
        shell,
    ];
    let (status, stdout, stderr) = outcome(command(&arguments).env("PASSED", "3"));
    assert_eq!(status, Some(0), "{stderr}");
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "0 at a, 0 there, 1 2 3",
            "1 at a, 1 there, 1 2 3",
            "2 at b, 0 there, 1 2 3"
        ]
    );

    let file = std::env::temp_dir().join(format!("oxshmem-hosts-{}", std::process::id()));
    std::fs::write(&file, "# two\na slots=1\nb:1\n").unwrap();
    let name = file.to_str().unwrap();
    let (status, stdout, stderr) = outcome(
        command(&[
            "run",
            "--hostfile",
            name,
            "--bind",
            "core",
            "sh",
            "-c",
            "echo $AT",
        ])
        .env("OXSHMEM_RSH", HERE),
    );
    std::fs::remove_file(&file).unwrap();
    assert_eq!(status, Some(0), "{stderr}");
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a", "b"]);
}

#[test]
fn the_tasks_of_an_allocation_are_started_unless_a_number_is_given() {
    let count = |options: &[&str]| {
        let arguments = [&["run"][..], options, &["echo", "ran"]].concat();
        let mut command = command(&arguments);
        command
            .env("SLURM_NTASKS", "3")
            .env("SLURM_JOB_NUM_NODES", "1");
        let (status, stdout, stderr) = outcome(&mut command);
        assert_eq!((status, stderr.as_str()), (Some(0), ""));
        stdout.lines().count()
    };
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["-n", "2"]), 2);
}

#[test]
fn worlds_span_the_hosts_of_a_run() {
    let arguments = ["run", "--hosts", "a:2,b:1", "--rsh", HERE, BINARY, "info"];
    let info = stdout_of(&arguments);
    assert!(info.contains("PEs           3, by "), "{info}");
    assert!(info.contains("PE 0-2 to PE 0-2: "), "{info}");
}

#[test]
fn run_names_the_host_that_fails_it() {
    let unreachable = "sh -c 'test {host} != b || exit 255; exec \"$@\"' sh";
    let arguments = [
        "run",
        "--hosts",
        "a:1,b:1",
        "--rsh",
        unreachable,
        "echo",
        "ran",
    ];
    let (status, stdout, stderr) = run(&arguments);
    assert_eq!((status, stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(stderr.contains("host b: "), "{stderr}");

    let arguments = [
        "run",
        "--hosts",
        "a:2",
        "--rsh",
        HERE,
        "no-such-program-anywhere",
    ];
    let (status, _, stderr) = run(&arguments);
    assert_eq!(status, Some(127), "{stderr}");
    assert!(
        stderr.contains("host a: ") && stderr.contains("no-such-program-anywhere"),
        "{stderr}"
    );

    for (args, remedy) in [
        (&["run", "--rsh", "ssh", "true"][..], "--hosts"),
        (&["run", "--hosts", "a:2", "-n", "3", "true"], "2 places"),
        (&["run", "--hosts", "a:none", "true"], "name:4"),
        (
            &["run", "--hosts", "a", "-x", "NO_SUCH_VARIABLE", "true"],
            "NO_SUCH_VARIABLE=VALUE",
        ),
        (
            &["run", "--hosts", "a", "--hostfile", "b", "true"],
            "--hostfile",
        ),
        (
            &["run", "--hostfile", "/no/such/file", "true"],
            "/no/such/file",
        ),
        (
            &["run", "--hostfile", "/dev/zero", "true"],
            "longer than 16 MiB",
        ),
    ] {
        let (status, stdout, stderr) = run(args);
        assert!(!matches!(status, None | Some(0)), "{args:?}");
        assert_eq!(stdout, "");
        assert!(stderr.contains(remedy), "{args:?}: {stderr}");
    }
}
