//! Pictures of results, as SVG: stacked bars, and a curve over powers of two.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

const SIZE: (u32, u32) = (720, 400);
const FONT: &str = "sans-serif";
/// Of parts from below; a seventh has the first one's again.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x44, 0x77, 0xaa),
    RGBColor(0xee, 0x99, 0x55),
    RGBColor(0x55, 0xa8, 0x68),
    RGBColor(0xaa, 0x44, 0x66),
    RGBColor(0x66, 0xcc, 0xdd),
    RGBColor(0x99, 0x99, 0x99),
];

/// What a picture says besides its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// Over the picture.
    pub title: &'a str,
    /// What lies along the horizontal axis.
    pub across: &'a str,
    /// What lies along the vertical axis, with its unit.
    pub up: &'a str,
}

/// Draws a bar for each label, of parts on top of each other: `parts` are names and the height of that
/// part in each bar.
pub fn bars(
    to: &Path,
    words: Words<'_>,
    labels: &[String],
    parts: &[(&str, Vec<f64>)],
) -> Result<()> {
    let drawn = || -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let count = labels.len();
        let height = |bar: usize| {
            parts
                .iter()
                .filter_map(|(_, heights)| heights.get(bar))
                .sum()
        };
        let top = (0..count).map(height).fold(0.0, f64::max);
        // The names of several parts stand above the bars.
        let top = if parts.len() > 1 { 1.3 * top } else { top };
        let area = SVGBackend::new(to, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart =
            layout(&area, words).build_cartesian_2d(-0.5..count as f64 - 0.5, room_above(top))?;
        let label = |at: &f64| {
            let near = at.round();
            let bar = labels
                .get(near as usize)
                .filter(|_| *at == near && near >= 0.0);
            bar.cloned().unwrap_or_default()
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .y_max_light_lines(1)
            .x_labels(count)
            .x_label_formatter(&label)
            .x_desc(words.across)
            .y_desc(words.up)
            .draw()?;
        let mut floor = vec![0.0; count];
        for (part, (name, heights)) in parts.iter().enumerate() {
            let colour = COLOURS[part % COLOURS.len()];
            let places = floor.iter_mut().zip(heights).enumerate();
            let boxes = places.map(|(bar, (floor, height))| {
                let bottom = std::mem::replace(floor, *floor + height);
                let corners = [(bar as f64 - 0.4, bottom), (bar as f64 + 0.4, *floor)];
                Rectangle::new(corners, colour.filled())
            });
            let drawn = chart.draw_series(boxes)?;
            drawn.label(*name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled())
            });
        }
        if parts.len() > 1 {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE)
                .border_style(BLACK)
                .draw()?;
        }
        area.present()
    };
    drawn().map_err(|error| anyhow!("writing {}: {error}", to.display()))
}

/// Draws one curve of values over powers of two, of which the exponents are given.
pub fn curve(to: &Path, words: Words<'_>, points: &[(u32, f64)]) -> Result<()> {
    let drawn = || -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let top = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let first = points.first().map_or(0, |point| point.0);
        let last = points.last().map_or(0, |point| point.0).max(first + 1);
        let area = SVGBackend::new(to, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = layout(&area, words).build_cartesian_2d(first..last, room_above(top))?;
        chart
            .configure_mesh()
            .max_light_lines(1)
            .x_labels((last - first + 1) as usize)
            .x_label_formatter(&|exponent| format!("2^{exponent}"))
            .x_desc(words.across)
            .y_desc(words.up)
            .draw()?;
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            BLUE.stroke_width(2),
        ))?;
        chart.draw_series(
            points
                .iter()
                .map(|point| Circle::new(*point, 3, BLUE.filled())),
        )?;
        area.present()
    };
    drawn().map_err(|error| anyhow!("writing {}: {error}", to.display()))
}

fn layout<'a, 'b>(
    area: &'a DrawingArea<SVGBackend<'b>, Shift>,
    words: Words<'_>,
) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart
        .caption(words.title, (FONT, 18))
        .margin(10)
        .x_label_area_size(45)
        .y_label_area_size(70);
    chart
}

/// The vertical axis; not empty where all is zero.
fn room_above(top: f64) -> Range<f64> {
    0.0..if top > 0.0 { 1.05 * top } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words<'static> = Words {
        title: "What it shows",
        across: "things",
        up: "size, m",
    };

    fn drawn(name: &str, draw: impl Fn(&Path) -> Result<()>) -> String {
        let path = std::env::temp_dir().join(format!("oxshmem-{}-{name}.svg", std::process::id()));
        draw(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for words in [WORDS.title, WORDS.across, WORDS.up] {
            assert!(text.contains(words), "{words}: {text}");
        }
        text
    }

    #[test]
    fn every_part_of_every_bar_is_drawn_and_named() {
        for count in [1, 2, 3, 9] {
            let labels: Vec<String> = (0..count).map(|bar| format!("bar {bar}!")).collect();
            let parts = [("low", vec![1.0; count]), ("high", vec![2.0; count])];
            let text = drawn(&format!("bars-{count}"), |path| {
                bars(path, WORDS, &labels, &parts)
            });
            for label in labels.iter().map(String::as_str).chain(["low", "high"]) {
                assert!(text.contains(label), "{count} bars, {label}: {text}");
            }
            for RGBColor(r, g, b) in &COLOURS[..2] {
                let colour = format!("#{r:02X}{g:02X}{b:02X}");
                // Each bar's, and the legend's.
                assert_eq!(text.matches(&colour).count(), count + 1, "{text}");
            }
        }
    }

    #[test]
    fn a_curve_has_all_its_points() {
        for count in [1_u32, 2, 12] {
            let points: Vec<_> = (0..count).map(|at| (at + 10, f64::from(at))).collect();
            let text = drawn(&format!("curve-{count}"), |path| {
                curve(path, WORDS, &points)
            });
            assert_eq!(text.matches("<circle").count(), count as usize, "{text}");
            assert!(text.contains("2^10"), "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let path = Path::new("/no-such-folder/picture.svg");
        let error = curve(path, WORDS, &[(1, 1.0)]).unwrap_err();
        assert!(
            format!("{error:#}").contains("/no-such-folder/picture.svg"),
            "{error:#}"
        );
    }
}
