//! Programs between the hosts that `ci/tcp-hosts` has made, and their ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::command::DEADLINE;

/// The two ends of a connection.
pub struct Ends {
    /// The host that measures, and the one that serves.
    pub near: &'static str,
    pub far: &'static str,
    /// The address of the latter.
    pub address: &'static str,
    /// The interface that joins them.
    pub device: &'static str,
}

/// Two hosts with a veth pair between them.
pub const TWO_HOSTS: Ends = Ends {
    near: "a",
    far: "b",
    address: "b",
    device: "eth0",
};
/// One host, by its loopback interface.
pub const LOOPBACK: Ends = Ends {
    near: "a",
    far: "a",
    address: "127.0.0.1",
    device: "lo",
};

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

/// The rows of a program of two ends, `PROGRAM serve PORT` on the far host and `PROGRAM ADDRESS PORT` on the near one, each on a
/// processor of its own. The second waits for the first.
pub fn pair(
    ends: &Ends,
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
    let _server = Server::start(end(ends.far, "1", "serve"))?;
    rows(&mut end(ends.near, "0", ends.address))
}
