//! The table: a section for each metric.

use oxshmem_figures::units::{Bytes, PerSecond, Time};

use super::metric::Metric;
use super::row::{Row, per_second};
use super::statistics::Tail;
use super::task::Task;

/// Width of each column after the operation and the size.
const WIDTH: usize = 12;
/// Width of the operation's column.
const NAME: usize = 22;

/// The names of a section's columns.
fn columns(metric: Metric) -> &'static [&'static str] {
    match metric {
        Metric::Latency => &["min", "median", "p99", "p99.9", "bandwidth"],
        Metric::Rate => &["rate", "best", "worst 1 %", "time each"],
        Metric::Bandwidth => &["bandwidth", "best", "worst 1 %", "rate", "of memcpy"],
        Metric::Bidirectional => &["bandwidth", "best", "worst 1 %", "rate"],
        Metric::Overlap => &["overlap", "transfer"],
    }
}

/// The lines above a section's rows, underlined.
pub fn header(metric: Metric) -> String {
    let columns: Vec<String> = columns(metric).iter().map(|&name| name.into()).collect();
    let names = line(metric.name(), "size", &columns);
    let line = "-".repeat(names.len());
    format!("{names}\n{line}")
}

pub fn row(row: &Row) -> String {
    let (times, bytes) = (&row.time_ns, row.bytes as f64);
    let cells = match row.metric {
        Metric::Latency => {
            let mark = match times.tail {
                Tail::Operations => "",
                Tail::Batches => "~",
            };
            vec![
                Time(times.min).to_string(),
                Time(times.median).to_string(),
                format!("{mark}{}", Time(times.p99)),
                format!("{mark}{}", Time(times.p99_9)),
                row.bandwidth.map_or("-".into(), |bandwidth| {
                    PerSecond(bandwidth, "B/s").to_string()
                }),
            ]
        }
        Metric::Rate => {
            let rate = |time| PerSecond(per_second(1.0, time), "/s").to_string();
            vec![
                rate(times.median),
                rate(times.min),
                rate(times.p99),
                Time(times.median).to_string(),
            ]
        }
        Metric::Bandwidth | Metric::Bidirectional => {
            let bandwidth = |time| PerSecond(per_second(bytes, time), "B/s").to_string();
            let mut cells = vec![
                bandwidth(times.median),
                bandwidth(times.min),
                bandwidth(times.p99),
                PerSecond(row.rate, "/s").to_string(),
            ];
            if row.metric == Metric::Bandwidth {
                let share = row.of_memcpy.map(|share| format!("{:.0} %", share * 100.0));
                cells.push(share.unwrap_or("-".into()));
            }
            cells
        }
        Metric::Overlap => vec![
            format!("{:.0} %", row.overlap.unwrap_or(f64::NAN)),
            Time(times.median).to_string(),
        ],
    };
    let size = match row.bytes {
        0 => "-".into(),
        bytes => Bytes(bytes).to_string(),
    };
    line(row.op, &size, &cells)
}

fn line(name: &str, size: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:>WIDTH$}")).collect();
    format!("{name:<NAME$}{size:>9}{cells}")
}

/// A row's label.
pub fn label(task: &Task) -> String {
    name(task.metric, task.op.name, task.bytes)
}

pub fn name(metric: Metric, op: &str, bytes: usize) -> String {
    let metric = metric.name();
    match bytes {
        0 => format!("{metric} of {op}"),
        bytes => format!("{metric} of {op}, {}", Bytes(bytes)),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::perf::statistics::Times;
    use clap::ValueEnum;

    pub fn example(metric: Metric, op: &'static str, bytes: usize, median: f64) -> Row {
        Row {
            metric,
            op,
            bytes,
            window: 64,
            threads: 1,
            time_ns: Times {
                min: median / 2.0,
                median,
                p99: 99_999.0,
                p99_9: 123_456.0,
                tail: Tail::Batches,
            },
            bandwidth: (bytes > 0).then(|| per_second(bytes as f64, median)),
            of_memcpy: Some(0.98),
            rate: per_second(1.0, median),
            overlap: (metric == Metric::Overlap).then_some(42.0),
            batches: 7,
            repetitions: 1,
            checks: 1,
        }
    }

    #[test]
    fn rows_line_up_with_their_headers() {
        for metric in Metric::value_variants() {
            for bytes in [0, 1 << 20, 1023 << 10] {
                let row = row(&example(*metric, "wait-until-some-vector", bytes, 123.0));
                let width = row.chars().count();
                let header = header(*metric);
                assert!(
                    header.lines().all(|line| line.len() == width),
                    "{header}\n{row}"
                );
            }
        }
    }

    #[test]
    fn a_row_shows_what_its_metric_asks() {
        let text = |metric| row(&example(metric, "put", 1000, 500.0));
        assert!(text(Metric::Latency).contains("500 ns     ~100 µs"));
        assert!(text(Metric::Latency).ends_with("2.00 GB/s"));
        assert!(text(Metric::Rate).contains("2.00 M/s"));
        assert!(text(Metric::Bandwidth).ends_with("98 %"));
        assert!(text(Metric::Bidirectional).contains("2.00 GB/s   4.00 GB/s"));
        assert!(text(Metric::Overlap).contains("42 %"));
    }
}
