//! Random numbers, which nobody guesses.

use oxshmem_transport::{Error, Result};

use crate::limits::NAME;

/// A random number.
pub(crate) fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::Os {
        transport: NAME,
        call: "getrandom".into(),
        source: std::io::Error::other(error.to_string()),
    })?;
    Ok(u64::from_le_bytes(bytes))
}
