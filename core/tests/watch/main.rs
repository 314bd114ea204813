//! The reports that a job gives on request: which PE waits for which, its log, its statistics.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

#[path = "../contract/job.rs"]
#[allow(dead_code, reason = "the contract's tests use more of it")]
mod job;
mod programs;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use job::{Process, this_program};
use oxshmem::testing::spmd_with;
use oxshmem::{Builder, Cmp, ContextOptions, SignalOp, World};

/// The part of the contract's `setting` that its jobs use.
mod setting {
    use std::time::Duration;

    /// After this long every wait in a test is an error.
    pub const DEADLINE: Duration = Duration::from_secs(60);
}

/// A launcher of a job that hangs; killed and reaped when dropped.
struct Hung(Child);

impl Drop for Hung {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks until all wait: they come to it soon.
#[test]
fn the_launcher_shows_which_words_and_barriers_pes_wait_for() {
    let mut command = this_program("programs::launcher", "hangs");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.env("OXSHMEM_TIMEOUT", "60");
    let mut job = Hung(command.spawn().unwrap());
    let mut told = BufReader::new(job.0.stderr.take().unwrap()).lines();
    let pid = job.0.id() as i32;
    let (mut thread, mut are_here) = (None, false);
    while thread.is_none() || !are_here {
        let line = told.next().unwrap().unwrap();
        are_here |= line.contains("all are here");
        thread = thread.or(line
            .strip_prefix("launcher thread ")
            .map(|number| number.parse::<i32>().unwrap()));
    }
    // To the launcher's thread alone: this process has others, which heed no signal as a launcher does.
    let ask = || {
        // SAFETY: it passes numbers only.
        let sent =
            unsafe { libc::syscall(libc::SYS_tgkill, pid, thread.unwrap_or(0), libc::SIGUSR1) };
        assert_eq!(sent, 0);
    };
    let wanted = [
        "PE 0 has waited ",
        "PE 1 has waited ",
        "PE 2 has waited ",
        "deadlock: these wait for each other: PE 0 for any PE in wait_until, PE 1 for any PE in \
         signal_wait_until, PE 2 for PE ",
    ];
    let mut seen: Vec<String> = Vec::new();
    while !wanted
        .iter()
        .all(|words| seen.iter().any(|line| line.contains(words)))
    {
        ask();
        let line = told.next().expect("the job goes on").unwrap();
        assert!(
            seen.len() < 10_000 && !line.contains("OXSHMEM_TIMEOUT"),
            "{seen:?}"
        );
        seen.push(line);
    }
    let word = seen
        .iter()
        .find(|line| line.contains("PE 0 has waited"))
        .unwrap();
    assert!(
        word.contains("in wait_until for any PE: the word at offset"),
        "{word}"
    );
    let barrier = seen
        .iter()
        .find(|line| line.contains("PE 2 has waited"))
        .unwrap();
    assert!(barrier.contains("in barrier_all for PE "), "{barrier}");
    for line in [word, barrier] {
        let place = "called at core/tests/watch/programs.rs:";
        assert!(line.contains(place), "{line}");
    }
}

#[test]
fn a_log_is_written_at_the_levels_that_are_asked_for() {
    let errors = |levels: Option<&str>| {
        let mut command = this_program("programs::launcher", "nothing");
        command.env_remove("OXSHMEM_LOG");
        if let Some(levels) = levels {
            command.env("OXSHMEM_LOG", levels);
        }
        let (status, _, errors) = Process::start(command).end();
        assert!(status.success(), "{status}; {errors}");
        errors
    };
    let told = errors(Some("info"));
    let of_two = |line: &&str| line.contains(" PE 2 INFO oxshmem: host memory of ");
    let line = told
        .lines()
        .find(of_two)
        .unwrap_or_else(|| panic!("{told}"));
    assert!(
        line.contains("2 PEs from 0 on by loopback on memory, mapped"),
        "{line}"
    );
    // RFC 3339.
    assert_eq!(
        (line.find('T'), line.find('Z')),
        (Some(10), Some(26)),
        "{line}"
    );
    for levels in [None, Some("warn"), Some("error,oxshmem_verbs=info")] {
        let told = errors(levels);
        assert!(!told.contains("INFO"), "{levels:?}: {told}");
    }
}

/// A statistics' rows, by their words.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

/// Settings of a world with statistics in a file of this name.
fn counted(name: &str) -> (Builder, std::path::PathBuf) {
    let name = format!("oxshmem-{name}-{}.txt", std::process::id());
    let path = std::env::temp_dir().join(name);
    (
        World::builder().timeout(setting::DEADLINE).stats(&path),
        path,
    )
}

/// Every call that moves the program's data; PE 0 makes them, towards PE 1.
#[test]
fn every_kind_of_operation_is_counted_with_its_bytes() {
    let (builder, path) = counted("every-kind");
    spmd_with(builder, 2, |world| {
        let words = world.alloc_zeroed::<u64>(100)?;
        let flag = world.alloc_zeroed::<u64>(1)?;
        let context = world.create_context(ContextOptions::NONE)?;
        if world.my_pe() == 0 {
            let (five, mut into) = ([1; 5], [0; 5]);
            world.put(words, &five, 1)?;
            context.p(words, 1, 1)?;
            context.iput(words, &five, 2, 1, 5, 1)?;
            world.scope(|s| s.put_nbi(words, &five, 1))?;
            world.put_from(words.range(..5)?, words.range(..5)?, 1)?;
            world.get(&mut into, words.range(..5)?, 1)?;
            world.g(words, 1)?;
            context.iget(&mut into, words, 1, 2, 5, 1)?;
            world.scope(|s| s.get_nbi(&mut into, words.range(..5)?, 1))?;
            world.fetch_add(words, 1, 1)?;
            context.inc(words, 1)?;
            world.compare_swap(words, 1, 2, 1)?;
            world.p(words, 1, 0)?;
            world.put_signal(words, &five, flag, 1, SignalOp::Set, 1)?;
        } else {
            world.wait_until(flag, Cmp::Eq, 1)?;
        }
        context.destroy()?;
        world.barrier_all()?;
        // Collective calls move what is not counted here.
        world.sum_reduce(words, words)?;
        world.free(flag)?;
        world.free(words)
    })
    .unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let rows = rows(&text);
    // put 5 + p 1 + iput 5 of 1 + put_nbi 5 + put_from 5; get 5 + g 1 + iget 5 of 1 + get_nbi 5.
    let expected = ["0", "loopback", "9", "168", "8", "128", "1", "40", "3"];
    assert!(rows.iter().any(|row| row[..] == expected), "{text}");
    let own = ["0", "own", "memory", "1", "8", "0", "0", "0", "0", "0"];
    assert!(rows.iter().any(|row| row[..] == own), "{text}");
    let heap = rows.iter().find(|row| row.starts_with(&["all", "host"]));
    let most: u64 = heap.unwrap_or_else(|| panic!("{text}"))[2].parse().unwrap();
    assert!((808..4096).contains(&most), "{text}");
}

#[test]
fn waits_are_counted_by_their_calls() {
    let (builder, path) = counted("waits");
    spmd_with(builder, 2, |world| {
        let flag = world.alloc_zeroed::<u64>(1)?;
        if world.my_pe() == 0 {
            // Long enough that nobody finds it at once.
            std::thread::sleep(std::time::Duration::from_millis(30));
            world.p(flag, 1, 1)?;
        } else {
            world.wait_until(flag, Cmp::Eq, 1)?;
        }
        world.barrier_all()
    })
    .unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let rows = rows(&text);
    let waited = |row: &&Vec<&str>| row.starts_with(&["1", "wait_until", "1"]);
    let row = rows.iter().find(waited).unwrap_or_else(|| panic!("{text}"));
    assert!(row[3].parse::<f64>().unwrap() > 0.01, "{text}");
}

#[test]
fn statistics_come_to_standard_error_and_are_the_same_on_every_pe_or_refused() {
    let mut command = this_program("programs::launcher", "nothing");
    command.env("OXSHMEM_STATS", "1");
    let (status, _, errors) = Process::start(command).end();
    assert!(status.success(), "{status}; {errors}");
    assert!(errors.contains("statistics of 3 PEs"), "{errors}");
    let mut command = this_program("programs::launcher", "odd");
    command.env_remove("OXSHMEM_STATS");
    let (status, _, errors) = Process::start(command).end();
    assert!(
        !status.success() && errors.contains("OXSHMEM_STATS: "),
        "{errors}"
    );
}

/// A world with statistics maps the peers that it maps without.
#[test]
fn pointers_and_other_contexts_reach_pes_that_are_counted() {
    let (builder, path) = counted("pointers");
    spmd_with(builder, 2, |world| {
        let words = world.alloc_zeroed::<u64>(2)?;
        let other = 1 - world.my_pe();
        assert!(world.ptr(words, other).is_some());
        world.barrier_all()
    })
    .unwrap();
    std::fs::remove_file(&path).unwrap();
}
