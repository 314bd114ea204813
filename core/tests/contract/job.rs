//! Jobs whose PEs are processes: this test program again, started as a PE.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{env, io};

use oxshmem::{Error, Result};

use crate::setting::DEADLINE;

/// The variable that names the program of a started process; read by [`crate::programs`].
pub const PROGRAM: &str = "CONTRACT_PROGRAM";

/// Begins each line that a PE says to its test.
pub const SAYS: &str = "CONTRACT ";

/// Says a line to the test that started this process.
pub fn say(line: impl std::fmt::Display) {
    println!("\n{SAYS}{}", line.to_string().replace('\n', " "));
}

/// This program, about to run one ignored test as `program`.
pub fn this_program(entry: &str, program: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program's path"));
    command.args(arguments(entry)).env(PROGRAM, program);
    command
        .env_remove("OXSHMEM_RANK")
        .env("RUST_BACKTRACE", "0");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn arguments(entry: &str) -> [&str; 5] {
    [
        "--ignored",
        "--exact",
        entry,
        "--nocapture",
        "--test-threads=1",
    ]
}

/// A child process; killed and reaped when dropped.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    said: Vec<String>,
}

impl Process {
    pub fn start(mut command: Command) -> Process {
        let mut child = command.spawn().expect("starting this program again");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        // Ends with the child's standard output, and closes the channel then.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(io::Result::ok) {
                if let Some(said) = line.strip_prefix(SAYS) {
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        let mut stderr = child.stderr.take().expect("piped");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        Process {
            child,
            stdin,
            lines,
            stderr: Some(stderr),
            said: Vec::new(),
        }
    }

    /// Waits until it says `line`.
    pub fn expect(&mut self, line: &str) {
        while !self.said.iter().any(|said| said == line) {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(said) => self.said.push(said),
                Err(error) => {
                    let _ = self.child.kill();
                    let errors = self.errors();
                    panic!("not {line:?} but {:?} ({error}); {errors}", self.said);
                }
            }
        }
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().expect("killing a child");
    }

    /// Closes its standard input, for which [`stay`] waits.
    pub fn release(&mut self) {
        self.stdin = None;
    }

    /// Waits until it ends; gives how, and what it said.
    pub fn end(mut self) -> (ExitStatus, Vec<String>, String) {
        self.release();
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(said) => self.said.push(said),
                // Its output is closed: it ends.
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => {
                    let _ = self.child.kill();
                    let errors = self.errors();
                    panic!(
                        "it does not end ({error}); it said {:?}; {errors}",
                        self.said
                    );
                }
            }
        }
        let status = self.child.wait().expect("reaping a child");
        let errors = self.errors();
        (status, std::mem::take(&mut self.said), errors)
    }

    fn errors(&mut self) -> String {
        let text = self.stderr.take().map(JoinHandle::join);
        text.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In a PE: stays until the test has seen enough.
pub fn stay() {
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// A torchrun-style job: nobody but the test watches its PEs.
pub struct Job {
    pub n: usize,
    pub program: &'static str,
    pub key: String,
    pub port: u16,
    pub environment: Vec<(&'static str, String)>,
}

impl Job {
    pub fn new(n: usize, program: &'static str) -> Job {
        // A port that is free now. Another may take it before rank 0 does; then the test says so.
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
        Job {
            n,
            program,
            key: format!("{:064x}", std::process::id()),
            port: free.expect("a free port").port(),
            environment: Vec::new(),
        }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Job {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// One PE's command.
    pub fn command(&self, rank: usize) -> Command {
        let mut command = this_program("programs::pe", self.program);
        command
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", self.n.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", self.port.to_string())
            .env("OXSHMEM_JOB_KEY", &self.key)
            .envs(self.environment.iter().cloned());
        command
    }

    pub fn start(&self) -> Vec<Process> {
        (0..self.n)
            .map(|rank| Process::start(self.command(rank)))
            .collect()
    }
}

/// Ends processes that shall have ended well.
pub fn end_well(mut processes: Vec<Process>) -> Vec<Vec<String>> {
    // All at once: the host of the rendezvous ends last.
    processes.iter_mut().for_each(Process::release);
    let ended: Vec<_> = processes.into_iter().map(Process::end).collect();
    // The failure of one makes others fail: all are told.
    let failed: String = ended
        .iter()
        .enumerate()
        .filter(|(_, (status, ..))| !status.success())
        .map(|(rank, (status, said, errors))| {
            format!("PE {rank}: {status}; it said {said:?}; {errors}\n")
        })
        .collect();
    assert!(failed.is_empty(), "{failed}");
    ended.into_iter().map(|(_, said, _)| said).collect()
}

/// How long the PEs of a job that cannot be complete look for each other.
pub const SHORT: Duration = Duration::from_secs(3);

/// That a call has failed, since this PE is lost.
pub fn is_lost(result: Result<()>, victim: usize) {
    match result {
        Err(Error::PeerLost { pe, .. }) => assert_eq!(pe, victim),
        other => panic!("{other:?} though PE {victim} is lost"),
    }
}
