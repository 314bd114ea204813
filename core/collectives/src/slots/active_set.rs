//! New teams of an active set, which its members make without the other PEs.
//!
//! The members meet in rounds: each sends a [message](super::mailbox) to the first member, which replies to all when it
//! has received all. The first round only shows that all are in the call. In the next ones they choose a slot for the
//! team, as in a split, once all hold their free slots exclusively: if another call holds a member's slots, all yield
//! theirs and meet again. In the last round each has reserved the slot. If a member fails before it, no member is in
//! the team. A member that fails later leaves the slot reserved, since others may write into it.
//!
//! Messages carry the number of the call among those of these PEs. So no late message of a failed call is taken for
//! another call's, and threads of a PE may be in several of these calls at once.

use oxshmem_engine::control::message::Message;
use oxshmem_engine::group::Group;
use oxshmem_engine::progress::reason::WaitsOn;
use std::fmt;

use crate::error::{Error, Result};
use crate::signature::CallSignature;
use crate::slots::mailbox::{Mailbox, MailboxMessage};
use crate::slots::pool::{ActiveSet, SlotClaim};
use crate::slots::proposal::SlotProposal;
use crate::sync_area::SyncArea;
use crate::team::TeamState;
use oxshmem_engine::error::Error as EngineError;
use oxshmem_engine::worker::Worker;

/// The call's name.
pub const CALL: &str = "team_among";
/// Stands for the proposal of a PE that does not hold its free slots exclusively.
const NOTHING: u64 = u64::MAX;

/// A call of the members of an active set for a team.
pub struct Agreement<'m> {
    worker: &'m Worker,
    area: &'m SyncArea,
    mailbox: &'m Mailbox,
    members: &'m Group,
    /// Whether this PE loads and stores every member's memory.
    mapped: bool,
    /// The active set, and the number of its call.
    call: CallSignature,
}

impl fmt::Debug for Agreement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreement")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl<'m> Agreement<'m> {
    /// The next call of these members, which are `set`.
    pub fn new(
        worker: &'m Worker,
        area: &'m SyncArea,
        mailbox: &'m Mailbox,
        set: ActiveSet,
        members: &'m Group,
        mapped: bool,
    ) -> Self {
        let number = area.pool.count_active_set(set);
        let call = CallSignature::of(CALL)
            .and(set.start as u64)
            .and(set.stride as u64)
            .and(set.size as u64)
            .and(number);
        worker.in_call(CALL);
        Agreement {
            worker,
            area,
            mailbox,
            members,
            mapped,
            call,
        }
    }

    /// Makes the team. On an error the other members are notified.
    pub fn make(self) -> Result<TeamState> {
        let made = self.agree().and_then(|(slot, all)| {
            let members = self.members.clone();
            self.area.new_team(slot, members, &all)
        });
        made.inspect_err(|error| self.abort(error))
    }

    /// The members meet until they have reserved a slot for the team. Gives the slot, and their joint proposal.
    fn agree(&self) -> Result<(usize, SlotProposal)> {
        let pool = &self.area.pool;
        let mapped = self.mapped;
        let mut rounds = 0..;
        let mut meet = |mine| self.meet(rounds.next().unwrap_or_default(), mine);
        let mut claim = None;
        let all = loop {
            let mine = claim.as_ref().and_then(SlotClaim::try_hold);
            let mine = mine.map(|mine| SlotProposal { mapped, ..mine });
            if let Some(all) = meet(mine)? {
                break all;
            }
            claim.iter().for_each(SlotClaim::yield_slots);
            claim.get_or_insert_with(|| pool.claim(self.claim_rank()));
        };
        let slots = pool.budget().active_sets();
        let slot = all.slot(slots.clone(), None).ok_or(Error::TooManyTeams {
            call: CALL,
            limit: slots.len(),
        })?;
        pool.reserve(slot);
        meet(Some(all.clone()))?;
        Ok((slot, all))
    }

    /// Notifies the other members, which may wait for this PE, that it has failed, unless they learn the reason anyway.
    #[cold]
    fn abort(&self, error: &Error) {
        let worker = self.worker;
        let cause_is_known = match error {
            Error::TooManyTeams { .. } => true,
            Error::Engine(EngineError::PeerLost { pe, .. }) => worker.exit_was_reported(*pe),
            _ => false,
        };
        if cause_is_known {
            return;
        }
        for pe in self.members.pes().filter(|pe| *pe != worker.engine.me) {
            // A PE that is gone waits for nothing.
            let _ = worker.send(pe, &Message::disconnect(error));
        }
    }

    /// A round of the call, in which all members meet. Gives their joint proposal; none if one proposes nothing.
    fn meet(&self, round: u64, mine: Option<SlotProposal>) -> Result<Option<SlotProposal>> {
        let others = || self.members.pes().skip(1);
        if self.members.me() > 0 {
            let first = self.members.pe(0);
            self.send(round, mine.as_ref(), first)?;
            return self.receive(round, first);
        }
        let mut all = mine;
        for pe in others() {
            let theirs = self.receive(round, pe)?;
            all = all.zip(theirs).map(|(all, theirs)| all.and(theirs));
        }
        others().try_for_each(|pe| self.send(round, all.as_ref(), pe))?;
        Ok(all)
    }

    /// The rank of this call's claim: beyond those of teams, which have less.
    fn claim_rank(&self) -> usize {
        (self.call.value() | 1 << 63) as usize
    }

    /// The message of a round.
    pub fn message(&self, round: u64) -> MailboxMessage<'_> {
        MailboxMessage {
            call: CALL,
            needs: WaitsOn::Members(self.members),
            tag: self.call.and(round).value(),
        }
    }

    fn send(&self, round: u64, proposal: Option<&SlotProposal>, to: usize) -> Result<()> {
        let len = self.area.pool.proposal_words();
        let words = proposal.map_or_else(|| vec![NOTHING; len], SlotProposal::words);
        self.mailbox
            .send(self.worker, self.message(round), to, &words)
    }

    fn receive(&self, round: u64, from: usize) -> Result<Option<SlotProposal>> {
        let what = "its part in the call";
        let words = self
            .mailbox
            .receive(self.worker, self.message(round), from, what)?;
        Ok((words.first() != Some(&NOTHING)).then(|| SlotProposal::of(&words)))
    }
}
