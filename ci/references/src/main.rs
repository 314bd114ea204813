//! Writes the bindings that are checked in: `ci/bindings`. With `--print`, to the standard output.

use anyhow::{Context, Result};
use oxshmem_references::{CHECKED_IN, verbs};

fn main() -> Result<()> {
    let made = verbs()?;
    match std::env::args().nth(1).as_deref() {
        Some("--print") => print!("{made}"),
        Some(other) => anyhow::bail!("{other} is no option; there is --print"),
        None => {
            std::fs::write(CHECKED_IN, made).with_context(|| format!("writing {CHECKED_IN}"))?
        }
    }
    Ok(())
}
