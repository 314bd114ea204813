//! The remote side of staged transfers: a PE's copies for others while its program computes, on
//! a thread of its own, so that a GPU that is busy holds up no other message.
//!
//! Some slots of its host heap are lent, one or two to a PE at a time, in the order of their requests. The
//! PE that has one puts data there, or gets data from there, by its ordinary route to host memory, and requests
//! the copy between slot and GPU. All requests are bytes from outside: a slot that the PE does not
//! have, or a range outside the heap, is refused in words.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_heap::Mapping;
use oxshmem_transport::AtomicRequest;

use crate::control::message::Message;
use crate::gpu::flush::GpuFlushes;
use crate::gpu::memory::GpuAccess;
use crate::gpu::stage_request::{StagePiece, StageRequest};
use crate::memory::target::Target;

/// Slots of a PE.
pub(crate) const SLOTS: usize = 8;
/// The most slots lent to one PE: one is filled while the other is copied.
pub(crate) const MAX_LENT: usize = 2;
/// Bytes of a slot, and the part of the host heap that all slots may take where that is small.
const LARGEST: usize = 256 << 10;
const SMALLEST: usize = 4096;
const SHARE: usize = 8;

/// The addresses of the slots in the host heap, alike on every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The memory of all slots.
    pub area: Target,
    /// Bytes of each.
    pub bytes: usize,
}

impl Slots {
    /// Bytes of a slot in a heap of this limit: of whole words, and a power of two.
    pub fn size(limit: usize) -> usize {
        let share = (limit / SHARE / SLOTS).max(1);
        (1 << share.ilog2()).clamp(SMALLEST, LARGEST)
    }

    /// Bytes of all slots in a heap of this limit.
    pub fn all(limit: usize) -> usize {
        Self::size(limit) * SLOTS
    }

    /// The start of a slot, in bytes from the heap's start.
    pub(crate) fn at(self, slot: u8) -> u64 {
        self.area.offset() + u64::from(slot) * self.bytes as u64
    }

    /// The first `len` bytes of a slot, if there is such a slot and it has as many.
    pub(crate) fn target(self, slot: u8, len: usize) -> Option<Target> {
        let slot = self.area.part(usize::from(slot) * self.bytes, self.bytes)?;
        slot.part(0, len)
    }
}

/// A PE that waits for slots, and the number of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    pe: u32,
    number: u64,
    most: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The PE that it is lent to.
    holder: Option<u32>,
    /// Copies in progress to it and from it. Its holder may be lost meanwhile, which is found on other
    /// threads than the one that copies.
    copies: u32,
}

impl Slot {
    fn is_free(&self) -> bool {
        self.holder.is_none() && self.copies == 0
    }
}

#[derive(Debug, Default)]
struct State {
    /// None before all PEs have made theirs.
    slots: Option<Slots>,
    lent: [Slot; SLOTS],
    waiting: VecDeque<Waiting>,
    /// The PEs that are lost. Their earlier requests may still be in the queue.
    gone: BTreeSet<u32>,
}

impl State {
    /// Lends the free slots to the PEs that wait, in their order.
    fn lend(&mut self) -> Vec<(Waiting, Vec<u8>)> {
        let mut all = Vec::new();
        while self.slots.is_some()
            && self.lent.iter().any(Slot::is_free)
            && let Some(next) = self.waiting.pop_front()
        {
            let most = usize::from(next.most).clamp(1, MAX_LENT);
            let free = (0..).zip(&mut self.lent).filter(|(_, slot)| slot.is_free());
            let given = free.take(most).map(|(index, slot)| {
                slot.holder = Some(next.pe);
                index
            });
            all.push((next, given.collect()));
        }
        all
    }

    /// Takes back a PE's slots and cancels its requests. A slot with a copy in progress is free when that is done.
    fn release(&mut self, pe: u32) {
        self.waiting.retain(|waiting| waiting.pe != pe);
        let theirs = self.lent.iter_mut().filter(|slot| slot.holder == Some(pe));
        theirs.for_each(|slot| slot.holder = None);
    }

    /// Begins a copy to or from a PE's slot, if it has it and the piece fits; gives the slot's address. The slot is
    /// lent to no other PE before [`State::end_copy`].
    fn begin_copy(&mut self, pe: u32, piece: StagePiece) -> Result<u64, String> {
        let slot = self.lent.get_mut(usize::from(piece.slot));
        match (self.slots, slot) {
            (Some(slots), Some(slot))
                if slot.holder == Some(pe) && piece.len as usize <= slots.bytes =>
            {
                slot.copies += 1;
                Ok(slots.at(piece.slot))
            }
            _ => Err(format!(
                "PE {pe} was not lent {} bytes of slot {}",
                piece.len, piece.slot
            )),
        }
    }

    /// Ends a copy that [`State::begin_copy`] began.
    fn end_copy(&mut self, slot: u8) {
        if let Some(slot) = self.lent.get_mut(usize::from(slot)) {
            slot.copies -= 1;
        }
    }
}

/// A copy to or from a slot, until this is dropped.
struct Copying<'a> {
    stage: &'a StagingServer,
    slot: u8,
    at: *mut u8,
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.stage.state().end_copy(self.slot);
        // The slot's holder may have been lost meanwhile, and other PEs may wait for a slot.
        self.stage.lend();
    }
}

/// A request in the queue.
struct Queued {
    from: u32,
    /// The number for the reply.
    number: u64,
    request: StageRequest,
}

/// A PE's service to others that reach its GPU through host memory.
pub struct StagingServer {
    access: Option<Arc<dyn GpuAccess>>,
    own: Arc<Mapping>,
    flushes: GpuFlushes,
    /// Weak: the bootstrap holds the handler, which holds this.
    bootstrap: Weak<dyn Bootstrap>,
    state: Mutex<State>,
    /// The queue to the serving thread, which the first request starts and the end of this ends; or the reason
    /// why there is none.
    queue: OnceLock<Result<mpsc::Sender<Queued>, String>>,
}

impl fmt::Debug for StagingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagingServer")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl StagingServer {
    /// The server of a PE whose process reaches its GPU by `access`.
    pub fn new(
        access: Option<Arc<dyn GpuAccess>>,
        own: &Arc<Mapping>,
        flushes: &GpuFlushes,
        bootstrap: &Arc<dyn Bootstrap>,
    ) -> Self {
        StagingServer {
            access,
            own: Arc::clone(own),
            flushes: flushes.clone(),
            bootstrap: Arc::downgrade(bootstrap),
            state: Mutex::default(),
            queue: OnceLock::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the slots, which lie within the host heap, and lends them to the PEs that wait.
    pub fn open(&self, slots: Slots) {
        self.state().slots = Some(slots);
        self.lend();
    }

    pub(crate) fn slots(&self) -> Option<Slots> {
        self.state().slots
    }

    /// This PE's own GPU memory.
    pub(crate) fn access(&self) -> Result<&dyn GpuAccess, String> {
        let access = self.access.as_deref();
        access.ok_or_else(|| "it has no GPU memory that its process can copy".into())
    }

    /// The same, to be kept.
    pub fn shared_access(&self) -> Option<Arc<dyn GpuAccess>> {
        self.access.clone()
    }

    /// Queues a PE's request; its reply is sent when it is done.
    pub fn asked(self: &Arc<Self>, from: u32, number: u64, request: StageRequest) {
        let queue = self.queue.get_or_init(|| self.start());
        let queued = queue.as_ref().map_err(String::clone).and_then(|queue| {
            let sent = queue.send(Queued {
                from,
                number,
                request,
            });
            sent.map_err(|_| "its thread for copies to and from its GPU has ended".into())
        });
        if let Err(why) = queued {
            self.reply(from, number, Err(why));
        }
    }

    fn start(self: &Arc<Self>) -> Result<mpsc::Sender<Queued>, String> {
        let (queue, requests) = mpsc::channel::<Queued>();
        // Weak: the thread ends with the server, which owns the sending end of the queue.
        let stage = Arc::downgrade(self);
        let serve = move || {
            for queued in requests {
                let Some(stage) = stage.upgrade() else { return };
                stage.serve(queued);
            }
        };
        let thread = std::thread::Builder::new().name("oxshmem-stage".into());
        let started = thread.spawn(serve);
        started.map_err(|error| format!("no thread for copies to and from its GPU: {error}"))?;
        Ok(queue)
    }

    /// Serves a request, and replies when it is done.
    fn serve(&self, queued: Queued) {
        let Queued {
            from,
            number,
            request,
        } = queued;
        match request {
            StageRequest::Take(most) => {
                {
                    let mut state = self.state();
                    if state.gone.contains(&from) {
                        return;
                    }
                    // A PE has one transfer at a time: a new one returns the slots of the one before.
                    state.release(from);
                    state.waiting.push_back(Waiting {
                        pe: from,
                        number,
                        most,
                    });
                }
                self.lend();
            }
            StageRequest::Done => self.done(from),
            request => {
                // A program's own `GpuAccess` may panic: the requester gets the error, and those behind are served.
                let performed = catch_unwind(AssertUnwindSafe(|| self.perform(from, request)));
                let reply = performed.unwrap_or_else(|panic| Err(panicked(&*panic)));
                self.reply(from, number, reply);
            }
        }
    }

    /// Takes back the slots of a PE that needs them no more.
    fn done(&self, pe: u32) {
        self.state().release(pe);
        self.lend();
    }

    /// Takes back the slots of a PE that is gone, and lends it none from now on. A slot with a copy in progress
    /// on another thread is lent again only when that has ended.
    pub fn lost(&self, pe: u32) {
        self.state().gone.insert(pe);
        self.done(pe);
    }

    fn lend(&self) {
        // The lock is not held while replies are sent.
        let lent = self.state().lend();
        for (waiting, slots) in lent {
            self.reply(waiting.pe, waiting.number, Ok(slots));
        }
    }

    fn reply(&self, to: u32, number: u64, reply: Result<Vec<u8>, String>) {
        let reply = Message::Reply(number, reply).to_bytes();
        // A PE that is gone needs no reply, and its loss takes back its slots.
        let _ = self.bootstrap.upgrade().map(|b| b.send(to, &reply));
    }

    fn perform(&self, from: u32, request: StageRequest) -> Result<Vec<u8>, String> {
        let access = self.access()?;
        match request {
            StageRequest::In(piece) => {
                let slot = self.copying(from, piece)?;
                // Earlier stores of the requester come before the copy.
                fence(Ordering::Acquire);
                // SAFETY: the slot lies in the heap, which `own` keeps mapped, and stays this PE's.
                unsafe { access.write(piece.offset, slot.at, piece.len as usize)? };
                Ok(Vec::new())
            }
            StageRequest::Out(piece) => {
                let slot = self.copying(from, piece)?;
                self.flushes.asked()?;
                // SAFETY: the slot lies in the heap, which `own` keeps mapped, stays this PE's, and is
                // behind no reference.
                unsafe { access.read(piece.offset, slot.at, piece.len as usize)? };
                // The copy comes before the reply that announces it.
                fence(Ordering::SeqCst);
                Ok(Vec::new())
            }
            StageRequest::Atomic {
                op,
                width,
                offset,
                operand,
                compare,
            } => {
                if !offset.is_multiple_of(width.bytes() as u64) {
                    return Err(format!("no word of {width} bits is at byte {offset}"));
                }
                self.flushes.asked()?;
                let request = AtomicRequest {
                    op,
                    width,
                    operand,
                    compare,
                };
                let old = access.atomic(offset, request)?;
                Ok(old.to_le_bytes().to_vec())
            }
            StageRequest::Take(_) | StageRequest::Done => Ok(Vec::new()),
        }
    }

    fn copying(&self, from: u32, piece: StagePiece) -> Result<Copying<'_>, String> {
        let at = self.state().begin_copy(from, piece)? as usize;
        Ok(Copying {
            stage: self,
            slot: piece.slot,
            at: self.own.base().as_ptr().wrapping_add(at),
        })
    }
}

/// The reply of a call that panicked.
fn panicked(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or(panic.downcast_ref::<&str>().copied());
    format!(
        "its access to its GPU's memory panicked: {}",
        words.unwrap_or("without a word")
    )
}

#[cfg(test)]
mod tests;
