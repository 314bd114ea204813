//! Parts of the report that may be missing.

use serde::Serialize;

/// A value, or the reason why it is not known.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Known<T> {
    Yes(T),
    No { error: String },
}

impl<T, E: ToString> From<Result<T, E>> for Known<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(known) => Known::Yes(known),
            Err(error) => Known::No {
                error: error.to_string(),
            },
        }
    }
}
