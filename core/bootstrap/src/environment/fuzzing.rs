//! Entry points for `ci/fuzz`.

/// Rank 0's publication through a process manager.
pub fn publication(bytes: &[u8]) {
    let _ = super::publication::parse(&String::from_utf8_lossy(bytes));
}
