//! Curves over the sizes, as SVG: a panel for each metric and family, a curve for each operation on
//! blocks. The limits of the machine are dashed, in every panel of their metric.

use anyhow::ensure;
use oxshmem_figures::units::{Bytes, PerSecond, Time};
use oxshmem_figures::{Curve, Panel, Values, Words, panels};

use super::metric::Metric;
use super::ops::{FAMILIES, Family, limit};
use super::row::Row;
use super::task::Task;

/// Checks that there will be a curve: an operation on blocks of several sizes.
pub fn check(plan: &[Task]) -> anyhow::Result<()> {
    let has_curve = |task: &Task| {
        let same = |other: &&Task| (other.op.name, other.metric) == (task.op.name, task.metric);
        task.op.moves_blocks() && !task.op.is_limit() && plan.iter().filter(same).count() > 1
    };
    ensure!(
        plan.iter().any(has_curve),
        "--plot draws curves over sizes, and no operation is measured at several; see --sizes"
    );
    Ok(())
}

/// The picture of all rows that are curves.
pub fn svg(title: &str, rows: &[Row]) -> anyhow::Result<String> {
    let mut metrics: Vec<Metric> = rows.iter().map(|row| row.metric).collect();
    metrics.sort();
    metrics.dedup();
    let titles: Vec<(String, Metric, Vec<Curve>)> = metrics
        .into_iter()
        .flat_map(|metric| FAMILIES.iter().map(move |family| (metric, family)))
        .map(|(metric, family)| {
            (
                title_of(metric, family),
                metric,
                curves(rows, metric, family),
            )
        })
        .filter(|(.., curves)| curves.iter().any(|curve| !curve.limit))
        .collect();
    let all: Vec<Panel<'_>> = titles
        .iter()
        .map(|(title, metric, curves)| panel(title, *metric, curves.clone()))
        .collect();
    Ok(panels(title, &all)?)
}

fn panel(title: &str, metric: Metric, curves: Vec<Curve>) -> Panel<'_> {
    Panel {
        words: Words {
            title,
            across: "bytes of one operation",
            up: "",
        },
        size: |size| Bytes(size.round() as usize).to_string(),
        value: shown(metric),
        values: match metric {
            Metric::Overlap => Values::Linear(0.0..100.0),
            _ => Values::Logarithmic,
        },
        curves,
    }
}

/// The curves of a family and the limits. The highest at its largest size comes first. An operation
/// has one colour in all panels, a limit one pattern.
fn curves(rows: &[Row], metric: Metric, family: &Family) -> Vec<Curve> {
    let mut curves = Vec::new();
    let blocks = family
        .ops
        .iter()
        .filter(|op| op.moves_blocks() && !op.is_limit());
    for (at, op) in blocks.enumerate().chain(limit::OPS.iter().enumerate()) {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.metric == metric && row.op == op.name)
            .filter_map(|row| Some((row.bytes as f64, row.value()?)))
            .filter(|(_, value)| value.is_finite() && (*value > 0.0 || metric == Metric::Overlap))
            .collect();
        // A limit with a single size counts for all sizes.
        if points.len() > 1 || (op.is_limit() && !points.is_empty()) {
            curves.push(Curve {
                name: op.name.into(),
                at,
                points,
                limit: op.is_limit(),
            });
        }
    }
    let last = |curve: &Curve| curve.points.last().map_or(0.0, |(_, value)| *value);
    curves.sort_by(|a, b| last(b).total_cmp(&last(a)));
    curves
}

fn title_of(metric: Metric, family: &Family) -> String {
    format!("{}; {}", family.name, caption(metric))
}

fn caption(metric: Metric) -> &'static str {
    match metric {
        Metric::Latency => "latency: median time of one operation",
        Metric::Rate => "rate: operations per second",
        Metric::Bandwidth => "bandwidth: one direction",
        Metric::Bidirectional => "bandwidth: both directions at once, their sum",
        Metric::Overlap => "overlap: share of a transfer's time left for computing",
    }
}

/// The format of its values.
fn shown(metric: Metric) -> fn(f64) -> String {
    match metric {
        Metric::Latency => |ns| Time(ns).to_string(),
        Metric::Rate => |rate| PerSecond(rate, "/s").to_string(),
        Metric::Bandwidth | Metric::Bidirectional => |rate| PerSecond(rate, "B/s").to_string(),
        Metric::Overlap => |percent| format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::args::parsed;
    use crate::perf::plan::plan;
    use crate::perf::table::tests::example;

    #[test]
    fn a_picture_has_a_panel_for_each_family_and_a_curve_for_each_operation() {
        let mut rows = Vec::new();
        for bytes in [8, 64, 512] {
            let time = 10.0 + bytes as f64;
            rows.push(example(Metric::Latency, "memcpy", bytes, time));
            rows.push(example(Metric::Latency, "put", bytes, time * 1.2));
            rows.push(example(Metric::Latency, "get", bytes, time * 1.5));
            rows.push(example(Metric::Latency, "reduce", bytes, time * 9.0));
            rows.push(example(Metric::Overlap, "put-nbi", bytes, time));
        }
        rows.push(example(Metric::Latency, "bare-ping-pong", 8, 100.0));
        // Neither operation moves blocks.
        rows.push(example(Metric::Latency, "barrier", 0, 100.0));
        rows.push(example(Metric::Rate, "add", 8, 100.0));
        let svg = svg("2 PEs of one & the same <host>", &rows).unwrap();
        let picture = roxmltree::Document::parse(&svg).unwrap();
        let all = |name: &str| {
            picture
                .descendants()
                .filter(|node| node.has_tag_name(name))
                .count()
        };
        // Three points and one in the list of names, for four operations.
        assert_eq!(all("circle"), 4 * 4, "{svg}");
        let texts: Vec<&str> = picture
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .filter_map(|node| node.text().map(str::trim))
            .collect();
        // The limits stand in both panels of their metric.
        for (name, times) in [
            ("put", 1),
            ("get", 1),
            ("reduce", 1),
            ("put-nbi", 1),
            ("memcpy", 2),
            ("bare-ping-pong", 2),
        ] {
            let found = texts.iter().filter(|text| **text == name).count();
            assert_eq!(found, times, "{name}: {texts:?}");
        }
        for name in ["barrier", "add"] {
            assert!(!texts.contains(&name), "{texts:?}");
        }
        for title in [
            "puts and gets; latency: median time of one operation",
            "reductions and scans; latency: median time of one operation",
            "nonblocking puts and gets; overlap: share of a transfer's time left for computing",
        ] {
            assert!(texts.contains(&title), "{texts:?}");
        }
        let rate = texts
            .iter()
            .any(|text| text.contains(caption(Metric::Rate)));
        assert!(!rate, "{texts:?}");
        assert!(
            texts.contains(&"2 PEs of one & the same <host>"),
            "{texts:?}"
        );
    }

    #[test]
    fn nothing_to_draw_is_known_before_measuring() {
        let checked = |args: &[&str]| check(&plan(&parsed(args), 2).unwrap());
        assert!(checked(&["put", "--sizes", "8..64", "--plot", "x"]).is_ok());
        assert!(checked(&["--plot", "x"]).is_ok());
        for args in [
            &["put", "--sizes", "8", "--plot", "x"][..],
            &["barrier", "--plot", "x"],
            &["memcpy", "--plot", "x"],
        ] {
            let text = checked(args).unwrap_err().to_string();
            assert!(text.contains("--sizes"), "{text}");
        }
    }
}
