//! The generated files that are checked in.

use crate::headers::headers;
use crate::limits;

/// All of these files: their names in the repository, and their text.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let headers = headers().into_iter();
    let headers = headers.map(|(name, text)| (format!("core/nvshmem/include/{name}"), text));
    let page = ("docs/nvshmem-names.md".to_owned(), limits::page());
    headers.chain([page]).collect()
}
