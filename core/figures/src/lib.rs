//! Results for people: numbers with their units and bounds, and pictures as SVG. The command, the
//! examples and the benchmarks use it.

mod bars;
mod bound;
mod curves;
pub mod units;

use std::fs::File;
use std::path::{Path, PathBuf};

use plotters::drawing::DrawingAreaErrorKind;
use plotters::style::RGBColor;

pub use self::bars::bars;
pub use self::bound::Bound;
pub use self::curves::{Curve, Panel, Values, panels};

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

/// The error of a file of results.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The picture could not be drawn.
    #[error("cannot draw a picture: {0}")]
    Drawing(String),
    /// The file could not be written.
    #[error("cannot write {}: {error}{}", path.display(), advice(error))]
    Writing {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
}

impl Error {
    fn writing(path: &Path, error: std::io::Error) -> Self {
        let path = path.into();
        Error::Writing { path, error }
    }
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "",
        _ => "; name a file in a folder that exists and can be written to",
    }
}

/// Writes a picture to a file.
pub fn write(path: &Path, svg: &str) -> Result<(), Error> {
    std::fs::write(path, svg).map_err(|error| Error::writing(path, error))
}

/// Checks before the work that a file can be written. Leaves it as it is.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let is_new = !path.exists();
    let opened = File::options().create(true).append(true).open(path);
    opened.map_err(|error| Error::writing(path, error))?;
    // An empty file would look like a result. If the path is a link, the link stays.
    if is_new && let Ok(made) = path.canonicalize() {
        let _ = std::fs::remove_file(made);
    }
    Ok(())
}

/// The result of drawing, before the error is converted.
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

/// The colour with this number; numbers beyond the last colour start again.
fn colour(at: usize) -> RGBColor {
    COLOURS.get(at % COLOURS.len()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let path = Path::new("/no-such-folder/picture.svg");
        let errors = [write(path, "<svg/>"), check_writable(path)];
        for error in errors.map(Result::unwrap_err) {
            let told = error.to_string();
            assert!(told.contains("/no-such-folder/picture.svg"), "{told}");
            assert!(told.contains("name a file in a folder that"), "{told}");
        }
    }

    #[test]
    fn a_file_that_can_be_written_is_left_as_it_is() {
        let path = std::env::temp_dir().join(format!("oxshmem-figures-{}", std::process::id()));
        check_writable(&path).unwrap();
        assert!(!path.exists());
        write(&path, "before").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_link_to_what_is_not_there_yet_is_left_as_it_is() {
        let link =
            std::env::temp_dir().join(format!("oxshmem-figures-link-{}", std::process::id()));
        let target = link.with_extension("svg");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        check_writable(&link).unwrap();
        assert!(!target.exists(), "an empty file is left behind");
        assert_eq!(link.read_link().unwrap(), target);
        std::fs::remove_file(link).unwrap();
    }
}
