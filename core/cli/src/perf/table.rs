//! What people read: parameters and rows.

use std::fmt;

use oxshmem::World;
use oxshmem_topo::Policy;
use serde::Serialize;

use super::leader::Row;
use super::measure::Effort;
use super::op::Op;

/// The circumstances of a measurement.
#[derive(Serialize)]
pub struct Parameters {
    version: &'static str,
    hostname: String,
    cpu_model: String,
    pes: usize,
    /// None in a job that something else started.
    bind: Option<&'static str>,
    /// The CPUs that each PE may use.
    cpus: Vec<String>,
    /// From PE 0 to the PE that it measures against.
    transport: Option<&'static str>,
    mapped: bool,
    /// Of each PE, in bytes.
    heap_limit: usize,
    memory_model: String,
    visibility: String,
    /// As set.
    spin: String,
    check: String,
    /// None where operations are counted and not timed in batches.
    batch_us: Option<f64>,
    row_ms: Option<f64>,
    /// The build's: without optimisation the numbers mean little.
    optimised: bool,
}

impl Parameters {
    pub fn of(
        world: &World,
        bind: Option<Policy>,
        effort: Option<Effort>,
        cpus: Vec<String>,
    ) -> Self {
        let target = usize::from(world.n_pes() > 1);
        let routes = world.routes();
        let route = routes.get(target);
        let set = |name: &str, default: &str| std::env::var(name).unwrap_or(default.into());
        Parameters {
            version: env!("CARGO_PKG_VERSION"),
            hostname: oxshmem_topo::hostname(),
            cpu_model: cpu_model(),
            pes: world.n_pes(),
            bind: bind.map(Policy::name),
            cpus,
            transport: route.and_then(|route| route.transport),
            mapped: route.is_some_and(|route| route.mapped),
            heap_limit: world.heap_limit(),
            memory_model: format!("{:?}", world.model()).to_lowercase(),
            visibility: format!("{:?}", world.visibility()).to_lowercase(),
            spin: set("OXSHMEM_SPIN", "auto"),
            check: set("OXSHMEM_CHECK", "0"),
            batch_us: effort.map(|effort| effort.batch.as_secs_f64() * 1e6),
            row_ms: effort.map(|effort| effort.row.as_secs_f64() * 1e3),
            optimised: !cfg!(debug_assertions),
        }
    }
}

/// The CPUs that this process may use, as a list.
pub fn allowed_cpus() -> String {
    oxshmem_topo::usable_cpus().map_or("not known".into(), |usable| usable.allowed.to_string())
}

/// What the kernel calls the CPU.
fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| {
        let (name, model) = line.split_once(':')?;
        (name.trim() == "model name").then(|| model.trim().to_owned())
    };
    text.lines()
        .find_map(named)
        .unwrap_or_else(|| std::env::consts::ARCH.into())
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "oxshmem perf {} on {}, {}",
            self.version, self.hostname, self.cpu_model
        )?;
        let bind = self.bind.map_or("as the job has them".into(), |bind| {
            format!("bound to {bind}")
        });
        writeln!(f, "PEs      {}, {bind}", self.pes)?;
        let mut cpus: Vec<(&str, usize)> = Vec::new();
        for list in &self.cpus {
            match cpus.iter_mut().find(|(known, _)| known == list) {
                Some((_, count)) => *count += 1,
                None => cpus.push((list, 1)),
            }
        }
        let cpus: Vec<String> = cpus
            .iter()
            .map(|(list, n)| format!("{n} on {list}"))
            .collect();
        writeln!(f, "CPUs     {}", cpus.join("; "))?;
        let how = if self.mapped {
            "loaded and stored directly"
        } else {
            "by lanes"
        };
        writeln!(f, "route    {}, {how}", self.transport.unwrap_or("none"))?;
        writeln!(f, "heap     {} a PE", Rounded(self.heap_limit))?;
        writeln!(
            f,
            "order    {}; visibility {}; spin {}; check {}",
            self.memory_model, self.visibility, self.spin, self.check
        )?;
        if let (Some(batch), Some(row)) = (self.batch_us, self.row_ms) {
            writeln!(f, "batches  of at least {batch} µs, {row} ms a row")?;
        }
        if !self.optimised {
            writeln!(
                f,
                "warning  built without optimisation: the times say little"
            )?;
        }
        Ok(())
    }
}

/// The line above the rows, underlined.
pub fn header() -> String {
    let [op, size, min, median, p99, bandwidth] =
        ["op", "size", "min", "median", "p99", "bandwidth"];
    let names = format!("{op:<11}{size:>9}  {min:>10}  {median:>10}  {p99:>10}  {bandwidth:>12}");
    let line = "-".repeat(names.len());
    format!("{names}\n{line}")
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.bytes == 0 {
            "-".into()
        } else {
            Bytes(self.bytes).to_string()
        };
        let [min, median, p99] = [
            self.latency_ns.min,
            self.latency_ns.median,
            self.latency_ns.p99,
        ]
        .map(Time);
        write!(
            f,
            "{:<11}{size:>9}  {min:>10}  {median:>10}  {p99:>10}",
            self.op
        )?;
        match self.bandwidth {
            Some(bandwidth) => write!(f, "  {:>7.2} GB/s", bandwidth / 1e9),
            None => write!(f, "  {:>12}", "-"),
        }
    }
}

/// A row's name.
pub fn label(op: Op, bytes: usize) -> String {
    match bytes {
        0 => op.name().into(),
        bytes => format!("{} of {}", op.name(), Bytes(bytes)),
    }
}

/// Nanoseconds, to three digits in the unit that fits.
struct Time(f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            ns if ns < 999.5 => (ns, "ns"),
            ns if ns < 999.5e3 => (ns / 1e3, "µs"),
            ns if ns < 999.5e6 => (ns / 1e6, "ms"),
            ns => (ns / 1e9, "s"),
        };
        let digits = match value {
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

/// Bytes, in the largest unit of 1024 that divides them.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let unit = units
            .into_iter()
            .find(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit));
        let (unit, name) = unit.unwrap_or((1, "B"));
        f.pad(&format!("{} {name}", self.0 / unit))
    }
}

/// Bytes, in the unit that fits.
pub struct Rounded(pub usize);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.into_iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) => write!(f, "{:.1} {name}", self.0 as f64 / unit as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::measure::Latency;

    #[test]
    fn numbers_are_shown_in_the_unit_that_fits() {
        let times = [0.496, 9.99, 12.34, 999.4, 999.6, 123_456.0, 5e6, 2e9];
        let shown: Vec<String> = times.map(|ns| Time(ns).to_string()).to_vec();
        let expected = [
            "0.50 ns", "9.99 ns", "12.3 ns", "999 ns", "1.00 µs", "123 µs", "5.00 ms", "2.00 s",
        ];
        assert_eq!(shown, expected);
        let bytes = [1, 1000, 1024, 1536, 8 << 20, 3 << 30].map(|b| Bytes(b).to_string());
        assert_eq!(
            bytes,
            ["1 B", "1000 B", "1 KiB", "1536 B", "8 MiB", "3 GiB"]
        );
    }

    #[test]
    fn rows_line_up_with_the_header() {
        let row = |bytes, bandwidth| Row {
            op: "put-signal",
            bytes,
            latency_ns: Latency {
                min: 1.0,
                median: 123.0,
                p99: 99_999.0,
            },
            bandwidth,
            batches: 7,
            repetitions: 1,
        };
        for row in [
            row(0, None),
            row(1 << 20, Some(1.5e9)),
            row(1023 << 10, Some(1e12)),
        ] {
            let width = row.to_string().chars().count();
            assert!(header().lines().all(|line| line.len() == width), "{row}");
        }
    }
}
