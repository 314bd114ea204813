//! Output to stdout and stderr. A reader that has gone away is not a failure.

use std::fmt;
use std::io::{self, Write};

/// The error of an output that nobody reads any more, as with `| head`.
#[derive(Debug)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads the output any more")
    }
}

impl std::error::Error for Closed {}

/// Writes all of `text` to stdout.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    closed(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

/// Writes a command's complaint to stderr. A failure to write it is ignored.
pub fn complain(command: &str, what: &str) {
    let _ = io::stderr().write_all(format!("oxshmem {command}: {what}\n").as_bytes());
}

/// An error with its causes, without those that its own text already names.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
    }
    text
}

/// The result of writing; a broken pipe becomes [`Closed`].
pub fn closed(written: io::Result<()>) -> anyhow::Result<()> {
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Closed.into(),
        _ => anyhow::Error::new(error).context("cannot write the output"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_told_once() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let whole = anyhow::Error::new(full()).context(format!("writing: {}; make room", full()));
        assert_eq!(with_causes(&whole), whole.to_string());
        let part = anyhow::Error::new(full()).context("writing");
        assert_eq!(with_causes(&part), format!("writing: {}", full()));
    }
}
