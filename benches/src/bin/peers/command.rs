//! Commands with a deadline, and their output.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

/// The longest run, in seconds.
pub const DEADLINE: &str = "300";

/// Runs a command to its end; returns its output and the seconds that it took.
pub fn output(command: &mut Command) -> anyhow::Result<(String, f64)> {
    let start = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    let took = start.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {}", output.status, said.trim());
    }
    let text =
        String::from_utf8(output.stdout).with_context(|| format!("{command:?}: its output"))?;
    Ok((text, took))
}

pub fn number(word: &str) -> anyhow::Result<f64> {
    word.parse()
        .with_context(|| format!("`{word}` is no number"))
}
