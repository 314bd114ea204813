//! `kill -9` of a launched job at random moments, while its PEs start or work: of a PE, and of the
//! launcher. The job ends soon, says which PE it was, and leaves nothing.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;
use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxshmem::launch::Launch;
use oxshmem::{Cmp, Result, World};

use crate::job::{PROGRAM, arguments, this_program};
use crate::setting::DEADLINE;

const PES: u32 = 3;
/// Marks the processes of one job.
const MARK: &str = "LAUNCHED_KILLS_MARK";
/// A job that is over after a kill is so well within this, on however busy a machine.
const SOON: Duration = Duration::from_secs(5);

/// Rounds of each kind. `LAUNCHER_TEST_ROUNDS` gives more.
fn rounds() -> u64 {
    let rounds = env::var("LAUNCHER_TEST_ROUNDS");
    rounds.map_or(24, |rounds| rounds.parse().expect("a number of rounds"))
}

/// A number that depends on the round, as if at random (an output of SplitMix64).
fn random(round: u64) -> u64 {
    let mut x = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Up to 300 ms.
fn moment(round: u64) -> Duration {
    Duration::from_micros(random(round) % 300_000)
}

/// Looks until there is something to see, at most for `limit`.
fn until<T>(limit: Duration, what: impl Debug, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The launcher of these jobs.
#[test]
#[ignore = "other tests start it"]
fn launcher() {
    if env::var(PROGRAM).is_err() {
        return;
    }
    let mut launch = Launch::new(env::current_exe().unwrap(), PES);
    launch.args = arguments("launched_kills::pe").map(Into::into).to_vec();
    let outcome = launch.run().unwrap();
    std::process::exit(outcome.status);
}

/// A PE of these jobs: works until it is killed, or fails because another was.
#[test]
#[ignore = "other tests start it"]
fn pe() {
    if env::var(PROGRAM).is_err() {
        return;
    }
    let Err(error) = work();
    panic!("{error}");
}

fn work() -> Result<std::convert::Infallible> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
    let told = world.alloc_zeroed::<u64>(n)?;
    for round in 1.. {
        let block = world.alloc::<u64>(512)?;
        world.put(block, &[round; 512], next)?;
        world.p(told.at(me)?, round, next)?;
        world.wait_until(told.at(previous)?, Cmp::Ge, round)?;
        world.barrier_all()?;
        assert_eq!(world.g(block.at(511)?, me)?, round);
        world.free(block)?;
    }
    unreachable!("no loop of 2^64 rounds ends")
}

/// A launched job.
struct Launched {
    launcher: Child,
    mark: String,
}

/// Resources of a job, none of which may remain after it.
#[derive(Debug, Default)]
struct Traces {
    /// Inode numbers of its heaps.
    heaps: BTreeSet<String>,
    /// Inode numbers of its sockets.
    sockets: BTreeSet<String>,
    rendezvous: Option<SocketAddr>,
}

impl Launched {
    fn start() -> Launched {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let mut command = this_program("launched_kills::launcher", "work");
        command
            .env(MARK, &mark)
            .env("OXSHMEM_SYMMETRIC_SIZE", "8M")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let launcher = command.spawn().expect("starting this program again");
        Launched { launcher, mark }
    }

    /// Its processes and their environment.
    fn processes(&self) -> Vec<(u32, Vec<String>)> {
        let mark = format!("{MARK}={}", self.mark);
        let mut found = Vec::new();
        for pid in all_processes() {
            // Any may end while it is looked at, and some are not ours to look at.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let environment: Vec<String> = environment
                .split(|byte| *byte == 0)
                .map(|variable| String::from_utf8_lossy(variable).into_owned())
                .collect();
            if environment.contains(&mark) {
                found.push((pid, environment));
            }
        }
        found
    }

    /// Its PEs: process number and rank.
    fn pes(&self) -> Vec<(u32, String)> {
        let rank = |environment: Vec<String>| {
            let value = |variable: &String| variable.strip_prefix("OXSHMEM_RANK=").map(Into::into);
            environment.iter().find_map(value)
        };
        let processes = self.processes().into_iter();
        processes
            .filter_map(|(pid, environment)| Some((pid, rank(environment)?)))
            .collect()
    }

    fn traces(&self) -> Traces {
        let mut traces = Traces::default();
        for (pid, environment) in self.processes() {
            let address = |variable: &String| {
                let address = variable.strip_prefix("OXSHMEM_RENDEZVOUS=")?;
                address.parse().ok()
            };
            traces.rendezvous = traces
                .rendezvous
                .or_else(|| environment.iter().find_map(address));
            traces.heaps.extend(mapped_heaps(pid));
            for entry in fs::read_dir(format!("/proc/{pid}/fd"))
                .into_iter()
                .flatten()
            {
                let target = entry.and_then(|entry| fs::read_link(entry.path()));
                let target = target.map_or_else(|_| String::new(), |t| t.display().to_string());
                let inode = target
                    .strip_prefix("socket:[")
                    .and_then(|rest| rest.strip_suffix(']'));
                traces.sockets.extend(inode.map(str::to_owned));
            }
        }
        traces
    }

    /// Waits for the launcher's end; gives it, and what the job said on standard error.
    fn end(&mut self, round: u64) -> (ExitStatus, String) {
        let what = ("the launcher's end", round, moment(round));
        let status = until(SOON, what, || self.launcher.try_wait().unwrap());
        let mut said = Vec::new();
        // It ends: the launcher alone has it open.
        let mut stderr = self.launcher.stderr.take().expect("piped");
        stderr.read_to_end(&mut said).unwrap();
        (status, String::from_utf8_lossy(&said).into_owned())
    }

    /// Fails if something of the job is there, and stays.
    fn expect_nothing_left(&self, traces: &Traces, round: u64) {
        let what = |what: &'static str| (what, round, moment(round), traces);
        until(SOON, what("no process of the job"), || {
            self.processes().is_empty().then_some(())
        });
        until(SOON, what("no heap of the job mapped"), || {
            let mut mapped = all_processes().into_iter().flat_map(mapped_heaps);
            (!mapped.any(|inode| traces.heaps.contains(&inode))).then_some(())
        });
        until(SOON, what("no abstract socket of the job"), || {
            // Other programs give their sockets any bytes for names.
            let table = fs::read("/proc/net/unix").unwrap();
            let table = String::from_utf8_lossy(&table);
            let named = table.lines().filter(|line| line.contains("@oxshmem"));
            let inode = |line: &str| line.split_whitespace().nth(6).map(str::to_owned);
            let mut inodes = named.filter_map(inode);
            (!inodes.any(|inode| traces.sockets.contains(&inode))).then_some(())
        });
        if let Some(rendezvous) = traces.rendezvous {
            until(SOON, what("nobody listens at the rendezvous"), || {
                TcpStream::connect(rendezvous).err()
            });
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // A test that failed leaves nothing either.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Inode numbers of the heaps that a process has mapped.
fn mapped_heaps(pid: u32) -> BTreeSet<String> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let heaps = maps.lines().filter(|line| line.contains("/memfd:oxshmem"));
    let inode = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    heaps.filter_map(inode).collect()
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).unwrap();
    // SAFETY: sending a signal takes no memory of ours.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

#[test]
fn a_pe_killed_at_any_moment_ends_the_job_and_is_named() {
    for round in 0..rounds() {
        let mut job = Launched::start();
        until(DEADLINE, "a PE", || (!job.pes().is_empty()).then_some(()));
        std::thread::sleep(moment(round));
        let pes = job.pes();
        let (victim, rank) = &pes[usize::try_from(random(round) >> 40).unwrap() % pes.len()];
        let traces = job.traces();
        kill(*victim);
        let (status, said) = job.end(round);
        assert_eq!(status.code(), Some(128 + 9), "round {round}: {said}");
        let line = format!("oxshmem run: PE {rank} (pid {victim}) was killed by signal 9");
        assert!(said.contains(&line), "round {round}: no {line:?} in {said}");
        assert_eq!(
            said.matches("oxshmem run:").count(),
            1,
            "round {round}: {said}"
        );
        job.expect_nothing_left(&traces, round);
    }
}

#[test]
fn a_launcher_killed_at_any_moment_leaves_nothing() {
    for round in 0..rounds() {
        let mut job = Launched::start();
        // Half of them in the start, half at work.
        if round % 2 == 0 {
            until(DEADLINE, "heaps", || {
                (job.traces().heaps.len() == PES as usize).then_some(())
            });
        }
        std::thread::sleep(moment(round));
        let traces = job.traces();
        kill(job.launcher.id());
        let (status, said) = job.end(round);
        assert_eq!(status.code(), None, "round {round}: {said}");
        job.expect_nothing_left(&traces, round);
    }
}
