//! The other side of a domain's traffic: one PE, as this domain knows it.

use std::collections::{BTreeMap, VecDeque};

use oxshmem_transport::{Error, Pe, Reply};

use crate::fabric::endpoint::PeerAddress;
use crate::limits::NAME;
use crate::wire::Key;

/// The failure of the connection with a PE.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Whether the PE had ever sent anything: then it was there, and is lost now.
    pub was_heard: bool,
    pub why: String,
}

/// A message that came before those that it has to follow.
pub(crate) type Early = Vec<u8>;

/// One PE.
#[derive(Debug, Default)]
pub(crate) struct PeerState {
    /// Its endpoint's address, and the number that its messages must have; none before its domain was judged.
    pub known: Option<(Vec<u8>, u64)>,
    /// Its place in the address vector, once used.
    pub address: Option<PeerAddress>,
    pub lost: bool,
    pub failure: Option<Failure>,
    pub was_heard: bool,
    /// The number of the last numbered message to it, and of the last that it has served.
    pub sent: u64,
    pub served: u64,
    /// The number of the last message of it that was served here.
    pub received: u64,
    pub early: BTreeMap<u64, Early>,
    pub owes_acknowledgement: bool,
    /// Replies to it, each with the lane that it is for.
    pub replies: VecDeque<(u64, Reply)>,
    /// Whether it is listed among those to which something is owed.
    pub is_due: bool,
    /// Slots with operations to it.
    pub in_flight: u32,
    /// Its regions, imported.
    pub regions: BTreeMap<u32, Key>,
}

impl PeerState {
    /// The error of operations to it, if it takes none.
    pub(crate) fn refusal(&self, pe: Pe) -> Option<Error> {
        if self.lost {
            return Some(Error::PeerLost {
                transport: NAME,
                pe,
            });
        }
        let failure = self.failure.as_ref()?;
        Some(match failure.was_heard {
            true => Error::PeerLost {
                transport: NAME,
                pe,
            },
            false => Error::Connection {
                transport: NAME,
                pe,
                why: failure.why.clone(),
            },
        })
    }

    /// Whether operations to it have ended, for whatever reason.
    pub(crate) fn is_gone(&self) -> bool {
        self.lost || self.failure.is_some()
    }
}
