//! The check of data that has to be there.

use anyhow::ensure;

/// Words that each program moves.
pub const LEN: usize = 64;

/// An error that says how many of the words that should be there are not.
pub fn check(words: &[u64], expected: u64, remedy: &str) -> anyhow::Result<()> {
    let late = words.iter().filter(|word| **word != expected).count();
    ensure!(
        late == 0,
        "{late} of {} words are not there yet: {remedy}",
        words.len()
    );
    Ok(())
}
