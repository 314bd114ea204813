//! The generated files that are checked in.

use crate::headers::headers;
use crate::man::manual;

/// All of these files: their names in `core/capi/`, and their text.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let headers = headers().into_iter();
    let headers = headers.map(|(name, text)| (format!("include/{name}"), text));
    let pages = manual().into_iter();
    headers
        .chain(pages.map(|(name, text)| (format!("man/{name}"), text)))
        .collect()
}
