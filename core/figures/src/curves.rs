//! Curves over sizes: a panel for each kind of value, the sizes on a logarithmic axis. Limits of
//! the machine itself are dashed, each in a pattern of its own.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::error::Error;
use crate::style::{COLOURS, Drawn, FONT, Words, colour, not_drawn};

const WIDTH: u32 = 900;
/// The least height of a panel; many names need more.
const PANEL: u32 = 460;
const TITLE: u32 = 30;
/// The width of the list of names, at the right.
const NAMES: u32 = 150;
const NAME_HEIGHT: u32 = 17;
/// The patterns of limits: lengths of a dash and of the gap behind it.
const DASHES: [(u32, u32); 3] = [(7, 4), (2, 3), (14, 5)];
/// The space above the list of names.
const NAMES_TOP: u32 = 50;

/// The values of one operation or limit.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its entry in the list of names; empty if the title says it.
    pub name: String,
    /// Its number among all curves of the picture. It decides the colour, or a limit's pattern.
    /// Points are hollow once the colours are used up.
    pub at: usize,
    /// Pairs of size and value.
    pub points: Vec<(f64, f64)>,
    /// Whether it is a limit of the machine. A limit with a single size counts for all sizes.
    pub limit: bool,
}

/// The axis of the values.
#[derive(Clone, Debug)]
pub enum Values {
    /// From the least value to the greatest; all are above zero.
    Logarithmic,
    /// From zero to the greatest value.
    FromZero,
    /// This range.
    Linear(Range<f64>),
}

/// Curves with common axes.
#[derive(Debug)]
pub struct Panel<'a> {
    /// Its title and axes.
    pub words: Words<'a>,
    /// The format of a size.
    pub size: fn(f64) -> String,
    /// The format of a value.
    pub value: fn(f64) -> String,
    /// The axis of the values.
    pub values: Values,
    /// The curves, each with at least one point, in the order of the list of names. There is no
    /// list if no curve has a name.
    pub curves: Vec<Curve>,
}

/// The picture of panels, one below the other. A title stands above them, unless it is empty.
pub fn panels(title: &str, panels: &[Panel<'_>]) -> Result<String, Error> {
    let mut text = String::new();
    {
        let head = if title.is_empty() { 0 } else { TITLE };
        let height: u32 = panels.iter().map(height).sum();
        let root = SVGBackend::with_string(&mut text, (WIDTH, head + height)).into_drawing_area();
        draw(&root, title, head, panels).map_err(not_drawn)?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(root: &Area<'_>, title: &str, head: u32, panels: &[Panel<'_>]) -> Drawn {
    root.fill(&WHITE)?;
    let (above, mut rest) = root.split_vertically(head);
    if !title.is_empty() {
        above.draw(&Text::new(title.to_owned(), (10, 8), (FONT, 14)))?;
    }
    for panel in panels {
        let (area, below) = rest.split_vertically(height(panel));
        draw_panel(&area, panel)?;
        rest = below;
    }
    root.present()
}

/// The height of a panel, with space for all names.
fn height(panel: &Panel<'_>) -> u32 {
    PANEL.max(NAMES_TOP + (panel.curves.len() as u32 + 1) * NAME_HEIGHT)
}

fn draw_panel(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let are_named = panel.curves.iter().any(|curve| !curve.name.is_empty());
    let (left, right) = area.split_horizontally(WIDTH - if are_named { NAMES } else { 0 });
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let sizes = bounds(points().map(|(size, _)| *size));
    let values = bounds(points().map(|(_, value)| *value));
    let mut builder = ChartBuilder::on(&left);
    builder
        .caption(panel.words.title, (FONT, 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(76);
    // A macro, since the two kinds of axes are different types.
    macro_rules! chart {
        ($values:expr) => {{
            let mut chart =
                builder.build_cartesian_2d(sizes.clone().log_scale().base(2.0), $values)?;
            chart
                .configure_mesh()
                .x_desc(panel.words.across)
                .y_desc(panel.words.up)
                .x_label_formatter(&|size| (panel.size)(*size))
                .y_label_formatter(&|value| (panel.value)(*value))
                .light_line_style(BLACK.mix(0.04))
                .bold_line_style(BLACK.mix(0.12))
                .draw()?;
            for curve in &panel.curves {
                let line = line(curve, &sizes);
                if curve.limit {
                    let (dash, gap) = dashes(curve.at);
                    let style = BLACK.stroke_width(1);
                    chart.draw_series(DashedLineSeries::new(line, dash, gap, style))?;
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
    match &panel.values {
        Values::Logarithmic => chart!(values.log_scale()),
        Values::FromZero => chart!(0.0..values.end),
        Values::Linear(range) => chart!(range.clone()),
    }
    if are_named {
        draw_names(&right, &panel.curves)
    } else {
        Ok(())
    }
}

fn draw_names(area: &Area<'_>, curves: &[Curve]) -> Drawn {
    for (row, curve) in (0..).zip(curves) {
        let y = (NAMES_TOP + row * NAME_HEIGHT) as i32;
        let (from, to) = ((0, y), (22, y));
        if curve.limit {
            let (dash, gap) = dashes(curve.at);
            for x in (from.0..to.0).step_by((dash + gap) as usize) {
                let end = to.0.min(x + dash as i32);
                let dash = vec![(x, y), (end, y)];
                area.draw(&PathElement::new(dash, BLACK.stroke_width(1)))?;
            }
        } else {
            let stroke = colour(curve.at).stroke_width(2);
            area.draw(&PathElement::new(vec![from, to], stroke))?;
            area.draw(&Circle::new((11, y), 3, point_style(curve.at)))?;
        }
        area.draw(&Text::new(curve.name.clone(), (28, y - 6), (FONT, 13)))?;
    }
    Ok(())
}

/// The dash pattern of a limit.
fn dashes(at: usize) -> (u32, u32) {
    DASHES.get(at % DASHES.len()).copied().unwrap_or((1, 1))
}

/// The points of a curve; for a limit with a single size, its value at all sizes.
fn line(curve: &Curve, sizes: &Range<f64>) -> Vec<(f64, f64)> {
    match curve.points[..] {
        [(_, value)] if curve.limit => vec![(sizes.start, value), (sizes.end, value)],
        _ => curve.points.clone(),
    }
}

/// The style of a curve's points: hollow once the colours are used up.
fn point_style(at: usize) -> ShapeStyle {
    if at < COLOURS.len() {
        colour(at).filled()
    } else {
        colour(at).stroke_width(1)
    }
}

/// The range from the least value to the greatest, and a little more.
fn bounds(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let greatest = values.fold(0.0, f64::max);
    if greatest > 0.0 {
        least / 1.3..greatest * 1.3
    } else {
        0.0..1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Time};

    fn panel<'a>(values: Values, curves: Vec<Curve>) -> Panel<'a> {
        Panel {
            words: Words {
                title: "of one & the same <host>",
                across: "bytes",
                up: "time",
            },
            size: |size| Bytes(size.round() as usize).to_string(),
            value: |value| Time(value).to_string(),
            values,
            curves,
        }
    }

    fn curve(name: &str, points: &[(f64, f64)], limit: bool) -> Curve {
        let (name, points) = (name.into(), points.to_vec());
        let at = 0;
        Curve {
            name,
            at,
            points,
            limit,
        }
    }

    /// The number of elements with this name, and all text.
    fn parts(svg: &str, element: &str) -> (usize, Vec<String>) {
        let picture = roxmltree::Document::parse(svg).unwrap();
        let all = |name| {
            picture
                .descendants()
                .filter(move |node| node.has_tag_name(name))
        };
        let texts = all("text").filter_map(|node| node.text().map(|text| text.trim().to_owned()));
        (all(element).count(), texts.collect())
    }

    #[test]
    fn curves_have_all_their_points_and_those_with_names_are_listed() {
        let points = [(8.0, 10.0), (64.0, 20.0), (512.0, 900.0)];
        let two = vec![
            curve("put", &points, false),
            curve("memcpy", &points[..1], true),
        ];
        let svg = panels("title", &[panel(Values::Logarithmic, two)]).unwrap();
        let (circles, texts) = parts(&svg, "circle");
        assert_eq!(circles, 4, "three, and one in the list: {svg}");
        for word in [
            "title",
            "put",
            "memcpy",
            "bytes",
            "time",
            "of one & the same <host>",
        ] {
            assert!(texts.iter().any(|text| text == word), "{word}: {texts:?}");
        }
        let nameless = vec![curve("", &points, false)];
        let svg = panels("", &[panel(Values::FromZero, nameless)]).unwrap();
        let (circles, texts) = parts(&svg, "circle");
        assert_eq!(circles, 3, "{svg}");
        assert!(texts.iter().all(|text| !text.is_empty()), "{texts:?}");
    }

    #[test]
    fn limits_have_patterns_of_their_own() {
        let dashes = |at| {
            let points = [(8.0, 10.0), (512.0, 10.0)];
            let limit = Curve {
                at,
                ..curve("limit", &points, true)
            };
            let all = vec![curve("", &points, false), limit];
            parts(
                &panels("", &[panel(Values::FromZero, all)]).unwrap(),
                "polyline",
            )
            .0
        };
        let drawn = [0, 1, 2].map(dashes);
        assert!(drawn[2] < drawn[0] && drawn[0] < drawn[1], "{drawn:?}");
    }

    #[test]
    fn values_of_zero_are_a_picture_too() {
        for values in [Values::FromZero, Values::Linear(0.0..100.0)] {
            let zeros = vec![curve("", &[(1.0, 0.0), (2.0, 0.0)], false)];
            assert_eq!(
                parts(&panels("", &[panel(values, zeros)]).unwrap(), "circle").0,
                2
            );
        }
    }
}
