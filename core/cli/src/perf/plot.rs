//! Curves over the sizes, as SVG: a panel for each metric, both axes logarithmic, one curve for
//! each operation on blocks. What the machine itself can do is dashed.

use std::ops::Range;

use anyhow::{Context, ensure};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::measure::Task;
use super::metric::Metric;
use super::op::Op;
use super::row::Row;
use super::units::{Bytes, PerSecond, Time};

const WIDTH: u32 = 900;
/// At least; more if there are many names.
const PANEL: u32 = 460;
const TITLE: u32 = 30;
/// For the names, at the right.
const NAMES: u32 = 150;
const NAME_HEIGHT: u32 = 17;
/// Above them.
const NAMES_TOP: u32 = 50;

/// Colours that most people can tell apart; curves beyond have them again, with hollow points.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(120, 94, 240),
    RGBColor(90, 90, 90),
];

/// One operation's points, by size.
struct Curve {
    op: &'static str,
    /// Its number among all operations of the picture, which its colour goes by.
    at: usize,
    points: Vec<(f64, f64)>,
    /// Whether it is what the machine itself can do.
    limit: bool,
}

/// Whether there will be a curve: an operation on blocks of several sizes.
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
    let panels: Vec<(Metric, Vec<Curve>)> = metrics
        .into_iter()
        .map(|metric| (metric, curves(rows, metric)))
        .filter(|(_, curves)| curves.iter().any(|curve| !curve.limit))
        .collect();
    let mut text = String::new();
    {
        let height: u32 = panels.iter().map(|(_, curves)| height(curves)).sum();
        let size = (WIDTH, TITLE + height);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&root, title, &panels).context("cannot draw the curves")?;
    }
    Ok(text)
}

/// A metric's curves, the highest at its largest size first.
fn curves(rows: &[Row], metric: Metric) -> Vec<Curve> {
    let mut curves = Vec::new();
    let has_row = |op: &&Op| rows.iter().any(|row| row.op == op.name);
    let drawn = Op::all().filter(|op| op.moves_blocks() || op.is_limit());
    for (at, op) in drawn.filter(has_row).enumerate() {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.metric == metric && row.op == op.name)
            .filter_map(|row| Some((row.bytes as f64, row.value()?)))
            .filter(|(_, value)| value.is_finite() && (*value > 0.0 || metric == Metric::Overlap))
            .collect();
        // A limit of one size holds at all.
        if points.len() > 1 || (op.is_limit() && !points.is_empty()) {
            curves.push(Curve {
                op: op.name,
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

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(root: &Area<'_>, title: &str, panels: &[(Metric, Vec<Curve>)]) -> anyhow::Result<()> {
    root.fill(&WHITE)?;
    let (head, mut rest) = root.split_vertically(TITLE);
    head.draw(&Text::new(title.to_owned(), (10, 8), ("sans-serif", 14)))?;
    for (metric, curves) in panels {
        let (area, below) = rest.split_vertically(height(curves));
        panel(&area, *metric, curves)?;
        rest = below;
    }
    root.present()?;
    Ok(())
}

/// Of a panel, with room for all names.
fn height(curves: &[Curve]) -> u32 {
    PANEL.max(NAMES_TOP + (curves.len() as u32 + 1) * NAME_HEIGHT)
}

fn panel(area: &Area<'_>, metric: Metric, curves: &[Curve]) -> anyhow::Result<()> {
    let (left, right) = area.split_horizontally(WIDTH - NAMES);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let sizes = bounds(points().map(|(size, _)| *size));
    let mut builder = ChartBuilder::on(&left);
    builder
        .caption(caption(metric), ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(76);
    // The same twice, since the two kinds of axes are different types.
    macro_rules! chart {
        ($values:expr) => {{
            let mut chart =
                builder.build_cartesian_2d(sizes.clone().log_scale().base(2.0), $values)?;
            chart
                .configure_mesh()
                .x_desc("bytes of one operation")
                .x_label_formatter(&|size| Bytes(size.round() as usize).to_string())
                .y_label_formatter(&|value| shown(metric, *value))
                .light_line_style(BLACK.mix(0.04))
                .bold_line_style(BLACK.mix(0.12))
                .draw()?;
            for curve in curves {
                let line = line(curve, &sizes);
                if curve.limit {
                    chart.draw_series(DashedLineSeries::new(line, 6, 4, BLACK.stroke_width(1)))?;
                } else {
                    let stroke = colour(curve.at).stroke_width(2);
                    chart.draw_series(LineSeries::new(line, stroke))?;
                    let style = point_style(curve.at);
                    let point = |point: &(f64, f64)| Circle::new(*point, 3, style);
                    chart.draw_series(curve.points.iter().map(point))?;
                }
            }
        }};
    }
    match metric {
        Metric::Overlap => chart!(0.0..100.0),
        _ => chart!(bounds(points().map(|(_, value)| *value)).log_scale()),
    }
    for (row, curve) in (0..).zip(curves) {
        let y = (NAMES_TOP + row * NAME_HEIGHT) as i32;
        let stroke = match curve.limit {
            true => BLACK.stroke_width(1),
            false => colour(curve.at).stroke_width(2),
        };
        let (from, to) = ((0, y), (22, y));
        if curve.limit {
            let half = [(from, (8, y)), ((14, y), to)];
            for (from, to) in half {
                right.draw(&PathElement::new(vec![from, to], stroke))?;
            }
        } else {
            right.draw(&PathElement::new(vec![from, to], stroke))?;
            right.draw(&Circle::new((11, y), 3, point_style(curve.at)))?;
        }
        right.draw(&Text::new(curve.op, (28, y - 6), ("sans-serif", 13)))?;
    }
    Ok(())
}

/// The points of a curve; of a limit of one size, that value at all sizes.
fn line(curve: &Curve, sizes: &Range<f64>) -> Vec<(f64, f64)> {
    match curve.points[..] {
        [(_, value)] => vec![(sizes.start, value), (sizes.end, value)],
        _ => curve.points.clone(),
    }
}

fn colour(at: usize) -> RGBColor {
    COLOURS.get(at % COLOURS.len()).copied().unwrap_or(BLACK)
}

/// Of a curve's points: hollow once the colours are used up.
fn point_style(at: usize) -> ShapeStyle {
    match at < COLOURS.len() {
        true => colour(at).filled(),
        false => colour(at).stroke_width(1),
    }
}

/// From the least to the greatest, and a little more.
fn bounds(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let greatest = values.fold(0.0, f64::max);
    least / 1.3..greatest * 1.3
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

fn shown(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Latency => Time(value).to_string(),
        Metric::Rate => PerSecond(value, "/s").to_string(),
        Metric::Bandwidth | Metric::Bidirectional => PerSecond(value, "B/s").to_string(),
        Metric::Overlap => format!("{value:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::args::parsed;
    use crate::perf::plan::plan;
    use crate::perf::table::tests::example;

    #[test]
    fn a_picture_has_a_panel_for_each_metric_and_a_curve_for_each_operation() {
        let mut rows = Vec::new();
        for bytes in [8, 64, 512] {
            let time = 10.0 + bytes as f64;
            rows.push(example(Metric::Latency, "memcpy", bytes, time));
            rows.push(example(Metric::Latency, "put", bytes, time * 1.2));
            rows.push(example(Metric::Latency, "get", bytes, time * 1.5));
            rows.push(example(Metric::Overlap, "put-nbi", bytes, time));
        }
        rows.push(example(Metric::Latency, "bare-ping-pong", 8, 100.0));
        // Neither is one of blocks.
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
        // Three points and one in the list of names, for three operations.
        assert_eq!(all("circle"), 3 * 4, "{svg}");
        let texts: Vec<&str> = picture
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .filter_map(|node| node.text().map(str::trim))
            .collect();
        for name in ["memcpy", "put", "get", "put-nbi", "bare-ping-pong"] {
            assert_eq!(
                texts.iter().filter(|text| **text == name).count(),
                1,
                "{texts:?}"
            );
        }
        for name in ["barrier", "add"] {
            assert!(!texts.contains(&name), "{texts:?}");
        }
        for caption in [Metric::Latency, Metric::Overlap].map(caption) {
            assert!(texts.contains(&caption), "{texts:?}");
        }
        assert!(!texts.contains(&caption(Metric::Rate)), "{texts:?}");
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
