//! Results as people read them: numbers with their units, and pictures as SVG. For the command, the
//! examples and the benchmarks.

mod bars;
mod curves;
pub mod units;

use std::path::{Path, PathBuf};

use plotters::drawing::DrawingAreaErrorKind;
use plotters::style::RGBColor;

pub use self::bars::bars;
pub use self::curves::{Curve, Panel, Values, panels};

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

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be drawn.
    #[error("cannot draw a picture: {0}")]
    Drawing(String),
    /// It could not be written.
    #[error("writing {}: {error}", path.display())]
    Writing {
        /// Where to.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

/// Writes a picture to a file.
pub fn write(path: &Path, svg: &str) -> Result<(), Error> {
    std::fs::write(path, svg).map_err(|error| Error::Writing {
        path: path.into(),
        error,
    })
}

/// What drawing gives, before it is known what failed.
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn not_drawn(error: DrawingAreaErrorKind<std::io::Error>) -> Error {
    Error::Drawing(error.to_string())
}

const FONT: &str = "sans-serif";

/// Colours that most people can tell apart.
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

/// The colour of the so-manieth thing; what is beyond the last has them again.
fn colour(at: usize) -> RGBColor {
    COLOURS.get(at % COLOURS.len()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let path = Path::new("/no-such-folder/picture.svg");
        let error = write(path, "<svg/>").unwrap_err();
        assert!(error.to_string().contains("/no-such-folder/picture.svg"));
    }
}
