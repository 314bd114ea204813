//! The generated files that are checked in.

use crate::headers::headers;

/// All of these files: their names in the repository, and their text.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let headers = headers().into_iter();
    headers.map(|(name, text)| (format!("core/nvshmem/include/{name}"), text)).collect()
}
