//! Doors for `ci/fuzz`.

/// What rank 0 publishes through a process manager.
pub fn publication(bytes: &[u8]) {
    let _ = super::meeting::parse(&String::from_utf8_lossy(bytes));
}
