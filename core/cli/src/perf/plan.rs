//! The rows to measure, in order.

use anyhow::ensure;
use oxshmem::Fold;

use super::args::Args;
use super::metric::Metric;
use super::number::Number;
use super::op::{Op, Who};
use super::ops::limit;
use super::sizes::Sizes;
use super::task::Task;
use super::team::Which;
use crate::litmus::memory::Memory;

/// Bytes that a window's operations move together, at most: a window has fewer large ones.
const WINDOW_BYTES: usize = 64 << 20;
/// Bytes of a PE's heap that an operation's default sizes may need.
const DEFAULT_FOOTPRINT: usize = 64 << 20;

/// All rows, grouped by metric, with the limits that the asked-for rows are compared with.
pub fn plan(args: &Args, pes: usize) -> anyhow::Result<Vec<Task>> {
    let mut tasks = Vec::new();
    let windows = args.metrics.iter().any(|metric| metric.has_window());
    ensure!(
        args.threads == 1 || windows,
        "several threads are measured together; ask for that, such as --metric rate"
    );
    for (op, metric) in asked(args, pes)? {
        let mut sizes = op.sizes(sizes(args, metric));
        if args.sizes.is_none() {
            sizes.retain(|bytes| op.footprint(*bytes, pes).total() <= DEFAULT_FOOTPRINT);
        }
        tasks.extend(sizes.into_iter().map(|bytes| Task {
            op,
            metric,
            bytes,
            window: window(args, metric, bytes),
            threads: if op.has_threads() && metric.has_window() {
                args.threads
            } else {
                1
            },
        }));
    }
    ensure!(
        args.team == Which::World || tasks.iter().any(|task| task.op.who == Who::Team),
        "none of these operations is a team's; leave --team {} out, or name a collective",
        args.team.name()
    );
    let folds = args.fold != Fold::Sum || args.number != Number::default();
    ensure!(
        !folds || tasks.iter().any(|task| task.op.folds()),
        "none of these operations folds anything; leave --fold and --type out, or name reduce"
    );
    // The sort is stable: otherwise in the order of the table.
    tasks.sort_by_key(|task| {
        let name = task.op.name;
        // After a direct access every quiet is a full fence, so this row comes last of all.
        let direct = name == limit::BARE_PING_PONG;
        (direct, task.metric, name != limit::MEMCPY)
    });
    Ok(tasks)
}

/// Operations, and the metrics asked for each.
fn asked(args: &Args, pes: usize) -> anyhow::Result<Vec<(&'static Op, Metric)>> {
    let possible =
        |op: &Op, metric: Metric| pes > 1 || !(op.needs_two() || metric == Metric::Bidirectional);
    let has_memory = |op: &Op| args.memory == Memory::Cuda || !op.needs_gpu();
    let mut asked = Vec::new();
    if args.ops.is_empty() {
        for op in Op::all() {
            match &args.metrics[..] {
                [] => asked.push((op, op.default_metric())),
                metrics => {
                    let can = metrics.iter().filter(|metric| op.can(**metric));
                    asked.extend(can.map(|metric| (op, *metric)));
                }
            }
        }
        asked.retain(|(op, metric)| possible(op, *metric) && has_memory(op));
        ensure!(
            !asked.is_empty(),
            "that needs 2 PEs, and this job has one; see --pes"
        );
    }
    for op in &args.ops {
        let default = [op.default_metric()];
        let metrics = match &args.metrics[..] {
            [] => &default,
            metrics => metrics,
        };
        for metric in metrics {
            let names: Vec<&str> = op.metrics.iter().map(|metric| metric.name()).collect();
            ensure!(
                op.can(*metric),
                "{} has no {}; --metric may be {}",
                op.name,
                metric.name(),
                names.join(", ")
            );
            ensure!(
                possible(op, *metric),
                "{} needs 2 PEs, and this job has one; see --pes",
                op.name
            );
            ensure!(
                has_memory(op),
                "{} is of blocks in GPU memory; add --memory cuda",
                op.name
            );
            asked.push((*op, *metric));
        }
    }
    for op in limit::OPS {
        // A bandwidth is shown beside memcpy's; a plot shows both limits.
        let beside = |metric: &Metric| match metric {
            Metric::Bandwidth => true,
            Metric::Latency | Metric::Rate => args.plot.is_some(),
            Metric::Bidirectional | Metric::Overlap => false,
        };
        let metrics: Vec<Metric> = asked.iter().map(|(_, metric)| *metric).collect();
        let along = op
            .metrics
            .iter()
            .filter(|metric| metrics.contains(metric) && beside(metric) && possible(op, **metric));
        asked.extend(along.map(|metric| (op, *metric)));
    }
    asked.sort_by_key(|(op, metric)| {
        let at = Op::all().position(|other| other.name == op.name);
        (at, *metric)
    });
    asked.dedup_by_key(|(op, metric)| (op.name, *metric));
    Ok(asked)
}

fn sizes(args: &Args, metric: Metric) -> Sizes {
    match (args.sizes, metric) {
        (Some(sizes), _) => sizes,
        (None, Metric::Rate) => Sizes::WORD,
        (None, _) if args.quick => Sizes::QUICK,
        (None, _) => Sizes::DEFAULT,
    }
}

fn window(args: &Args, metric: Metric, bytes: usize) -> u64 {
    if metric.has_window() {
        let fitting = WINDOW_BYTES / bytes.max(1);
        u64::from(args.window).min(fitting.max(1) as u64)
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::args::parsed;

    fn rows(args: &[&str], pes: usize) -> Vec<(Metric, &'static str, usize, u64)> {
        let tasks = plan(&parsed(args), pes).unwrap();
        tasks
            .iter()
            .map(|task| (task.metric, task.op.name, task.bytes, task.window))
            .collect()
    }

    #[test]
    fn limits_come_along_where_they_are_shown() {
        let put = rows(&["put", "--sizes", "8"], 2);
        assert_eq!(put, [(Metric::Latency, "put", 8, 1)]);
        let bandwidth = rows(&["put", "--sizes", "8", "--metric", "bandwidth"], 2);
        let rows_of = |name| (Metric::Bandwidth, name, 8, 64);
        assert_eq!(bandwidth, [rows_of("memcpy"), rows_of("put")]);
        let plot = rows(&["put", "--sizes", "8", "--plot", "x.svg"], 2);
        let latency = |name| (Metric::Latency, name, 8, 1);
        assert_eq!(
            plot,
            [latency("memcpy"), latency("put"), latency("bare-ping-pong")]
        );
        // Only once, though it is also asked for.
        assert_eq!(rows(&["memcpy", "--sizes", "8"], 2).len(), 1);
    }

    #[test]
    fn without_operations_all_that_can_are_measured() {
        let all: Vec<&str> = rows(&["--sizes", "8"], 2).iter().map(|row| row.1).collect();
        let measured = |op: &Op| all.contains(&op.name) != op.needs_gpu();
        assert!(Op::all().all(measured), "{all:?}");
        let on_gpus = rows(&["--sizes", "8", "--memory", "cuda"], 2);
        assert!(Op::all().all(|op| on_gpus.iter().any(|row| row.1 == op.name)));
        let overlap = rows(&["--metric", "overlap", "--sizes", "8"], 2);
        assert_eq!(overlap.len(), 13, "{overlap:?}");
        let both = rows(&["--metric", "rate,bidirectional", "--sizes", "8"], 2);
        let first = both.iter().position(|row| row.0 == Metric::Bidirectional);
        assert!(
            both.iter()
                .skip(first.unwrap())
                .all(|row| row.0 == Metric::Bidirectional)
        );
        let alone = rows(&["--sizes", "8"], 1);
        assert!(!alone.iter().any(|row| row.1 == "barrier"), "{alone:?}");
    }

    #[test]
    fn windows_of_large_operations_are_smaller() {
        let rows = rows(&["put-nbi", "--window", "100", "--sizes", "1M..256M"], 2);
        let windows: Vec<u64> = rows
            .iter()
            .filter(|row| row.1 == "put-nbi")
            .map(|row| row.3)
            .collect();
        assert_eq!(windows, [64, 16, 4, 1, 1]);
    }

    #[test]
    fn sizes_that_nobody_asked_for_leave_room_for_others() {
        let greatest = |args: &[&str], pes| rows(args, pes).iter().map(|row| row.2).max().unwrap();
        assert_eq!(greatest(&["alltoall"], 2), 8 << 20);
        assert_eq!(greatest(&["alltoall"], 100), 128 << 10);
        assert_eq!(greatest(&["alltoall", "--sizes", "1M"], 100), 1 << 20);
        assert_eq!(greatest(&["put"], 100), 8 << 20);
    }

    #[test]
    fn a_metric_that_an_operation_lacks_is_refused_with_those_that_it_has() {
        let refused = |args: &[&str], pes| plan(&parsed(args), pes).err().unwrap().to_string();
        let text = refused(&["barrier", "--metric", "overlap"], 2);
        assert!(
            text.contains("barrier has no overlap") && text.contains("latency"),
            "{text}"
        );
        let text = refused(&["put", "--threads", "2"], 2);
        assert!(text.contains("--metric rate"), "{text}");
        let text = refused(&["put", "--team", "half"], 4);
        assert!(text.contains("--team half"), "{text}");
        let text = refused(&["put", "alltoall", "--type", "f32"], 2);
        assert!(text.contains("--type"), "{text}");
        let text = refused(&["put", "--metric", "bidirectional"], 1);
        assert!(text.contains("--pes"), "{text}");
    }
}
