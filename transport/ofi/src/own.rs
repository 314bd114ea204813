//! Operations of a PE on its own memory, which need no provider.

use oxshmem_transport::{Op, Pe};

use crate::limits::MESSAGE;
use crate::mailbox::Mail;
use crate::state::State;
use crate::stream::Entry;

/// An operation on this PE's own memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnOp {
    op: Op,
    /// A region of this PE, and the offset in it.
    at: Option<(u32, u64)>,
    signal: Option<crate::message::Signal>,
    /// The first byte of the source, or of a copy of it.
    source: *const u8,
}

impl OwnOp {
    /// The operation of an entry towards this PE.
    pub(crate) fn of(entry: &Entry) -> OwnOp {
        OwnOp {
            op: entry.op,
            at: entry.target.map(|(key, offset)| (key.region, offset)),
            signal: entry.signal,
            source: entry.source(),
        }
    }
}

/// Whether an operation towards this PE itself goes through the provider: all atomics on a word do, its own PE's, too (M29), and
/// transfers of memory that the CPU does not access.
pub(crate) fn goes_through_provider(op: &Op, on_gpu: bool) -> bool {
    on_gpu || matches!(op, Op::Atomic { .. })
}

impl State {
    /// Performs an operation of a lane on this PE's own memory.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`](oxshmem_transport::Lane::post), of the operation that an entry was made of.
    pub(crate) unsafe fn perform_here(&mut self, lane: u64, own: OwnOp) {
        match (own.op, own.at) {
            (Op::Put { from, .. } | Op::PutSignal { from, .. }, Some(at)) if from.len > 0 => {
                // SAFETY: the source is readable, by the caller's promise.
                unsafe {
                    let source = (own.source, from.len);
                    self.regions.put_from(at, source, own.signal);
                }
            }
            (Op::PutSignal { .. }, Some(at)) => {
                self.regions.put(at, &[], own.signal);
            }
            (Op::Get { into, .. }, Some(at)) if into.len > 0 => {
                // SAFETY: the destination is writable, by the caller's promise.
                unsafe { self.regions.get(at, into.addr, into.len) };
            }
            (Op::Message { from }, _) => {
                let mut bytes = [0; MESSAGE];
                let len = from.len.min(MESSAGE);
                if len > 0 {
                    // SAFETY: the bytes are readable, by the caller's promise.
                    unsafe { oxshmem_heap::copy::copy(bytes.as_mut_ptr(), own.source, len) };
                }
                let me: Pe = self.job.me;
                let mail = Mail::new(me, lane, &bytes[..len]);
                let reply = self.mailbox.deliver(mail);
                reply.iter().for_each(|reply| {
                    self.regions.reply(reply);
                });
            }
            _ => {}
        }
    }
}
