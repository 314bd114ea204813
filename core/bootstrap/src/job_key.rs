//! The random key by which a job knows its own PEs.

use std::fmt;
use std::hint::black_box;

use crate::error::{Error, Result};

/// A job's key: 32 random bytes, written as 64 hexadecimal digits in `OXSHMEM_JOB_KEY`.
///
/// It keeps strangers out and jobs apart: a process that does not know the key cannot join, nor be taken
/// for the rendezvous. PEs and the rendezvous prove to each other that they know it and never send it. A user who
/// can read the PEs' environment knows it, too; and it encrypts nothing.
#[derive(Clone, Copy)]
pub struct JobKey([u8; JobKey::LENGTH]);

impl JobKey {
    /// Bytes in a key.
    pub(crate) const LENGTH: usize = 32;

    /// A new random key. Fails if the operating system gives no randomness.
    pub fn random() -> Result<JobKey> {
        let mut bytes = [0; Self::LENGTH];
        getrandom::fill(&mut bytes).map_err(|error| Error::Io {
            action: "taking random bytes for the job's key",
            source: error.into(),
        })?;
        Ok(JobKey(bytes))
    }

    /// The key written as `text`, if that is 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<JobKey> {
        let digits = text.trim().as_bytes();
        if digits.len() != 2 * Self::LENGTH {
            return None;
        }
        let mut bytes = [0; Self::LENGTH];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let mut value = 0;
            for digit in pair {
                value = value * 16 + char::from(*digit).to_digit(16)?;
            }
            *byte = u8::try_from(value).ok()?;
        }
        Some(JobKey(bytes))
    }

    /// The key as 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::LENGTH]) -> JobKey {
        JobKey(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }

    /// Whether two keys are the same, in a time that does not tell where they differ.
    pub(crate) fn matches(&self, other: &JobKey) -> bool {
        let difference = self
            .0
            .iter()
            .zip(&other.0)
            .fold(0, |sum, (mine, theirs)| black_box(sum | (mine ^ theirs)));
        black_box(difference) == 0
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JobKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::JobKey;

    #[test]
    fn key_survives_hex_and_differs_from_any_other() {
        let key = JobKey::random().unwrap();
        let same = JobKey::from_hex(&key.to_hex()).unwrap();
        assert!(key.matches(&same));
        for index in 0..JobKey::LENGTH {
            let mut bytes = *key.bytes();
            bytes[index] ^= 1;
            assert!(!key.matches(&JobKey::from_bytes(bytes)));
        }
    }

    #[test]
    fn hex_of_wrong_length_or_digits_is_no_key() {
        for text in [
            "",
            "12",
            &"g".repeat(64),
            &"a".repeat(63),
            &"+a".repeat(32),
            &"é".repeat(32),
        ] {
            assert!(JobKey::from_hex(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn debug_does_not_show_the_key() {
        let key = JobKey::random().unwrap();
        assert!(!format!("{key:?}").contains(&key.to_hex()[..8]));
    }
}
