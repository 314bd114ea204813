//! Kills at any moment: the job ends, with one clear line if there is someone to say it, and
//! nothing remains.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Test;
use crate::job::{Job, kill, until};

pub const TESTS: &[Test] = &[
    (
        "killing_the_launcher_ends_pes_and_their_children",
        killing_the_launcher_ends_pes_and_children,
    ),
    (
        "killing_a_pe_at_any_moment_ends_the_job",
        killing_a_pe_at_any_moment_ends_the_job,
    ),
    (
        "killing_the_launcher_at_any_moment_leaves_nothing",
        killing_the_launcher_at_any_moment,
    ),
    ("output_ends_with_the_job", output_ends_with_the_job),
    (
        "where_no_process_group_can_be_made_the_launcher_says_so_and_kills_nobody",
        where_no_process_group_can_be_made,
    ),
];

/// Rounds of each kind. `LAUNCHER_TEST_ROUNDS` gives more.
fn rounds() -> u64 {
    std::env::var("LAUNCHER_TEST_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(24)
}

/// A delay that is another in each round, over start-up and beyond.
fn moment(round: u64) -> Duration {
    Duration::from_micros(round.wrapping_mul(7919) % 40 * 700)
}

fn killing_the_launcher_ends_pes_and_children() {
    let mut job = Job::start("launch 3 -- hang");
    let _output = job.wait_ready(3);
    let processes = job.processes();
    // The launcher, its guardian, the PEs and a child of each.
    assert_eq!(processes.len(), 2 + 3 + 3, "{processes:?}");
    job.signal(libc::SIGKILL);
    job.wait();
    job.expect_nothing_left();
}

fn killing_the_launcher_at_any_moment() {
    for round in 0..rounds() {
        let mut job = Job::start("launch 4 -- hang");
        std::thread::sleep(moment(round));
        job.signal(libc::SIGKILL);
        job.wait();
        job.expect_nothing_left();
    }
}

fn killing_a_pe_at_any_moment_ends_the_job() {
    for round in 0..rounds() {
        let mut job = Job::start("launch 4 -- hang");
        until("a PE has started", || !job.pes().is_empty());
        std::thread::sleep(moment(round));
        let pes = job.pes();
        let victim = pes[usize::try_from(round).unwrap() % pes.len()];
        kill(victim, libc::SIGKILL);
        let status = job.wait();
        assert_eq!(
            status.code(),
            Some(128 + libc::SIGKILL),
            "{:?}",
            job.finish()
        );
        let finished = job.finish();
        let line = format!("(pid {victim}) was killed by signal 9 (SIGKILL)");
        assert!(finished.stderr.contains(&line), "{finished:?}");
        assert_eq!(
            finished.stderr.matches("oxshmem run:").count(),
            1,
            "{finished:?}"
        );
    }
}

fn output_ends_with_the_job() {
    // `finish` reads to the end of both streams: neither guardian nor PE keeps them open.
    let mut job = Job::start("launch 2 -- hang");
    let output = job.wait_ready(2);
    job.signal(libc::SIGKILL);
    job.launcher.stdout = Some(output.into_inner());
    let finished = job.finish();
    assert_eq!(finished.status.code(), None);
}

fn where_no_process_group_can_be_made() {
    // The launcher's group is this shell's, which goes on after it.
    let (launcher, mark) = Job::command("launch 2 -- empty");
    let mut command = Command::new("sh");
    command
        .args(["-c", r#""$0" "$@"; echo "status $?""#])
        .arg(launcher.get_program())
        .args(launcher.get_args())
        .env("LAUNCHER_TEST_MARK", &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // SAFETY: `refuse` makes system calls and reads its own stack.
    unsafe { command.pre_exec(|| refuse(libc::SYS_setpgid)) };
    let finished = Job::of((command, mark)).finish();
    assert_eq!(finished.stdout, "status 99\n", "{finished:?}");
    let words = "making a process group for the PEs (setpgid): Operation not permitted";
    assert!(finished.stderr.contains(words), "{finished:?}");
    assert!(finished.stderr.contains("sandbox"), "{finished:?}");
}

/// Has the kernel refuse a system call to this process and its children, as a sandbox may.
fn refuse(call: libc::c_long) -> std::io::Result<()> {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, skip, k| libc::sock_filter {
        code,
        jt: 0,
        jf: skip,
        k,
    };
    let mut steps = [
        step(LOAD_NUMBER, 0, 0),
        step(IF_EQUAL, 1, call as u32),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: 4,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the filter and its steps live through the call, which copies them.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
            ) != 0
    };
    if refused {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
