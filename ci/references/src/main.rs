//! Writes the bindings that are checked in: `ci/bindings`. With `--print`, to the standard output.

use anyhow::{Context, Result};
use oxshmem_references::{CHECKED_IN, FABRIC_CHECKED_IN, libfabric, verbs};

fn main() -> Result<()> {
    let made = [(CHECKED_IN, verbs()?), (FABRIC_CHECKED_IN, libfabric()?)];
    match std::env::args().nth(1).as_deref() {
        Some("--print") => made.iter().for_each(|(_, made)| print!("{made}")),
        Some(other) => anyhow::bail!("{other} is no option; there is --print"),
        None => {
            for (file, made) in made {
                std::fs::write(file, made).with_context(|| format!("writing {file}"))?;
            }
        }
    }
    Ok(())
}
