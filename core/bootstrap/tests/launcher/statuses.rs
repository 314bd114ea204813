//! The ends of jobs, and the launcher's words about them.

use std::io::Read;
use std::process::Stdio;

use crate::Test;
use crate::job::Job;

pub const TESTS: &[Test] = &[
    ("pes_get_their_variables", pes_get_their_variables),
    ("a_program_can_launch_itself", a_program_can_launch_itself),
    (
        "a_program_that_is_to_be_alone_launches_nothing",
        a_program_that_is_to_be_alone_launches_nothing,
    ),
    (
        "one_of_several_tasks_of_slurm_launches_nothing_and_says_how_to",
        one_of_several_tasks_of_slurm_launches_nothing,
    ),
    (
        "success_is_status_zero_and_silent",
        success_is_status_zero_and_silent,
    ),
    (
        "the_first_failing_pe_gives_the_status",
        the_first_failing_pe_gives_the_status,
    ),
    (
        "a_pe_whose_end_made_others_fail_is_the_one_named",
        a_pe_whose_end_made_others_fail_is_the_one_named,
    ),
    (
        "a_pe_whose_end_made_another_abort_is_the_one_named",
        a_pe_whose_end_made_another_abort_is_the_one_named,
    ),
    (
        "failures_after_sigterm_are_not_blamed",
        failures_after_sigterm_are_not_blamed,
    ),
    (
        "a_killed_pe_is_named_with_its_signal",
        a_killed_pe_is_named_with_its_signal,
    ),
    (
        "a_pe_that_never_joins_fails_the_others_calls",
        a_pe_that_never_joins_fails_the_others_calls,
    ),
    (
        "a_pe_that_exits_without_goodbye_has_died",
        a_pe_that_exits_without_goodbye_has_died,
    ),
    (
        "an_abort_ends_the_job_with_its_status",
        an_abort_ends_the_job_with_its_status,
    ),
    (
        "an_abort_has_status_zero_only_if_zero_was_given",
        an_abort_has_status_zero_only_if_zero_was_given,
    ),
    (
        "a_timeout_names_who_was_running",
        a_timeout_names_who_was_running,
    ),
    (
        "a_stubborn_pe_is_killed_after_its_grace",
        a_stubborn_pe_is_killed_after_its_grace,
    ),
    ("signals_reach_all_pes", signals_reach_all_pes),
    ("ignored_signals_stay_ignored", ignored_signals_stay_ignored),
    (
        "sigint_ends_the_job_without_blame",
        sigint_ends_the_job_without_blame,
    ),
    ("a_second_sigint_kills", a_second_sigint_kills),
    (
        "sigterm_kills_the_stubborn_in_the_end",
        sigterm_kills_the_stubborn_in_the_end,
    ),
    (
        "a_program_that_does_not_exist_is_named",
        a_program_that_does_not_exist_is_named,
    ),
    ("absurd_jobs_are_refused", absurd_jobs_are_refused),
    ("pes_are_bound_to_their_cpus", pes_are_bound_to_their_cpus),
    (
        "torchrun_variables_make_a_job",
        torchrun_variables_make_a_job,
    ),
    ("an_abort_ends_a_torchrun_job", an_abort_ends_a_torchrun_job),
    (
        "descriptors_pass_between_many_processes",
        descriptors_pass_between_many_processes,
    ),
];

/// Starts PEs as torchrun does, without a launcher of ours; gives their statuses.
fn torchrun(role: &str, pes: u32) -> Vec<Option<i32>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let key = oxshmem_bootstrap::JobKey::random().unwrap().to_hex();
    let start = |rank: u32| {
        let (mut command, mark) = Job::command(&format!("pe {role}"));
        command
            .env("RANK", rank.to_string())
            .env("WORLD_SIZE", pes.to_string())
            .env("MASTER_ADDR", "localhost")
            .env("MASTER_PORT", port.to_string())
            .env("OXSHMEM_JOB_KEY", &key);
        Job::of((command, mark))
    };
    let jobs: Vec<Job> = (0..pes).rev().map(start).collect();
    jobs.into_iter()
        .map(|job| job.finish().status.code())
        .collect()
}

fn torchrun_variables_make_a_job() {
    assert_eq!(torchrun("empty", 5), [Some(0); 5]);
}

fn an_abort_ends_a_torchrun_job() {
    for by in [0, 2] {
        assert_eq!(torchrun(&format!("abort {by} 42"), 3), [Some(42); 3]);
    }
}

fn code(args: &str) -> (Option<i32>, String) {
    let finished = Job::run(args);
    (finished.status.code(), finished.stderr)
}

fn pes_get_their_variables() {
    let finished = Job::run("launch 2 --tag -- variables");
    let mut lines: Vec<_> = finished.stdout.lines().collect();
    lines.sort_unstable();
    let expected = ["[0] LOCAL_RANK=0", "[0] RANK=0", "[0] SIZE=2"];
    assert_eq!(lines[..3], expected);
    assert_eq!(lines[3..], expected.map(|line| line.replace('0', "1")));
}

fn a_program_can_launch_itself() {
    for pes in [1, 3] {
        let finished = Job::run(&format!("self-launch {pes}"));
        assert_eq!(finished.status.code(), Some(0), "{finished:?}");
        assert_eq!(finished.stdout.lines().count(), pes);
        assert!(
            finished
                .stdout
                .contains(&format!("rank {} of {pes}", pes - 1))
        );
    }
}

fn a_program_that_is_to_be_alone_launches_nothing() {
    let (mut command, mark) = Job::command("self-launch 3");
    command.env("OXSHMEM_BOOTSTRAP", "single");
    let finished = Job::of((command, mark)).finish();
    assert_eq!(
        finished.stdout, "rank 0 of 1 after the barrier\n",
        "{finished:?}"
    );
}

fn one_of_several_tasks_of_slurm_launches_nothing() {
    let as_task = |tasks: &str| {
        let (mut command, mark) = Job::command("self-launch 3");
        command
            .env("SLURM_STEP_ID", "0")
            .env("SLURM_STEP_NUM_TASKS", tasks);
        Job::of((command, mark)).finish()
    };
    let finished = as_task("4");
    assert_eq!(finished.status.code(), Some(101), "{finished:?}");
    assert_eq!(finished.stdout, "", "{finished:?}");
    for words in [
        "one of 4 tasks",
        "each would start 3 PEs",
        "srun --mpi=pmi2",
        "srun -n 1",
    ] {
        assert!(finished.stderr.contains(words), "{words}: {finished:?}");
    }
    let finished = as_task("1");
    assert_eq!(finished.stdout.lines().count(), 3, "{finished:?}");
}

fn success_is_status_zero_and_silent() {
    for pes in [1, 4, 64] {
        let finished = Job::run(&format!("launch {pes} -- empty"));
        assert_eq!(finished.status.code(), Some(0), "{finished:?}");
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("", "")
        );
    }
}

fn the_first_failing_pe_gives_the_status() {
    let (code, said) = code("launch 3 -- exit 1 7");
    assert_eq!(code, Some(7));
    assert!(said.starts_with("oxshmem run: PE 1 (pid "), "{said}");
    assert!(
        said.ends_with(") exited with status 7; ending the other PEs\n"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
}

fn a_pe_whose_end_made_others_fail_is_the_one_named() {
    for (role, status, how) in [
        ("first 3 7", 7, "exited with status 7"),
        ("crash 3 6", 128 + 6, "was killed by signal 6 (SIGABRT)"),
    ] {
        for _ in 0..5 {
            let (code, said) = code(&format!("launch 4 -- {role}"));
            assert_eq!(code, Some(status), "{role}: {said}");
            assert!(said.starts_with("oxshmem run: PE 3 (pid "), "{said}");
            assert!(said.contains(how), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

fn a_pe_whose_end_made_another_abort_is_the_one_named() {
    let (code, said) = code("launch 4 -- fails 3 7");
    assert_eq!(code, Some(7), "{said}");
    assert!(said.starts_with("oxshmem run: PE 3 (pid "), "{said}");
    assert!(said.contains("exited with status 7"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // An end that is no failure explains none.
    let (code, said) = self::code("launch 4 -- fails 3 0");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("PE 0 aborted the job with status 1: a call failed"),
        "{said}"
    );
}

fn failures_after_sigterm_are_not_blamed() {
    let mut job = Job::start("launch 3 -- quit");
    let _output = job.wait_ready(3);
    job.signal(libc::SIGTERM);
    let finished = job.finish();
    assert_eq!(finished.status.code(), Some(128 + 15), "{finished:?}");
    assert_eq!(finished.stderr, "");
}

fn a_killed_pe_is_named_with_its_signal() {
    let (code, said) = code("launch 4 -- kill 3 9");
    assert_eq!(code, Some(128 + 9));
    assert!(said.contains("oxshmem run: PE 3 (pid "), "{said}");
    assert!(
        said.contains("was killed by signal 9 (SIGKILL); ending the other PEs"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
}

fn a_pe_that_never_joins_fails_the_others_calls() {
    let finished = Job::run("launch 3 -- absent 1");
    assert_eq!(finished.status.code(), Some(0));
    let expected = "barrier needs rank 1, which has died (its connection closed)";
    let said: Vec<_> = finished.stdout.lines().collect();
    assert!(
        said.len() == 2 && said.iter().all(|line| line.starts_with(expected)),
        "{finished:?}"
    );
}

fn a_pe_that_exits_without_goodbye_has_died() {
    let finished = Job::run("launch 3 -- rude 2");
    assert_eq!(finished.status.code(), Some(0));
    assert_eq!(
        finished
            .stdout
            .matches("needs rank 2, which has died")
            .count(),
        2,
        "{finished:?}"
    );
}

fn an_abort_ends_the_job_with_its_status() {
    let finished = Job::run("launch 3 -- abort 2 42");
    assert_eq!(finished.status.code(), Some(42), "{finished:?}");
    let line = "oxshmem run: PE 2 aborted the job with status 42: told so by the test";
    assert!(finished.stderr.starts_with(line), "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    assert_eq!(finished.stdout, "", "abort does not return");
}

fn an_abort_has_status_zero_only_if_zero_was_given() {
    // shmem_global_exit(0) is a job that ends well; 256 is none.
    for (status, expected) in [(0, 0), (256, 1), (-256, 1), (257, 1)] {
        let (code, said) = code(&format!("launch 2 -- abort 1 {status}"));
        assert_eq!(code, Some(expected), "{said}");
        // A job that ends well before its PEs have is told of, too.
        let did = if status == 0 { "ended" } else { "aborted" };
        let line = format!("PE 1 {did} the job with status {status}: told so by the test");
        assert!(said.contains(&line), "{said}");
    }
}

fn a_timeout_names_who_was_running() {
    let (code, said) = code("launch 2 --timeout 300 -- hang");
    assert_eq!(code, Some(124));
    assert!(
        said.contains("timed out after 300ms with PEs 0 and 1 still running"),
        "{said}"
    );
}

fn a_stubborn_pe_is_killed_after_its_grace() {
    let mut job = Job::start("launch 3 -- stubborn");
    let _output = job.wait_ready(3);
    let victim = job.pes()[0];
    crate::job::kill(victim, libc::SIGKILL);
    assert_eq!(job.wait().code(), Some(128 + libc::SIGKILL));
    job.expect_nothing_left();
}

fn signals_reach_all_pes() {
    for signal in [libc::SIGUSR2, libc::SIGHUP, libc::SIGWINCH] {
        let mut job = Job::start(&format!("launch 3 -- catch {signal}"));
        let mut output = job.wait_ready(3);
        job.signal(signal);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let mut lines: Vec<_> = rest.lines().collect();
        lines.sort_unstable();
        let expected = [0, 1, 2].map(|rank| format!("rank {rank} caught {signal}"));
        assert_eq!(lines, expected);
        assert_eq!(job.wait().code(), Some(0));
        job.expect_nothing_left();
    }
}

fn ignored_signals_stay_ignored() {
    use std::os::unix::process::CommandExt;
    let (mut command, mark) = Job::command(&format!(
        "launch 3 -- catch {} {}",
        libc::SIGHUP,
        libc::SIGUSR2
    ));
    let ignore = || {
        // SAFETY: ignoring a signal has no precondition.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: `ignore` makes one system call.
    unsafe { command.pre_exec(ignore) };
    let mut job = Job::of((command, mark));
    let mut output = job.wait_ready(3);
    job.signal(libc::SIGHUP);
    // An earlier signal is passed on earlier, and a PE that has both takes SIGHUP first.
    job.signal(libc::SIGUSR2);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let mut lines: Vec<_> = rest.lines().collect();
    lines.sort_unstable();
    let expected = [0, 1, 2].map(|rank| format!("rank {rank} caught {}", libc::SIGUSR2));
    assert_eq!(lines, expected);
    assert_eq!(job.wait().code(), Some(0));
    job.expect_nothing_left();
}

fn sigint_ends_the_job_without_blame() {
    let mut job = Job::start("launch 3 -- hang");
    let _output = job.wait_ready(3);
    job.signal(libc::SIGINT);
    let finished = job.finish();
    assert_eq!(finished.status.code(), Some(130), "{finished:?}");
    assert_eq!(finished.stderr, "");
}

fn a_second_sigint_kills() {
    let mut job = Job::start("launch 2 -- stubborn");
    let _output = job.wait_ready(2);
    job.interrupt_until_it_ends();
    job.expect_nothing_left();
}

fn sigterm_kills_the_stubborn_in_the_end() {
    let mut job = Job::start("launch 2 -- stubborn");
    let _output = job.wait_ready(2);
    job.signal(libc::SIGTERM);
    assert_eq!(job.wait().code(), Some(128 + libc::SIGTERM));
    job.expect_nothing_left();
}

fn a_program_that_does_not_exist_is_named() {
    let (code, said) = code("launch 2 --program /no/such/program -- x");
    assert_eq!(code, Some(99));
    assert!(said.contains("/no/such/program"), "{said}");
}

fn absurd_jobs_are_refused() {
    let (code, said) = code("launch 0 -- empty");
    assert_eq!(code, Some(99));
    assert!(said.contains("a job has 1 to"), "{said}");
}

fn pes_are_bound_to_their_cpus() {
    let allowed = std::thread::available_parallelism().unwrap().get();
    let other = if allowed > 1 { 1 } else { 0 };
    let finished = Job::run(&format!("launch 3 --cpus 0,{other} -- cpus"));
    let mut lines: Vec<_> = finished.stdout.lines().collect();
    lines.sort_unstable();
    for (rank, cpu) in [(0, 0), (1, other), (2, 0)] {
        assert_eq!(
            lines[rank],
            format!("rank {rank} Cpus_allowed_list:\t{cpu}")
        );
    }
}

fn descriptors_pass_between_many_processes() {
    for pes in [2, 64] {
        let mut command = Job::command(&format!("launch {pes} -- descriptors"));
        command.0.stdin(Stdio::null());
        let finished = Job::of(command).finish();
        assert_eq!(finished.status.code(), Some(0), "{finished:?}");
    }
}
