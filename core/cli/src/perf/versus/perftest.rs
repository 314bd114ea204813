//! perftest's side: its programs as children of the two PEs, which sleep meanwhile.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::row::{Row, Unit};

/// The deadline of a run, far longer than any takes.
const DEADLINE: Duration = Duration::from_secs(90);
/// The interval between polls whether a child has ended or listens; no figure depends on it.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The device and port by which both ends of a run meet.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// The device and its port, such as `mlx5_0` and `1`.
    pub device: String,
    pub port: String,
    /// The TCP port on which the server listens.
    pub tcp: u16,
}

/// Finds a program on the PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places.into_iter().find(|place| place.is_file())
}

fn command(row: &Row, at: &Meeting, count: u64) -> Command {
    let mut command = Command::new(row.program);
    let (bytes, count, tcp) = (row.bytes.to_string(), count.to_string(), at.tcp.to_string());
    command.args(["-F", "-d", &at.device, "-i", &at.port]);
    command.args(["-n", &count, "-p", &tcp]);
    // Atomics have only one size.
    if row.program != "ib_atomic_lat" {
        command.args(["-s", &bytes]);
    }
    if let Ok(index) = std::env::var("OXSHMEM_VERBS_GID_INDEX") {
        command.args(["-x", &index]);
    }
    command.args(row.args);
    command
}

/// Starts a child that ends with this process, which its job may kill.
fn start(command: &mut Command) -> anyhow::Result<Child> {
    let until_death = || {
        // SAFETY: this call only asks the kernel for a signal.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
    unsafe { command.pre_exec(until_death) };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn();
    child.with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// Waits for a child and returns its output, which fits into a pipe.
pub fn finish(mut child: Child, name: &str) -> anyhow::Result<String> {
    let since = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if since.elapsed() > DEADLINE => break None,
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let (mut out, mut err) = (String::new(), String::new());
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut out)?;
    }
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_string(&mut err)?;
    }
    let last = |text: &str| text.trim().lines().last().unwrap_or_default().to_owned();
    match status {
        Some(status) if status.success() => Ok(out),
        Some(status) => bail!("{name}: {status}: {} {}", last(&out), last(&err)),
        None => bail!("{name} did not end within {} s", DEADLINE.as_secs()),
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    child: Child,
    name: &'static str,
}

impl Server {
    pub fn start(row: &Row, at: &Meeting, count: u64) -> anyhow::Result<Server> {
        let mut child = start(&mut command(row, at, count))?;
        let since = Instant::now();
        while !listens(at.tcp) {
            if child.try_wait()?.is_some() || since.elapsed() > DEADLINE {
                child.kill()?;
                let name = format!("{} (server)", row.program);
                let output = finish(child, &name)?;
                bail!("{name} does not listen: {output}");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(Server {
            child,
            name: row.program,
        })
    }

    /// Waits for its end, which comes with the client's.
    pub fn finish(self) -> anyhow::Result<()> {
        finish(self.child, &format!("{} (server)", self.name)).map(drop)
    }
}

/// Whether a socket of this host, or of this process's network namespace, listens on a TCP port.
fn listens(port: u16) -> bool {
    let files = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let tables = files
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok());
    tables.into_iter().any(|table| in_table(&table, port))
}

/// Whether the kernel's table has a listening socket with this local port.
fn in_table(table: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&suffix)) && words.nth(1) == Some(LISTEN)
    })
}

/// Runs the client's part and returns its figure, in the row's unit. The figure is 0 if perftest
/// could not determine the clock's frequency, as can happen on emulated processors.
pub fn client(row: &Row, at: &Meeting, count: u64, server: &str) -> anyhow::Result<f64> {
    let text = finish(start(command(row, at, count).arg(server))?, row.program)?;
    figure(row.unit, &text).with_context(|| format!("{} printed:\n{text}", row.program))
}

/// Runs the [`client`] under strace; returns the number of its system calls in all.
pub fn traced_client(
    row: &Row,
    at: &Meeting,
    count: u64,
    server: &str,
    file: &Path,
) -> anyhow::Result<u64> {
    let inner = command(row, at, count);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-c", "-o"]).arg(file);
    traced.arg(inner.get_program()).args(inner.get_args());
    finish(start(traced.arg(server))?, "strace")?;
    super::count::total(file)
}

/// The figure in a table that perftest printed.
fn figure(unit: Unit, text: &str) -> anyhow::Result<f64> {
    const MIB: f64 = 1_048_576.0;
    let mut lines = text.lines().map(str::trim);
    let header = lines.by_ref().find(|line| line.starts_with("#bytes"));
    let header = header.context("no table")?;
    let row = lines.find(|line| !line.is_empty()).context("no row")?;
    let columns: Vec<f64> = row
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(f64::NAN))
        .collect();
    // Titles of several words, in perftest's order.
    let (title, column, factor) = match unit {
        Unit::Nanoseconds => ("t_typical[usec]", 4, 1e3),
        Unit::Bandwidth => ("BW average[MB/sec]", 3, MIB),
        Unit::Rate => ("MsgRate[Mpps]", 4, 1e6),
    };
    ensure!(header.contains(title), "no column {title}");
    let value = columns.get(column).copied().unwrap_or(f64::NAN) * factor;
    ensure!(value >= 0.0 && value.is_finite(), "no figure below {title}");
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: &str = "\
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:09:02
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\u{20}
 8       500          43.24          2669.86      44.19    \t       52.98       \t85.05  \t\t316.03  \t\t2669.86
---------------------------------------------------------------------------------------
";
    const BANDWIDTH: &str = "\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      300              74.15              63.41  \t\t   0.001015
";

    #[test]
    fn perftests_tables_are_read() {
        assert_eq!(figure(Unit::Nanoseconds, LATENCY).unwrap(), 44190.0);
        let bandwidth = figure(Unit::Bandwidth, BANDWIDTH).unwrap();
        assert_eq!(bandwidth, 63.41 * 1_048_576.0);
        let rate = figure(Unit::Rate, BANDWIDTH).unwrap();
        assert!((rate - 1015.0).abs() < 1e-6, "{rate}");
        let clockless = BANDWIDTH.replace("0.001015", "0.000000");
        assert_eq!(figure(Unit::Rate, &clockless).unwrap(), 0.0);
    }

    #[test]
    fn a_table_without_the_figure_is_refused() {
        for (unit, text) in [
            (Unit::Nanoseconds, ""),
            (Unit::Nanoseconds, BANDWIDTH),
            (Unit::Rate, LATENCY),
            (Unit::Rate, BANDWIDTH.lines().next().unwrap()),
            (Unit::Rate, &BANDWIDTH.replace("0.001015", "nan")),
        ] {
            assert!(figure(unit, text).is_err(), "{unit:?}: {text}");
        }
    }

    #[test]
    fn a_listening_port_is_found_and_a_connected_one_is_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(port));
        let connected = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert!(!listens(connected.local_addr().unwrap().port()));
        drop(listener);
    }
}
