//! Active messages: atomics that the target's CPU executes, where no lane performs them as a CPU does
//! (M28, M29), and flushes of its GPU. Its [progress thread](crate::am::progress_thread) replies into this PE's memory.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use oxshmem_transport::{Local, Op, Status, Width};

use crate::am::pending_replies::{PendingReply, ReplyReader, SLOTS, SlotState, Slots};
use crate::am::request::{Action, AmRequest};
use crate::error::{Error, Result};
use crate::lane::in_flight::{Effect, Until};
use crate::lane::remote::{LanePeer, RemoteTarget};
use crate::memory::mapped::HostMemory;
use crate::memory::simulated::HostSpan;
use crate::memory::target::Target;
use crate::order::fence_site::FenceSite;
use crate::order::op_set::{OpKind, OpSet};
use crate::progress::long_waits::WaitedFor;
use crate::progress::reason::{WaitReason, WaitsOn};
use crate::worker::Worker;
use oxshmem_transport::AtomicRequest;

/// The period of probes on the connection that a message took, of a PE that owes a reply: a reply that got lost on
/// its way back leaves nothing in flight here that could fail.
const PROBE: Duration = Duration::from_secs(1);

impl Worker {
    /// Sends an atomic to the CPU of the PE that has the word; gives the old value if it is
    /// `fetching`, and is else in flight until a fence or quiet.
    pub(crate) fn message_atomic(
        &self,
        peer: LanePeer<'_>,
        remote: RemoteTarget,
        request: AtomicRequest,
        fetching: bool,
    ) -> Result<u64> {
        // The atomic must see this PE's own puts, as a get does.
        let overtakes = !peer.endpoint.guarantees(peer.pe, remote.kind).put_message
            || peer.endpoint.has_long_puts(peer.pe);
        if overtakes && self.inserts(FenceSite::ReadLane) {
            self.flush(peer)?;
        }
        let (reader, effect) = if fetching {
            (ReplyReader::Call, Effect::Read)
        } else {
            let updates = OpSet::of(OpKind::Message, remote.kind);
            (ReplyReader::Nobody, Effect::Write(updates))
        };
        let sent = self.claim_slot(peer, reader)?;
        let action = Action::Atomic {
            atomic: request,
            offset: remote.offset,
        };
        self.post_request(peer, sent, action, effect)?;
        if fetching {
            self.take_reply(sent)
        } else {
            Ok(0)
        }
    }

    /// Posts a request whose reply goes to the slot of `sent`; frees the slot if that fails.
    pub(crate) fn post_request(
        &self,
        peer: LanePeer<'_>,
        sent: PendingReply,
        action: Action,
        effect: Effect,
    ) -> Result<()> {
        let request = AmRequest {
            action,
            reply: self.reply_words(sent).offset(),
            number: sent.number,
        };
        let bytes = request.to_bytes();
        let message = Op::Message {
            from: Local {
                addr: bytes.as_ptr().cast_mut(),
                len: bytes.len(),
                key: None,
            },
        };
        self.state.posting.set(sent.number);
        // SAFETY: a message's bytes may be reused once it is posted.
        let posted = unsafe { self.post(peer, message, Until::Posted, effect) };
        self.state.posting.set(0);
        if posted.is_err() {
            self.engine.pending_replies.free(sent);
        }
        posted
    }

    /// Waits for the reply to a message; gives its value.
    pub(crate) fn take_reply(&self, sent: PendingReply) -> Result<u64> {
        let replies = &self.engine.pending_replies;
        if let Err(error) = self.await_reply_to(sent) {
            replies.leave(sent);
            self.cancel_messages();
            return Err(error);
        }
        let words = self.own(self.reply_words(sent));
        let value = words.part(0, 8).load_word(Width::W64, FenceSite::Nothing);
        replies.free(sent);
        Ok(value)
    }

    /// Waits until all messages of this context to a PE have their replies.
    pub(crate) fn await_replies(&self, pe: usize) -> Result<()> {
        let sent = self.engine.pending_replies.of_context(self.state.number);
        // One that has its slot and is not posted yet gets no reply.
        let posting = self.state.posting.get();
        let sent = sent.into_iter().filter(|sent| {
            let awaited = sent.number != posting && sent.reader != ReplyReader::Quiet;
            sent.pe == pe && awaited
        });
        for sent in sent {
            self.await_reply_to(sent)?;
            self.engine.pending_replies.free(sent);
        }
        Ok(())
    }

    /// Cancels this context's messages that no reply can arrive for any more, because the connection that they
    /// took has failed or the PE was lost. Their effects stay in flight.
    #[cold]
    pub(crate) fn cancel_messages(&self) {
        for sent in self.engine.pending_replies.of_context(self.state.number) {
            let Some(endpoint) = self.state.lanes.endpoints.get(sent.transport) else {
                continue;
            };
            // The quiet that waits for it finds the loss.
            if sent.reader == ReplyReader::Quiet {
                continue;
            }
            if self.engine.liveness.is_lost(sent.pe) {
                // After this step the lane delivers no reply of that PE.
                self.progress_endpoint(endpoint);
            } else if endpoint.lane_failure().is_none()
                && endpoint.failure_towards(sent.pe).is_none()
            {
                continue;
            }
            // The error of one that a call waits for is that call's.
            if sent.reader == ReplyReader::Nobody && !self.has_reply(sent) {
                endpoint.cancel_messages(sent.pe);
            }
            self.engine.pending_replies.free(sent);
        }
    }

    /// Whether messages of this context, by an endpoint to a PE, have no reply yet.
    pub(crate) fn has_unanswered_messages(&self, peer: LanePeer<'_>) -> bool {
        let sent = self.engine.pending_replies.of_context(self.state.number);
        let mut sent = sent.into_iter().filter(|sent| {
            let took = (sent.pe, sent.transport);
            took == (peer.pe, peer.endpoint.index)
        });
        // One that waits for room on the lane has not been sent.
        let waits = self.state.posting.get();
        sent.any(|sent| sent.number != waits && !self.has_reply(sent))
    }

    /// The words of the reply to a message.
    fn reply_words(&self, sent: PendingReply) -> Target {
        self.engine.pending_replies.reply_words(sent.slot)
    }

    /// Whether a message has its reply.
    fn has_reply(&self, sent: PendingReply) -> bool {
        let words = self.reply_words(sent);
        Self::is_reply_to(self.own(words).part(8, 8), sent)
    }

    /// Whether this word, which holds the number of the last reply in a slot, says that a message has its
    /// reply: another context may have claimed the slot for a later one since.
    fn is_reply_to(number: HostSpan<'_>, sent: PendingReply) -> bool {
        number.load_word(Width::W64, FenceSite::Fetch) >= sent.number
    }

    /// Claims a slot for a message to a PE; waits for a free one.
    pub fn claim_slot(&self, peer: LanePeer<'_>, reader: ReplyReader) -> Result<PendingReply> {
        loop {
            match self.try_claim_slot(peer, reader)? {
                SlotState::Free(sent) => return Ok(sent),
                SlotState::After(sent) => match self.await_reply_to(sent) {
                    Ok(()) => self.engine.pending_replies.free(sent),
                    // A quiet reports the PE's loss or the lane's failure.
                    Err(Error::PeerLost { .. } | Error::LaneFailed { .. }) => {
                        self.cancel_messages();
                    }
                    Err(error) => return Err(error),
                },
                SlotState::Cancellable => self.cancel_messages(),
                SlotState::Full => {
                    if let Some(sent) = self.await_slot(peer, reader)? {
                        return Ok(sent);
                    }
                }
                SlotState::Lost(lost)
                    if lost == peer.pe || !self.engine.liveness.is_acknowledged(lost) =>
                {
                    return Err(Error::PeerLost {
                        call: self.call(),
                        pe: lost,
                    });
                }
                SlotState::Lost(_) => {
                    return Err(Error::LaneFailed {
                        call: self.call(),
                        transport: peer.endpoint.name,
                        why: format!(
                            "all {SLOTS} messages that may be unanswered at once are other contexts', to \
                             PEs that were lost; a quiet on each of those contexts gives them up"
                        ),
                    });
                }
            }
        }
    }

    /// Waits while all slots are taken by messages of other contexts. None if the caller must try again.
    fn await_slot(&self, peer: LanePeer<'_>, reader: ReplyReader) -> Result<Option<PendingReply>> {
        let describe = || {
            let what = "an answer to one of the messages of its other contexts";
            (WaitedFor::Me, what.into())
        };
        let reason = WaitReason {
            call: self.call(),
            needs: WaitsOn::Pe(peer.pe),
            describe: &describe,
        };
        let slot = || match self.try_claim_slot(peer, reader) {
            Ok(SlotState::Full) => None,
            other => Some(other),
        };
        Ok(match self.wait(&reason, None, slot)?? {
            SlotState::Free(sent) => Some(sent),
            _ => None,
        })
    }

    /// Whether as many messages of this PE are unanswered at a PE as its inbox has room for.
    fn fills_window(&self, slots: &Slots, peer: LanePeer<'_>) -> bool {
        let window = peer.endpoint.message_window(peer.pe);
        // Slots of messages that have their reply are not free at once. Most often even with these there are fewer.
        slots.towards(peer.pe) >= window && {
            let sent = slots.iter().filter(|sent| {
                let took = (sent.pe, sent.transport);
                took == (peer.pe, peer.endpoint.index)
            });
            sent.filter(|sent| !self.has_reply(**sent)).count() >= window
        }
    }

    /// Claims a slot that is free, or whose message has its reply, whichever context's it was. If the PE has room for no more
    /// messages, none is claimed, and the reply to one of those to it is waited for.
    pub(crate) fn try_claim_slot(
        &self,
        peer: LanePeer<'_>,
        reader: ReplyReader,
    ) -> Result<SlotState> {
        let context = self.state.number;
        let mut slots = self.engine.pending_replies.slots();
        let next = slots.next;
        let fills_window = self.fills_window(&slots, peer);
        let (mut oldest, mut alive, mut free) = (None::<PendingReply>, false, None);
        let (mut cancellable, mut lost) = (false, None);
        for slot in (next..SLOTS).chain(0..next) {
            let Some(taken) = slots.get(slot) else {
                if fills_window {
                    continue;
                }
                free = Some(slot);
                break;
            };
            // A slot whose message has its reply is room for one more only once the PE has room for it.
            if fills_window && (taken.pe != peer.pe || self.has_reply(taken)) {
                continue;
            }
            // One that a quiet reads stays that quiet's.
            let mine = taken.context == context && taken.reader != ReplyReader::Quiet;
            if taken.is_spent_for(context) && self.has_reply(taken) {
                free = Some(slot);
                break;
            }
            if self.engine.liveness.is_lost(taken.pe) {
                cancellable |= mine;
                lost = Some(taken.pe);
                continue;
            }
            alive = true;
            if mine {
                oldest = oldest.filter(|o| o.number < taken.number).or(Some(taken));
            }
        }
        match (free, oldest) {
            (Some(slot), _) => Ok(SlotState::Free(slots.claim(slot, |number| PendingReply {
                slot,
                number,
                pe: peer.pe,
                context,
                transport: peer.endpoint.index,
                reader,
            }))),
            _ if cancellable => Ok(SlotState::Cancellable),
            (None, Some(oldest)) => Ok(SlotState::After(oldest)),
            (None, None) => match lost.filter(|_| !alive) {
                Some(pe) => Ok(SlotState::Lost(pe)),
                None => Ok(SlotState::Full),
            },
        }
    }

    fn await_reply_to(&self, sent: PendingReply) -> Result<()> {
        let PendingReply { number, pe, .. } = sent;
        let describe = || {
            let what = format!("its answer to active message {number}");
            (WaitedFor::Lane(pe), what)
        };
        let reason = WaitReason {
            call: self.call(),
            needs: WaitsOn::Pe(pe),
            describe: &describe,
        };
        let lanes = &self.state.lanes;
        let Some(endpoint) = lanes.endpoints.get(sent.transport) else {
            return Ok(());
        };
        let peer = LanePeer { endpoint, pe };
        let words = self.reply_words(sent);
        let replied = self.own(words).part(8, 8);
        let mut probe_at = None;
        self.wait(&reason, None, || {
            if Self::is_reply_to(replied, sent) {
                return Some(Ok(()));
            }
            let now = Instant::now();
            if *probe_at.get_or_insert(now + PROBE) <= now {
                probe_at = Some(now + PROBE);
                // SAFETY: a flush has no local memory. Its failure shows in the checks below.
                let probed = unsafe { endpoint.post(peer.id(), Op::Flush) };
                lanes.set_busy();
                match probed {
                    Ok((Status::Refused(oxshmem_transport::Error::PeerLost { .. }), _)) => {
                        self.report_unreachable(pe);
                    }
                    // The endpoint keeps the failure of the connection.
                    Ok((Status::Refused(oxshmem_transport::Error::Connection { .. }), _)) => {}
                    Ok((Status::Refused(error), _)) => return Some(Err(error.into())),
                    Ok(_) | Err(_) => {}
                }
            }
            let why = endpoint.lane_failure();
            let why = why.or_else(|| endpoint.failure_towards(pe))?;
            self.notify_stranded_peers(endpoint);
            Some(Err(endpoint.failed(self.call(), why)))
        })??;
        // Later accesses come after those of the target's CPU.
        fence(Ordering::Acquire);
        Ok(())
    }
}
