//! Jobs on several hosts. All are this one, reached by commands that stand for ssh.

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Duration;

use crate::Test;
use crate::job::{Finished, Job, kill, until};

pub const TESTS: &[Test] = &[
    (
        "ranks_are_dealt_out_to_hosts_in_order",
        ranks_are_dealt_out_to_hosts_in_order,
    ),
    ("pes_of_several_hosts_meet", pes_of_several_hosts_meet),
    (
        "hosts_get_folder_and_settings_but_keep_their_own",
        hosts_get_folder_and_settings_but_keep_their_own,
    ),
    (
        "a_failing_pe_is_named_with_its_host",
        a_failing_pe_is_named_with_its_host,
    ),
    (
        "aborts_and_timeouts_end_all_hosts",
        aborts_and_timeouts_end_all_hosts,
    ),
    (
        "a_host_that_cannot_be_reached_is_named_and_no_pe_runs",
        a_host_that_cannot_be_reached_is_named_and_no_pe_runs,
    ),
    (
        "a_host_that_does_not_answer_is_given_up",
        a_host_that_does_not_answer_is_given_up,
    ),
    (
        "a_remote_shell_may_greet_but_must_pass_input_on",
        a_remote_shell_may_greet_but_must_pass_input_on,
    ),
    (
        "a_program_that_one_host_lacks_is_named_with_that_host",
        a_program_that_one_host_lacks_is_named_with_that_host,
    ),
    (
        "a_launcher_out_of_reach_is_told_with_its_remedy",
        a_launcher_out_of_reach_is_told_with_its_remedy,
    ),
    ("each_host_binds_its_own_pes", each_host_binds_its_own_pes),
    ("no_command_shows_the_key", no_command_shows_the_key),
    (
        "input_goes_to_pe_0_of_the_first_host",
        input_goes_to_pe_0_of_the_first_host,
    ),
    (
        "lines_of_several_hosts_stay_whole",
        lines_of_several_hosts_stay_whole,
    ),
    (
        "a_failure_is_seen_while_nobody_reads_the_output",
        a_failure_is_seen_while_nobody_reads_the_output,
    ),
    (
        "signals_reach_the_pes_of_all_hosts",
        signals_reach_the_pes_of_all_hosts,
    ),
    (
        "a_signal_before_all_hosts_answer_calls_the_job_off",
        a_signal_before_all_hosts_answer_calls_the_job_off,
    ),
    (
        "killing_an_agent_ends_the_job_and_names_the_host",
        killing_an_agent_ends_the_job_and_names_the_host,
    ),
    (
        "an_agent_that_loses_its_launcher_ends_its_pes",
        an_agent_that_loses_its_launcher_ends_its_pes,
    ),
    (
        "killing_the_launcher_of_several_hosts_leaves_nothing",
        killing_the_launcher_of_several_hosts_leaves_nothing,
    ),
];

/// Runs the agent here, with the host's name in a variable.
pub const ENV: &str = "env AT={host}";
/// As ssh does: the agent is no child of the command, and no signal to that reaches it.
const APART: &str = "sh -c 'setsid \"$@\"; exit $?' sh env AT={host}";

fn start(rsh: &str, args: &str) -> Job {
    let (mut command, mark) = Job::command(args);
    command.env("OXSHMEM_RSH", rsh);
    Job::of((command, mark))
}

fn run(rsh: &str, args: &str) -> Finished {
    start(rsh, args).finish()
}

fn lines(finished: &Finished) -> Vec<&str> {
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
    let mut lines: Vec<_> = finished.stdout.lines().collect();
    lines.sort_unstable();
    lines
}

fn ranks_are_dealt_out_to_hosts_in_order() {
    let role = "environment AT OXSHMEM_RANK OXSHMEM_LOCAL_RANK OXSHMEM_SIZE OXSHMEM_RSH";
    let finished = run(
        ENV,
        &format!("launch 4 --hosts a:2,b:1,a:1 --tag -- {role}"),
    );
    let mut expected = Vec::new();
    for (rank, host, local) in [(0, 'a', 0), (1, 'a', 1), (2, 'b', 0), (3, 'a', 2)] {
        expected.extend([
            format!("[{rank}] AT={host}"),
            format!("[{rank}] OXSHMEM_LOCAL_RANK={local}"),
            format!("[{rank}] OXSHMEM_RANK={rank}"),
            format!("[{rank}] OXSHMEM_RSH=unset"),
            format!("[{rank}] OXSHMEM_SIZE=4"),
        ]);
    }
    assert_eq!(lines(&finished), expected);
    assert_eq!(finished.stderr, "");
}

fn pes_of_several_hosts_meet() {
    for role in ["empty", "descriptors"] {
        let finished = run(ENV, &format!("launch 5 --hosts a:2,b:2,c:1 -- {role}"));
        assert_eq!(finished.status.code(), Some(0), "{finished:?}");
        assert_eq!(finished.stderr, "");
    }
}

fn hosts_get_folder_and_settings_but_keep_their_own() {
    let names = "OXSHMEM_A SHMEM_B OTHER GIVEN OXSHMEM_HOST_ID";
    let (mut command, mark) = Job::command(&format!(
        "launch 1 --hosts a:1 --env GIVEN=yes -- environment {names}"
    ));
    // Nothing of this process's variables but what the agent gets.
    let rsh = format!("env -i LAUNCHER_TEST_MARK={mark} AT={{host}}");
    command
        .env("OXSHMEM_RSH", rsh)
        .env("OXSHMEM_A", "two words; $HOME\n'")
        .env("SHMEM_B", "b")
        .env("OTHER", "other")
        .env("OXSHMEM_HOST_ID", "launcher's");
    let finished = Job::of((command, mark)).finish();
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
    assert_eq!(
        finished.stdout,
        "OXSHMEM_A=two words; $HOME\n'\nSHMEM_B=b\nOTHER=unset\nGIVEN=yes\nOXSHMEM_HOST_ID=unset\n"
    );

    let finished = run("env -C / AT={host}", "launch 2 --hosts a:1,b:1 -- folder");
    let here = std::env::current_dir().unwrap();
    let here = here.to_str().unwrap();
    assert_eq!(lines(&finished), [here, here]);
}

fn a_failing_pe_is_named_with_its_host() {
    let finished = run(ENV, "launch 3 --hosts a:2,b:1 -- exit 2 7");
    assert_eq!(finished.status.code(), Some(7), "{finished:?}");
    assert!(
        finished.stderr.contains("oxshmem run: PE 2 (pid ")
            && finished
                .stderr
                .contains(" on b) exited with status 7; ending the other PEs"),
        "{finished:?}"
    );
    // The others fail because of it, maybe before its end is known.
    let finished = run(ENV, "launch 4 --hosts a:2,b:2 -- crash 3 9");
    assert_eq!(finished.status.code(), Some(128 + 9), "{finished:?}");
    assert!(finished.stderr.contains(" on b) was killed by signal 9"));
    assert_eq!(finished.stderr.matches("oxshmem run:").count(), 1);
}

fn aborts_and_timeouts_end_all_hosts() {
    for rank in [0, 2] {
        let finished = run(ENV, &format!("launch 3 --hosts a:1,b:2 -- abort {rank} 42"));
        assert_eq!(finished.status.code(), Some(42), "{finished:?}");
        let line = format!("PE {rank} aborted the job with status 42: told so by the test");
        assert!(finished.stderr.contains(&line), "{finished:?}");
    }
    let finished = run(ENV, "launch 3 --hosts a:1,b:2 --timeout 1500 -- stubborn");
    assert_eq!(finished.status.code(), Some(124), "{finished:?}");
    assert!(
        finished.stderr.contains("PEs 0, 1 and 2 still running"),
        "{finished:?}"
    );
}

fn a_host_that_cannot_be_reached_is_named_and_no_pe_runs() {
    let rsh = "sh -c 'test {host} != b || { echo no route to b >&2; exit 255; }; exec \"$@\"' sh";
    let finished = run(rsh, "launch 3 --hosts a:2,b:1 -- text ran");
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    assert_eq!(finished.stdout, "");
    for part in [
        "oxshmem run: host b: no route to b\n",
        "oxshmem run: host b: `sh -c",
        "exited with status 255 before oxshmem answered there",
        "--rsh",
    ] {
        assert!(finished.stderr.contains(part), "{part}: {finished:?}");
    }

    let finished = run(
        "env no-such-program {host}",
        "launch 1 --hosts a:1 -- empty",
    );
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    let part = "install oxshmem at the same path on all hosts";
    assert!(finished.stderr.contains(part), "{finished:?}");

    let finished = run("no-such-shell", "launch 1 --hosts a:1 -- empty");
    assert_eq!(finished.status.code(), Some(99), "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("\"no-such-shell\", which is to reach host a"),
        "{finished:?}"
    );
}

fn a_host_that_does_not_answer_is_given_up() {
    let rsh = "sh -c 'test {host} != b || exec sleep 1000; exec \"$@\"' sh";
    let finished = run(rsh, "launch 2 --hosts a:1,b:1 --deadline 3000 -- empty");
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    let part = "host b: no answer within 3s from `sh -c";
    assert!(finished.stderr.contains(part), "{finished:?}");
}

fn a_remote_shell_may_greet_but_must_pass_input_on() {
    let greets = "sh -c 'echo Welcome to {host}; exec \"$@\"' sh";
    let finished = run(greets, "launch 2 --hosts a:1,b:1 -- text ran");
    assert_eq!(lines(&finished), ["ran", "ran"]);

    let deaf = "sh -c 'exec \"$@\" </dev/null' sh env AT={host}";
    let finished = run(deaf, "launch 1 --hosts a:1 -- empty");
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    let part = "must pass its input on";
    assert!(finished.stderr.contains(part), "{finished:?}");

    let talks = "sh -c 'exec yes {host}' sh";
    let finished = run(talks, "launch 1 --hosts a:1 -- empty");
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    let part = "prints something else than oxshmem's agent does";
    assert!(finished.stderr.contains(part), "{finished:?}");
}

fn a_program_that_one_host_lacks_is_named_with_that_host() {
    let finished = run(
        ENV,
        "launch 2 --hosts a:1,b:1 --program /no/such/program --",
    );
    assert_eq!(finished.status.code(), Some(127), "{finished:?}");
    assert!(finished.stderr.contains("/no/such/program"), "{finished:?}");

    let folder = std::env::temp_dir().join(format!("oxshmem-hosts-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("a")).unwrap();
    symlink("/bin/sleep", folder.join("a/only-on-a")).unwrap();
    let rsh = format!("env PATH={}/{{host}}", folder.display());
    let finished = run(&rsh, "launch 2 --hosts a:1,b:1 --program only-on-a -- 1000");
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(finished.status.code(), Some(127), "{finished:?}");
    let part = "host b: cannot start \"only-on-a\" as PE 1";
    assert!(finished.stderr.contains(part), "{finished:?}");
    assert!(
        finished.stderr.contains("ending the other PEs"),
        "{finished:?}"
    );

    let finished = run(ENV, "launch 1 --hosts a:1 --program /etc/passwd --");
    assert_eq!(finished.status.code(), Some(126), "{finished:?}");
}

fn a_launcher_out_of_reach_is_told_with_its_remedy() {
    let finished = run(
        ENV,
        "launch 1 --hosts a:1 --hub 127.77.0.1.invalid -- empty",
    );
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    for part in ["host a: ", "127.77.0.1.invalid", "OXSHMEM_HUB_ADDRESS"] {
        assert!(finished.stderr.contains(part), "{part}: {finished:?}");
    }
    let finished = run(ENV, "launch 2 --hosts a:1,b:1 --hub localhost -- empty");
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
}

fn each_host_binds_its_own_pes() {
    let finished = run(ENV, "launch 2 --hosts a:1,b:1 --bind 0 -- cpus");
    assert_eq!(
        lines(&finished),
        [
            "rank 0 Cpus_allowed_list:\t0",
            "rank 1 Cpus_allowed_list:\t0"
        ]
    );
    let finished = run(ENV, "launch 2 --hosts a:1,b:1 --bind nowhere -- cpus");
    assert_eq!(finished.status.code(), Some(125), "{finished:?}");
    let part = "this host has no CPU for that";
    assert!(finished.stderr.contains(part), "{finished:?}");
}

fn no_command_shows_the_key() {
    let mut job = start(APART, "launch 2 --hosts a:1,b:1 -- hang");
    let _output = job.wait_ready(2);
    let processes = job.processes();
    let variable = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        let text = String::from_utf8_lossy(&environment).into_owned();
        let mut variables = text.split('\0');
        variables.find_map(|set| set.strip_prefix("OXSHMEM_JOB_KEY=").map(str::to_owned))
    };
    let is_pe = |args: &str| args.contains(" pe ");
    let key = processes.iter().find(|(_, args)| is_pe(args));
    let key = variable(key.unwrap().0).unwrap();
    for (pid, args) in &processes {
        assert!(!args.contains(&key), "{args}");
        if !is_pe(args) && !args.contains("sleep") {
            assert_eq!(variable(*pid), None, "{args}");
        }
    }
    job.signal(libc::SIGTERM);
    job.wait();
    job.expect_nothing_left();
}

fn input_goes_to_pe_0_of_the_first_host() {
    let (mut command, mark) = Job::command("launch 2 --hosts a:1,b:1 -- cat");
    command.env("OXSHMEM_RSH", ENV).stdin(Stdio::piped());
    let mut job = Job::of((command, mark));
    let mut input = job.launcher.stdin.take().unwrap();
    let text = "x".repeat(300_000);
    let writer = std::thread::spawn({
        let text = text.clone();
        move || input.write_all(text.as_bytes()).unwrap()
    });
    let finished = job.finish();
    writer.join().unwrap();
    let expected = [
        format!("rank 0 read {text:?}"),
        "rank 1 read \"\"".to_owned(),
    ];
    assert!(lines(&finished) == expected);
}

fn lines_of_several_hosts_stay_whole() {
    let finished = run(ENV, "launch 3 --hosts a:2,b:1 -- lines 2000 300");
    let all = lines(&finished);
    assert_eq!(all.len(), 6000);
    for letter in ["a", "b", "c"] {
        let line = letter.repeat(300);
        assert_eq!(all.iter().filter(|some| **some == line).count(), 2000);
    }
}

fn a_failure_is_seen_while_nobody_reads_the_output() {
    // Rank 0 writes more than anything on the way holds; rank 1 is killed while that is stuck.
    let mut job = start(ENV, "launch 2 --hosts a:1,b:1 -- endless");
    let mut first = [0; 1];
    let mut output = job.launcher.stdout.take().unwrap();
    output.read_exact(&mut first).unwrap();
    let mut victim = None;
    until("PE 1 runs", || {
        let on_b = |pid: u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains("OXSHMEM_RANK=1")
        };
        let found = job.processes().into_iter();
        victim = found.map(|(pid, _)| pid).find(|pid| on_b(*pid));
        victim.is_some()
    });
    kill(victim.unwrap(), libc::SIGKILL);
    let mut stderr = job.launcher.stderr.take().unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).unwrap();
    assert!(line.contains(" on b) was killed by signal 9"), "{line}");
    drop(output);
    job.wait();
    job.expect_nothing_left();
}

fn signals_reach_the_pes_of_all_hosts() {
    for rsh in [ENV, APART] {
        let mut job = start(rsh, "launch 3 --hosts a:2,b:1 -- catch 12");
        let mut output = job.wait_ready(3);
        job.signal(libc::SIGUSR2);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let mut lines: Vec<_> = rest.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            ["rank 0 caught 12", "rank 1 caught 12", "rank 2 caught 12"]
        );
        assert_eq!(job.finish().status.code(), Some(0));
    }
    for (signal, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let mut job = start(APART, "launch 2 --hosts a:1,b:1 -- hang");
        let _output = job.wait_ready(2);
        job.signal(signal);
        let finished = job.finish();
        assert_eq!(finished.status.code(), Some(status), "{finished:?}");
        assert_eq!(finished.stderr, "");
    }
    let mut job = start(APART, "launch 2 --hosts a:1,b:1 -- stubborn");
    let _output = job.wait_ready(2);
    job.interrupt_until_it_ends();
    job.expect_nothing_left();
}

fn a_signal_before_all_hosts_answer_calls_the_job_off() {
    let rsh = "sh -c 'test {host} != b || exec sleep 1000; exec \"$@\"' sh";
    let mut job = start(rsh, "launch 2 --hosts a:1,b:1 -- text ran");
    until("the hosts are being reached", || {
        job.processes()
            .iter()
            .any(|(_, args)| args.contains("sleep 1000"))
    });
    job.signal(libc::SIGINT);
    job.wait();
    let finished = job.finish();
    assert_eq!(finished.status.code(), Some(130), "{finished:?}");
    assert_eq!(
        (finished.stdout.as_str(), finished.stderr.as_str()),
        ("", "")
    );
}

fn killing_an_agent_ends_the_job_and_names_the_host() {
    for rsh in [ENV, APART] {
        let mut job = start(rsh, "launch 3 --hosts a:1,b:2 -- hang");
        let _output = job.wait_ready(3);
        let on_b = |pid: u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
            environment
                .split(|byte| *byte == 0)
                .any(|set| set == b"AT=b")
        };
        let is_agent = |args: &str| {
            args.ends_with("/launcher agent ") || {
                let mut words = args.split(' ');
                words.next().is_some_and(|word| word.contains("launcher-"))
                    && words.next() == Some("agent")
            }
        };
        let found = job.processes().into_iter();
        // Its guardian looks like it but for its parent.
        let found = found.filter(|(pid, args)| is_agent(args) && on_b(*pid));
        let agent = found.map(|(pid, _)| pid).min().unwrap();
        kill(agent, libc::SIGKILL);
        let finished = job.finish();
        assert_eq!(finished.status.code(), Some(125), "{finished:?}");
        let part = "while its PEs ran; it was killed there";
        assert!(
            finished.stderr.contains("oxshmem run: host b: `") && finished.stderr.contains(part),
            "{finished:?}"
        );
    }
}

fn an_agent_that_loses_its_launcher_ends_its_pes() {
    let mut job = start(APART, "launch 3 --hosts a:1,b:2 -- hang");
    let _output = job.wait_ready(3);
    job.signal(libc::SIGKILL);
    job.wait();
    job.expect_nothing_left();
}

fn killing_the_launcher_of_several_hosts_leaves_nothing() {
    for round in 0..24u64 {
        let rsh = if round % 2 == 0 { ENV } else { APART };
        let mut job = start(rsh, "launch 3 --hosts a:1,b:2 -- hang");
        std::thread::sleep(Duration::from_micros(round.wrapping_mul(7919) % 40 * 1500));
        job.signal(libc::SIGKILL);
        job.wait();
        job.expect_nothing_left();
    }
}
