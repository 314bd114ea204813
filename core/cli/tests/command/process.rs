//! Runs of the command, with a deadline.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The command itself, as the program of a job.
pub const BINARY: &str = env!("CARGO_BIN_EXE_oxshmem");

/// The deadline, far longer than any command of these tests takes.
const DEADLINE: Duration = Duration::from_secs(120);

pub fn command(args: &[&str]) -> Command {
    program(BINARY, args)
}

/// A command for any program, which may start this one.
pub fn program(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    // The tests must not depend on the settings of the user who runs them.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.contains("SHMEM_") || name.starts_with("SMA_") {
            command.env_remove(name);
        }
    }
    command
        .args(args)
        .stdin(Stdio::null())
        .env("OXSHMEM_SYMMETRIC_SIZE", "64M");
    command
}

/// Runs a command to its end; it must come before the deadline.
pub fn finish(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let read_stdout = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let read_stderr = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > DEADLINE {
            child.kill().unwrap();
            let (out, err) = (read_stdout.join().unwrap(), read_stderr.join().unwrap());
            let [out, err] = [out, err].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            panic!("{command:?} runs for more than {DEADLINE:?}\nstdout: {out}\nstderr: {err}");
        }
        // Polling; nothing depends on the interval.
        std::thread::sleep(Duration::from_millis(5));
    };
    Output {
        status,
        stdout: read_stdout.join().unwrap(),
        stderr: read_stderr.join().unwrap(),
    }
}

/// Status, stdout and stderr.
pub fn run(args: &[&str]) -> (Option<i32>, String, String) {
    outcome(&mut command(args))
}

pub fn outcome(command: &mut Command) -> (Option<i32>, String, String) {
    let output = finish(command);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// The stdout of a command that must succeed.
pub fn stdout_of(args: &[&str]) -> String {
    let (status, stdout, stderr) = run(args);
    assert_eq!(status, Some(0), "{args:?}: {stdout}{stderr}");
    stdout
}

pub fn json_of(args: &[&str]) -> serde_json::Value {
    let stdout = stdout_of(args);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {stdout}"))
}
