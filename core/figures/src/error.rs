//! The error of a file of results.

use std::path::{Path, PathBuf};

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
    pub(crate) fn writing(path: &Path, error: std::io::Error) -> Self {
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
