//! The bytes that open a connection to the rendezvous: magic number, version, rank, size, nonce.
//!
//! A hello has a fixed size and no secret. Both sides then prove that they know the job's key (see `handshake`).

use crate::error::Result;
use crate::job_key::JobKey;

/// The rank that a watcher claims: a host's agent, which joins no job. Its connection shows it
/// where the rendezvous is, and later that it is gone.
pub(crate) const WATCHER: u32 = u32::MAX;

pub(super) const MAGIC: [u8; 8] = *b"\x89OXSHMEM";
const VERSION: u32 = 4;
/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 32;
/// Bytes of a proof.
pub(crate) const PROOF_BYTES: usize = 32;
/// Bytes of a hello.
pub(crate) const HELLO_BYTES: usize = 8 + 4 + 4 + 4 + NONCE_BYTES;

/// Random bytes that one connection uses once.
pub(crate) type Nonce = [u8; NONCE_BYTES];
/// Evidence that its sender knows the job's key.
pub(crate) type Proof = [u8; PROOF_BYTES];

/// A PE's rank, its job's size and the job's key. The key is never sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) key: JobKey,
}

/// The rank and the size that a hello claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

/// The reason for which the first bytes of a connection are no acceptable hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHello {
    /// Not this protocol at all: not worth an answer.
    Foreign,
    /// This protocol, in another version.
    Version(u32),
}

impl Hello {
    /// The bytes that open a connection.
    pub(crate) fn encode(&self, nonce: &Nonce) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.rank.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.size.to_le_bytes());
        bytes[20..].copy_from_slice(nonce);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Claim, BadHello> {
        if !Hello::may_begin(bytes) {
            return Err(BadHello::Foreign);
        }
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let version = word(8);
        if version != VERSION {
            return Err(BadHello::Version(version));
        }
        Ok(Claim {
            rank: word(12),
            size: word(16),
        })
    }

    /// Whether a hello may begin with these bytes, however few.
    pub(crate) fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic)
    }
}

/// The refusal of a PE of another version.
pub(crate) fn version_refusal(theirs: u32) -> String {
    format!(
        "it speaks version {theirs} of the bootstrap protocol and the rendezvous version \
         {VERSION}; build all of the job's programs and its launcher with one version of oxshmem"
    )
}
