//! Invitations to an exchange of descriptors: the leader's word to each rank of where it listens for one call.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::job_key::JobKey;

/// The call's name in errors.
pub(super) const OPERATION: &str = "share_descriptors";

/// The name of one call: its list of ranks, and how many calls with the same list came before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallId {
    pub(super) list: Vec<u32>,
    pub(super) count: u64,
}

/// The address at which the first rank of a list, the leader, listens for one call.
#[derive(Debug)]
pub(crate) struct Invitation {
    pub(super) call: CallId,
    pub(super) name: [u8; JobKey::LENGTH],
    pub(super) key: JobKey,
}

impl Invitation {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.call.count.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.name);
        bytes.extend_from_slice(self.key.bytes());
        bytes.extend(self.call.list.iter().flat_map(|rank| rank.to_le_bytes()));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Invitation> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (name, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (ranks, rest) = rest.as_chunks::<4>();
        if !rest.is_empty() {
            return None;
        }
        let list = ranks.iter().map(|rank| u32::from_le_bytes(*rank)).collect();
        let call = CallId {
            list,
            count: u64::from_le_bytes(*count),
        };
        Some(Invitation {
            call,
            name: *name,
            key: JobKey::from_bytes(*key),
        })
    }
}

/// Invitations received, and the number of this PE's calls with each list.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    invitations: Vec<(u32, Invitation)>,
    counts: HashMap<Vec<u32>, u64>,
}

impl Inbox {
    /// Adds an invitation as it was received.
    pub(crate) fn push(&mut self, from: u32, bytes: &[u8]) {
        match Invitation::decode(bytes) {
            Some(invitation) => self.invitations.push((from, invitation)),
            None => tracing::warn!(from, "ignored a malformed invitation to share descriptors"),
        }
    }

    /// Begins a call with this list.
    pub(crate) fn begin(&mut self, among: &[u32]) -> CallId {
        let next = self.counts.entry(among.to_vec()).or_default();
        let call = CallId {
            list: among.to_vec(),
            count: *next,
        };
        *next += 1;
        call
    }

    /// The invitation of rank `from` to this call, if it has been received. Those to calls that have failed
    /// here already are dropped; any other before it means that the ranks' calls differ.
    pub(crate) fn take_invitation(
        &mut self,
        from: u32,
        call: &CallId,
    ) -> Result<Option<Invitation>> {
        while let Some(index) = self
            .invitations
            .iter()
            .position(|(sender, _)| *sender == from)
        {
            let (_, invitation) = self.invitations.remove(index);
            if invitation.call == *call {
                return Ok(Some(invitation));
            }
            let begun = self.counts.get(&invitation.call.list).copied().unwrap_or(0);
            if invitation.call.count >= begun {
                let what = format!(
                    "rank {from} shares among {:?} while this rank shares among {:?}",
                    invitation.call.list, call.list
                );
                return Err(Error::Mismatch {
                    operation: OPERATION,
                    what,
                });
            }
        }
        Ok(None)
    }
}
