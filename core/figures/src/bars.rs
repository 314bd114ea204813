//! Stacked bars.

use plotters::prelude::*;

use crate::error::Error;
use crate::style::{Drawn, FONT, Words, colour, not_drawn};

const SIZE: (u32, u32) = (720, 400);

/// The picture of stacked bars, one for each label. `parts` are names, each with the heights of its
/// part in every bar.
pub fn bars(
    words: Words<'_>,
    labels: &[String],
    parts: &[(&str, Vec<f64>)],
) -> Result<String, Error> {
    let mut text = String::new();
    draw(&mut text, words, labels, parts).map_err(not_drawn)?;
    Ok(text)
}

fn draw(
    text: &mut String,
    words: Words<'_>,
    labels: &[String],
    parts: &[(&str, Vec<f64>)],
) -> Drawn {
    let count = labels.len();
    let height = |bar: usize| {
        parts
            .iter()
            .filter_map(|(_, heights)| heights.get(bar))
            .sum()
    };
    let top = match (0..count).map(height).fold(0.0, f64::max) {
        // An axis needs a height even if all values are zero.
        0.0 => 1.0,
        // Space above the bars for the names of several parts.
        top if parts.len() > 1 => 1.05 * 1.3 * top,
        top => 1.05 * top,
    };
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(words.title, (FONT, 18))
        .margin(10)
        .x_label_area_size(45)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..count as f64 - 0.5, 0.0..top)?;
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
        let colour = colour(part);
        let places = floor.iter_mut().zip(heights).enumerate();
        let boxes = places.map(|(bar, (floor, height))| {
            let bottom = std::mem::replace(floor, *floor + height);
            let corners = [(bar as f64 - 0.4, bottom), (bar as f64 + 0.4, *floor)];
            Rectangle::new(corners, colour.filled())
        });
        let drawn = chart.draw_series(boxes)?;
        drawn
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words<'static> = Words {
        title: "What it shows",
        across: "things",
        up: "size, m",
    };

    #[test]
    fn every_part_of_every_bar_is_drawn_and_named() {
        for count in [1, 2, 3, 9] {
            let labels: Vec<String> = (0..count).map(|bar| format!("bar {bar}!")).collect();
            let parts = [("low", vec![1.0; count]), ("high", vec![2.0; count])];
            let text = bars(WORDS, &labels, &parts).unwrap();
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
            let words = [WORDS.title, WORDS.across, WORDS.up, "low", "high"];
            for word in labels.iter().map(String::as_str).chain(words) {
                assert!(text.contains(word), "{count} bars, {word}: {text}");
            }
            for RGBColor(r, g, b) in [0, 1].map(colour) {
                let colour = format!("#{r:02X}{g:02X}{b:02X}");
                // Once in each bar, and once in the legend.
                assert_eq!(text.matches(&colour).count(), count + 1, "{text}");
            }
        }
    }

    #[test]
    fn bars_of_no_height_are_a_picture_too() {
        let text = bars(WORDS, &["none".into()], &[("part", vec![0.0])]).unwrap();
        assert!(text.contains("none"), "{text}");
    }
}
