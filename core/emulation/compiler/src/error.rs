//! The reason why a build failed.

use std::path::Path;

/// A reason, in words for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    pub(crate) fn new(words: impl Into<String>) -> Failure {
        Failure(words.into())
    }

    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Failure {
        Failure(format!("{}: {error}", path.display()))
    }
}
