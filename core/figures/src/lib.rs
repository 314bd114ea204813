//! Results as people read them: numbers with their units and bounds, and pictures as SVG. For the command, the
//! examples and the benchmarks.

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

/// Why a file of results could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be drawn.
    #[error("cannot draw a picture: {0}")]
    Drawing(String),
    /// It could not be written.
    #[error("cannot write {}: {error}{}", path.display(), advice(error))]
    Writing {
        /// Where to.
        path: PathBuf,
        /// Why not.
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

/// Whether a file can be written is better known before the work. Leaves it as it is.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let is_new = !path.exists();
    let opened = File::options().create(true).append(true).open(path);
    opened.map_err(|error| Error::writing(path, error))?;
    // An empty file would be taken for a result. Where the path is a link, that stays.
    if is_new && let Ok(made) = path.canonicalize() {
        let _ = std::fs::remove_file(made);
    }
    Ok(())
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
