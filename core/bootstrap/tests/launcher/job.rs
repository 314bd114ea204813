//! Starting a launcher to test, and looking at what it leaves.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time limit for anything here, after which it counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The variable that marks all processes of one job.
const MARK: &str = "LAUNCHER_TEST_MARK";

/// A launcher under test. Its end is checked: no process of the job may remain.
pub struct Job {
    pub launcher: Child,
    mark: String,
}

/// The results of a finished launcher.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Job {
    /// A command for `args` (see `role`), with its output piped and input empty.
    pub fn command(args: &str) -> (Command, String) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(args.split(' '))
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let heed = || {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                // SAFETY: taking a signal's default action has no precondition.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // A job ignores what its launcher does, and that what these tests do: under nohup or behind `&`, these.
        // SAFETY: `heed` makes system calls only.
        unsafe { command.pre_exec(heed) };
        (command, mark)
    }

    pub fn start(args: &str) -> Job {
        Job::of(Job::command(args))
    }

    pub fn of((mut command, mark): (Command, String)) -> Job {
        Job {
            launcher: command.spawn().unwrap(),
            mark,
        }
    }

    /// Runs a job to its end.
    pub fn run(args: &str) -> Finished {
        Job::start(args).finish()
    }

    /// Waits for the end of the launcher and of its output.
    pub fn finish(mut self) -> Finished {
        let stdout = self.launcher.stdout.take().map(read_all);
        let stderr = self.launcher.stderr.take().map(read_all);
        let status = self.wait();
        let text = |reader: Option<std::thread::JoinHandle<String>>| {
            reader.map_or_else(String::new, |reader| reader.join().unwrap())
        };
        let finished = Finished {
            status,
            stdout: text(stdout),
            stderr: text(stderr),
        };
        self.expect_nothing_left();
        finished
    }

    /// Waits for the launcher's end.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        until("the launcher ends", || {
            status = self.launcher.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Reads lines until `count` PEs are ready. Gives the output back for the rest.
    pub fn wait_ready(&mut self, count: usize) -> BufReader<ChildStdout> {
        let mut output = BufReader::new(self.launcher.stdout.take().unwrap());
        for _ in 0..count {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
        }
        output
    }

    pub fn signal(&self, signal: i32) {
        kill(self.launcher.id(), signal);
    }

    /// Interrupts it again and again, as a user would: two pending signals of a kind are one. It
    /// ends as a shell sees an interrupted program end.
    pub fn interrupt_until_it_ends(&mut self) {
        until("the launcher ends", || {
            self.signal(libc::SIGINT);
            self.launcher.try_wait().unwrap().is_some()
        });
        let status = self.wait();
        // One that comes once the job has ended, before the launcher has left, kills it as it would
        // any program: 130 to a shell too.
        assert!(
            status.code() == Some(130) || status.signal() == Some(libc::SIGINT),
            "{status}"
        );
    }

    /// The job's processes, by what they run: (pid, its arguments).
    pub fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}", self.mark);
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            // A process may end while it is looked at.
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
            {
                let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&arguments).replace('\0', " ")));
            }
        }
        found
    }

    /// Pids of the job's PEs: the launcher's children that run their role already.
    pub fn pes(&self) -> Vec<u32> {
        let parent = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
            line.trim().parse::<u32>().ok()
        };
        // A PE's own child looks like the PE until it runs something else.
        let is_pe =
            |pid: u32, args: &str| args.contains(" pe ") && parent(pid) == Some(self.launcher.id());
        let processes = self.processes().into_iter();
        processes
            .filter(|(pid, args)| is_pe(*pid, args))
            .map(|(pid, _)| pid)
            .collect()
    }

    /// Fails if a process of the job is still there after a while (a killed one takes a moment).
    pub fn expect_nothing_left(&self) {
        let end = Instant::now() + Duration::from_secs(2);
        let mut left = self.processes();
        while !left.is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
            left = self.processes();
        }
        assert!(left.is_empty(), "these remain: {left:?}");
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A test that failed shall leave nothing either.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// Looks again and again until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited for too long until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Stops a process, and waits until each of its threads has stopped.
pub fn stop(pid: u32) {
    kill(pid, libc::SIGSTOP);
    let has_stopped = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap();
        // The state follows the name, which is in brackets and may have brackets in it.
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    };
    until("the process has stopped", || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        threads.flatten().all(has_stopped)
    });
}

pub fn kill(pid: u32, signal: i32) {
    // SAFETY: sending a signal takes no memory of ours.
    unsafe { libc::kill(i32::try_from(pid).unwrap(), signal) };
}

fn read_all(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
