//! The style that all pictures share: their words, font and colours.

use plotters::drawing::DrawingAreaErrorKind;
use plotters::style::RGBColor;

use crate::error::Error;

/// The title and the names of the axes.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// The title above the picture.
    pub title: &'a str,
    /// The name of the horizontal axis.
    pub across: &'a str,
    /// The name of the vertical axis, with its unit.
    pub up: &'a str,
}

/// The result of drawing, before the error is converted.
pub(crate) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

pub(crate) fn not_drawn(error: DrawingAreaErrorKind<std::io::Error>) -> Error {
    Error::Drawing(error.to_string())
}

pub(crate) const FONT: &str = "sans-serif";

/// Colours that most people can tell apart.
pub(crate) const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(120, 94, 240),
    RGBColor(90, 90, 90),
];

/// The colour with this number; numbers beyond the last colour start again.
pub(crate) fn colour(at: usize) -> RGBColor {
    COLOURS.get(at % COLOURS.len()).copied().unwrap_or_default()
}
