//! Doors to the parsers of foreign bytes, for `ci/fuzz`. Tests build them, too, so that they keep up.

use oxshmem_engine::am::request::AmRequest;

use crate::config::{Config, variables};

/// An atomic that another PE asks for.
pub fn active_message(bytes: &[u8]) {
    if let Some(request) = AmRequest::of_bytes(bytes) {
        assert_eq!(request.to_bytes(), bytes);
    }
}

/// A value of a variable, which the first byte chooses.
pub fn variable(bytes: &[u8]) {
    let Some((&which, value)) = bytes.split_first() else {
        return;
    };
    let all = variables();
    let Some(variable) = all.get(usize::from(which) % all.len().max(1)) else {
        return;
    };
    let value = String::from_utf8_lossy(value);
    let lookup = |name: &str| (name == variable.name).then(|| value.clone().into_owned());
    let _ = Config::read(&lookup);
}
