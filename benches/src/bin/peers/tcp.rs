//! Programs between the hosts that `ci/tcp-hosts` has made, and their ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::command::DEADLINE;

/// A program on one host, which ends by the deadline.
pub fn on(host: &str, program: &Path) -> Command {
    let mut command = Command::new("on-host");
    command
        .args([host, "timeout", "-k", "5", DEADLINE])
        .arg(program);
    command
}

/// A process that ends when this is dropped.
pub struct Server(Child);

impl Server {
    /// Starts it.
    pub fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("starting {command:?}; benches/tcp makes the hosts"))?;
        Ok(Server(child))
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The rows of a program of two ends, `PROGRAM serve PORT` on host b and `PROGRAM b PORT` on host a, each on a processor of its
/// own. The second waits for the first.
pub fn pair(
    program: &Path,
    port: u16,
    rows: impl FnOnce(&mut Command) -> anyhow::Result<Vec<(String, f64)>>,
) -> anyhow::Result<Vec<(String, f64)>> {
    let end = |host: &str, cpu: &str, word: &str| {
        let mut command = on(host, "taskset".as_ref());
        command.args(["-c", cpu]).arg(program);
        command.args([word, &port.to_string()]);
        command
    };
    let _server = Server::start(end("b", "1", "serve"))?;
    rows(&mut end("a", "0", "b"))
}
