//! Heat maps: a matrix of values as colours.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::Error;
use crate::style::{Drawn, FONT, not_drawn};

/// A matrix of values, as a part of a picture.
#[derive(Clone, Debug)]
pub struct Heat<'a> {
    /// The title above it.
    pub title: &'a str,
    /// Values of each row, from the member of the row to that of the column; `None` is left white.
    pub values: &'a [Vec<Option<f64>>],
    /// The words for a value.
    pub shown: fn(f64) -> String,
    /// Whether less is better.
    pub less_is_better: bool,
}

/// Pixels of a title, of a letter in labels at most, and of all cells of a row together at most.
const TITLE: i32 = 30;
const LETTER: i32 = 8;
const CELLS: i32 = 520;
/// Members up to which rows have labels, and cells their value.
const LABELLED: usize = 48;
const WRITTEN: usize = 12;

/// Pixels for the labels of rows, and of columns.
fn room(labels: &[String]) -> i32 {
    let longest = labels.iter().map(|label| label.chars().count()).max();
    match longest {
        Some(letters) if labels.len() <= LABELLED => (letters as i32 * LETTER + 12).clamp(30, 300),
        _ => 12,
    }
}

/// The picture of matrices over the same members, one below the other. Rows are origins, columns targets.
/// The best value is blue, the worst one orange.
pub fn heat(title: &str, labels: &[String], parts: &[Heat<'_>]) -> Result<String, Error> {
    let mut text = String::new();
    draw(&mut text, title, labels, parts).map_err(not_drawn)?;
    Ok(text)
}

fn draw(text: &mut String, title: &str, labels: &[String], parts: &[Heat<'_>]) -> Drawn {
    let members = labels.len().max(1) as i32;
    let cell = (CELLS / members).clamp(4, 60);
    let room = room(labels);
    let (width, height) = (
        room + cell * members + 20,
        TITLE + room + cell * members + 20,
    );
    let size = (
        width.max(560) as u32,
        (40 + height * parts.len() as i32) as u32,
    );
    let area = SVGBackend::with_string(text, size).into_drawing_area();
    area.fill(&WHITE)?;
    let style = (FONT, 18).into_font().color(&BLACK);
    area.draw(&Text::new(title.to_owned(), (10, 12), style))?;
    for (at, part) in parts.iter().enumerate() {
        matrix(&area, 40 + height * at as i32, cell, labels, part)?;
    }
    area.present()
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn matrix(area: &Area<'_>, top: i32, cell: i32, labels: &[String], part: &Heat<'_>) -> Drawn {
    let known = || {
        part.values
            .iter()
            .flatten()
            .flatten()
            .copied()
            .filter(|value| value.is_finite())
    };
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(0.0, f64::max);
    let black = |size: i32| (FONT, size).into_font().color(&BLACK);
    let range = if low.is_finite() {
        format!(
            "{}: {} to {}",
            part.title,
            (part.shown)(low),
            (part.shown)(high)
        )
    } else {
        format!("{}: none", part.title)
    };
    area.draw(&Text::new(range, (10, top + 8), black(15)))?;
    let room = room(labels);
    let (left, above) = (room, top + TITLE + room);
    let side = (cell - 2).clamp(6, 12);
    if labels.len() <= LABELLED {
        for (at, label) in labels.iter().enumerate() {
            let middle = at as i32 * cell + cell / 2;
            let right = black(side).pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(label.clone(), (left - 5, above + middle), right))?;
            let turned = black(side).transform(FontTransform::Rotate270);
            let turned = turned.pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(
                label.clone(),
                (left + middle, above - 5),
                turned,
            ))?;
        }
    }
    for (row, values) in part.values.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else {
                continue;
            };
            let corner = (left + column as i32 * cell, above + row as i32 * cell);
            let end = (corner.0 + cell - 1, corner.1 + cell - 1);
            let colour = shade(value, low, high, part.less_is_better);
            area.draw(&Rectangle::new([corner, end], colour.filled()))?;
            if labels.len() <= WRITTEN {
                let middle = (corner.0 + cell / 2, corner.1 + cell / 2);
                let centred =
                    black((cell / 5).clamp(7, 11)).pos(Pos::new(HPos::Center, VPos::Center));
                area.draw(&Text::new((part.shown)(value), middle, centred))?;
            }
        }
    }
    Ok(())
}

/// From orange (the worst) over white to blue (the best), by the logarithm.
fn shade(value: f64, low: f64, high: f64, less_is_better: bool) -> RGBColor {
    const WORST: (f64, f64, f64) = (230.0, 120.0, 20.0);
    const BEST: (f64, f64, f64) = (90.0, 160.0, 220.0);
    let span = (high / low).ln();
    // Values that hardly differ have one colour.
    let place = if span > 0.05 {
        (value / low).ln() / span
    } else {
        f64::from(u8::from(!less_is_better))
    };
    let good = if less_is_better { 1.0 - place } else { place }.clamp(0.0, 1.0);
    let (end, share) = if good < 0.5 {
        (WORST, 1.0 - 2.0 * good)
    } else {
        (BEST, 2.0 * good - 1.0)
    };
    let mixed = |end: f64| (255.0 + share * (end - 255.0)).round() as u8;
    RGBColor(mixed(end.0), mixed(end.1), mixed(end.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(members: usize) -> String {
        let labels: Vec<String> = (0..members).map(|member| format!("node{member}")).collect();
        let value = |from: usize, to: usize| (from != to).then(|| 1.0 + (from + to) as f64);
        let values: Vec<Vec<Option<f64>>> = (0..members)
            .map(|from| (0..members).map(|to| value(from, to)).collect())
            .collect();
        let part = |title, less_is_better| Heat {
            title,
            values: &values,
            shown: |value| format!("{value:.1} m"),
            less_is_better,
        };
        heat(
            "Links & hosts",
            &labels,
            &[part("size", false), part("time", true)],
        )
        .unwrap()
    }

    #[test]
    fn each_cell_is_drawn_and_each_member_named() {
        for members in [2, 5, 12, 40, 70] {
            let text = picture(members);
            let document = roxmltree::Document::parse(&text).unwrap();
            let all = |name: &str| {
                document
                    .descendants()
                    .filter(|n| n.has_tag_name(name))
                    .count()
            };
            // One is the background.
            assert_eq!(all("rect") - 1, 2 * members * (members - 1), "{members}");
            let named = text.matches("node1\n").count();
            assert_eq!(
                named,
                if members <= LABELLED { 4 } else { 0 },
                "{members}: {text}"
            );
        }
    }

    #[test]
    fn the_worst_value_is_orange_and_the_best_one_blue() {
        let (worst, best) = (RGBColor(230, 120, 20), RGBColor(90, 160, 220));
        assert_eq!(
            (shade(1.0, 1.0, 9.0, false), shade(9.0, 1.0, 9.0, false)),
            (worst, best)
        );
        assert_eq!(
            (shade(1.0, 1.0, 9.0, true), shade(9.0, 1.0, 9.0, true)),
            (best, worst)
        );
        // Where all are alike, none looks bad.
        assert_eq!(
            (shade(2.0, 2.0, 2.0, true), shade(2.0, 2.0, 2.0, false)),
            (best, best)
        );
    }

    #[test]
    fn no_members_are_a_picture_too() {
        let part = Heat {
            title: "x",
            values: &[],
            shown: |_| String::new(),
            less_is_better: true,
        };
        assert!(heat("none", &[], &[part]).unwrap().contains("x: none"));
    }
}
