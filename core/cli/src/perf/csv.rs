//! Rows as comma-separated values, for spreadsheets. Names contain neither commas nor quotes.

use super::row::Row;
use super::statistics::Tail;

const COLUMNS: [&str; 17] = [
    "metric",
    "op",
    "bytes",
    "window",
    "threads",
    "min_ns",
    "median_ns",
    "p99_ns",
    "p99_9_ns",
    "tail_of",
    "bytes_per_second",
    "share_of_memcpy",
    "operations_per_second",
    "overlap_percent",
    "batches",
    "repetitions",
    "checks",
];

/// A line of column names, then one line for each row. A value that a row lacks is empty.
pub fn text(rows: &[Row]) -> String {
    let mut text = COLUMNS.join(",");
    text.push('\n');
    for row in rows {
        text.push_str(&cells(row).join(","));
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let tail = match row.time_ns.tail {
        Tail::Operations => "operations",
        Tail::Batches => "batches",
    };
    [
        row.metric.name().into(),
        row.op.into(),
        row.bytes.to_string(),
        row.window.to_string(),
        row.threads.to_string(),
        row.time_ns.min.to_string(),
        row.time_ns.median.to_string(),
        row.time_ns.p99.to_string(),
        row.time_ns.p99_9.to_string(),
        tail.into(),
        number(row.bandwidth),
        number(row.of_memcpy),
        row.rate.to_string(),
        number(row.overlap),
        row.batches.to_string(),
        row.repetitions.to_string(),
        row.checks.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::metric::Metric;
    use crate::perf::op::Op;
    use crate::perf::table::tests::example;

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let rows = [
            example(Metric::Latency, "put", 1000, 500.0),
            example(Metric::Overlap, "get-nbi", 0, 4.0),
        ];
        let text = text(&rows);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == COLUMNS.len()));
        assert_eq!(
            lines[1][..7],
            ["latency", "put", "1000", "64", "1", "250", "500"]
        );
        assert_eq!(lines[1][10..14], ["2000000000", "0.98", "2000000", ""]);
        assert_eq!(lines[2][10..14], ["", "0.98", "250000000", "42"]);
    }

    #[test]
    fn names_need_no_quotes() {
        assert!(Op::all().all(|op| !op.name.contains([',', '"', '\n', ' '])));
    }
}
