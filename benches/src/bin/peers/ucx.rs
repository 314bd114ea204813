//! UCX's side: its own `ucx_perftest` over shared memory or TCP, as a serving process and a
//! measuring one.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use oxshmem_benches::affinity;
use oxshmem_benches::sizes::{BLOCKS, TCP_BLOCKS, latency_blocks};

use crate::command::{DEADLINE, number};
use crate::tcp;

/// The deadline for the server to listen.
const START: Duration = Duration::from_secs(20);
/// The duration of a row, about, in nanoseconds.
const ROW_NS: usize = 40_000_000;
/// The same over TCP.
const TCP_ROW_NS: usize = 100_000_000;
/// The port of the server over TCP.
const TCP_PORT: u16 = 18603;

/// One of its tests: a row, and a line of its batch file.
struct Test {
    row: String,
    test: &'static str,
    size: usize,
    /// The duration of an operation, about, in nanoseconds.
    takes: usize,
}

fn tests() -> Vec<Test> {
    let test = |row: String, test, size, least, bytes_a_ns| Test {
        row,
        test,
        size,
        takes: least + size / bytes_a_ns,
    };
    let mut all = vec![
        test("put8".into(), "ucp_put_bw", 8, 10, 10),
        test("get8".into(), "ucp_get", 8, 20, 10),
        test("fetch_add8".into(), "ucp_fadd", 8, 20, 10),
        test("ping_pong".into(), "ucp_put_lat", 8, 1000, 10),
    ];
    for size in BLOCKS {
        all.push(test(format!("put_{size}"), "ucp_put_bw", size, 20, 10));
        all.push(test(format!("get_{size}"), "ucp_get", size, 20, 10));
    }
    for size in latency_blocks() {
        let row = format!("put_latency_{size}");
        all.push(test(row, "ucp_put_lat", size, 1000, 5));
    }
    all
}

/// Measures every row.
pub fn rows() -> anyhow::Result<Vec<(String, f64)>> {
    let tests = tests();
    let batch = Batch::of(&tests, ROW_NS)?;
    // The listener is closed at once: the server takes the port next.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .context("no free port for ucx_perftest")?
        .port();
    let cpus = affinity::allowed()?;
    let [serving, measuring] = cpus[..] else {
        bail!("ucx_perftest needs two processors, and not {}", cpus.len());
    };
    // The server ends with this program, however that ends.
    let mut serve = perftest("setpriv", &["--pdeathsig", "KILL"], &batch, port, serving);
    let mut server = Server(
        serve
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting setpriv, of util-linux, for ucx_perftest")?,
    );
    let mut measure = perftest("timeout", &["-k", "5", DEADLINE], &batch, port, measuring);
    measure.args(["-v", "-f", "127.0.0.1"]);
    let text = once_it_listens(&mut measure, || Ok(server.0.try_wait()?.is_some()))?;
    let rows = tests.into_iter().map(|test| test.row);
    rows.map(|row| figure(&text, &row).map(|ns| (row, ns)))
        .collect()
}

/// The rows between two ends over TCP, whose operations take a thousand times as long.
fn tcp_tests() -> Vec<Test> {
    let test = |row: String, test, size, least| Test {
        row,
        test,
        size,
        takes: least + size,
    };
    let mut all = vec![
        test("put8".into(), "ucp_put_bw", 8, 1000),
        test("get8".into(), "ucp_get", 8, 20_000),
        test("fetch_add8".into(), "ucp_fadd", 8, 20_000),
        test("ping_pong".into(), "ucp_put_lat", 8, 20_000),
    ];
    for size in TCP_BLOCKS {
        all.push(test(format!("put_{size}"), "ucp_put_bw", size, 5000));
        all.push(test(format!("get_{size}"), "ucp_get", size, 20_000));
        let row = format!("put_latency_{size}");
        all.push(test(row, "ucp_put_lat", size, 20_000));
    }
    all
}

/// Measures every row between two ends over TCP.
pub fn over_tcp(ends: &tcp::Ends) -> anyhow::Result<Vec<(String, f64)>> {
    let tests = tcp_tests();
    let batch = Batch::of(&tests, TCP_ROW_NS)?;
    let perftest = |host: &str, cpu: usize| {
        let mut command = perftest(
            "on-host",
            &[host, "timeout", "-k", "5", DEADLINE],
            &batch,
            TCP_PORT,
            cpu,
        );
        command
            .env("UCX_TLS", "tcp,self")
            .env("UCX_NET_DEVICES", ends.device);
        command
    };
    let mut server = tcp::Server::start(perftest(ends.far, 1))?;
    let mut measure = perftest(ends.near, 0);
    measure.args(["-v", "-f", ends.address]);
    let text = once_it_listens(&mut measure, || server.has_ended())?;
    let rows = tests.into_iter().map(|test| test.row);
    rows.map(|row| figure(&text, &row).map(|ns| (row, ns)))
        .collect()
}

/// The output of a measuring process, whose server may not listen yet.
fn once_it_listens(
    measure: &mut Command,
    mut has_ended: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<String> {
    let since = Instant::now();
    loop {
        let output = measure.output().context("starting ucx_perftest")?;
        // It prints its errors there, too.
        let told = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return Ok(told.into_owned());
        }
        let said = format!("{told}{}", String::from_utf8_lossy(&output.stderr));
        let waits = said.contains("refused") && since.elapsed() < START;
        ensure!(
            waits && !has_ended()?,
            "{measure:?}: {}: {}",
            output.status,
            said.trim()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The nanoseconds of an operation, from the messages per second in the last column.
fn figure(text: &str, row: &str) -> anyhow::Result<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(row)?.strip_prefix(','))
        .with_context(|| format!("ucx_perftest told nothing of `{row}`: {text}"))?;
    let rate = number(line.rsplit(',').next().unwrap_or_default())?;
    ensure!(rate > 0.0, "ucx_perftest did nothing for `{row}`");
    Ok(1e9 / rate)
}

/// `ucx_perftest`, run by another program.
fn perftest(by: &str, options: &[&str], batch: &Batch, port: u16, cpu: usize) -> Command {
    let mut command = Command::new(by);
    command
        .args(options)
        .args(["ucx_perftest", "-b"])
        .arg(&batch.0)
        .args(["-p", &port.to_string(), "-c", &cpu.to_string()])
        .stdin(Stdio::null())
        .env("UCX_TLS", "posix,sysv,self")
        .env("UCX_LOG_LEVEL", "error");
    command
}

/// A file of tests, removed when dropped.
struct Batch(PathBuf);

impl Batch {
    fn of(tests: &[Test], row_ns: usize) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("peers-ucx-{}", std::process::id()));
        let mut file = std::fs::File::create_new(&path)
            .with_context(|| format!("making {}", path.display()))?;
        let batch = Batch(path);
        for test in tests {
            let times = (row_ns / test.takes).max(10);
            let Test {
                row, test, size, ..
            } = test;
            let warm = times / 10;
            writeln!(file, "{row} -t {test} -s {size} -n {times} -w {warm}")?;
        }
        Ok(batch)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("peers: {} is left: {error}", self.0.display());
        }
    }
}

/// The server; its figures are complete when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        if let Err(error) = ended {
            eprintln!("peers: ucx_perftest still serves: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `ucx_perftest -b FILE -v -f` of UCX 1.13.
    const PRINTED: &str = "\
peers-ucx,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
put_16384,1000,0.600,0.602,0.602,25955.18,25955.18,1661131,1661131
put_1638,1000,0.600,0.602,0.602,25955.18,25955.18,2000000,2000000
put8,0,0.000,0.000,0.000,0.00,0.00,0,0
";

    #[test]
    fn a_row_is_found_by_its_whole_name() {
        assert_eq!(figure(PRINTED, "put_1638").unwrap(), 500.0);
    }

    #[test]
    fn a_row_that_is_missing_or_empty_is_an_error_that_names_it() {
        for row in ["get8", "put8"] {
            let error = figure(PRINTED, row).unwrap_err().to_string();
            assert!(error.contains(row), "{error}");
        }
    }

    #[test]
    fn no_two_tests_have_one_name() {
        for tests in [tests(), tcp_tests()] {
            let mut rows: Vec<String> = tests.into_iter().map(|test| test.row).collect();
            let count = rows.len();
            rows.sort();
            rows.dedup();
            assert_eq!(rows.len(), count);
        }
    }
}
