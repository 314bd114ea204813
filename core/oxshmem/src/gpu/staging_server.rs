//! The far side of transfers by way of host memory: what a PE does for others while its program computes, on
//! a thread of its own, so that a GPU that is busy holds up no other message.
//!
//! Some slots of its host heap are lent, one or two to a PE at a time, in the order in which PEs ask. The
//! PE that has one puts data there, or gets data from there, by its ordinary route to host memory, and asks
//! for the copy between slot and GPU. All requests are bytes from outside: a slot that the PE does not
//! have, or a place outside the heap, is refused in words.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_heap::Mapping;
use oxshmem_transport::{AtomicOp, Width};

use super::{GpuAccess, GpuFlushes};
use crate::control::Message;

/// How many slots a PE has.
pub(crate) const SLOTS: usize = 8;
/// The most that one PE is lent: one is filled while the other is copied.
pub(crate) const MAX_LENT: usize = 2;
/// Bytes of a slot, and the part of the host heap that all slots may take where that is small.
const LARGEST: usize = 256 << 10;
const SMALLEST: usize = 4096;
const SHARE: usize = 8;

/// What one PE asks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StageRequest {
    /// Lend me so many slots at most; the answer, a byte for each, comes when there is one at least.
    Take(u8),
    /// Copy from the slot into GPU memory.
    In(StagePiece),
    /// Copy from GPU memory into the slot.
    Out(StagePiece),
    /// I need no slots any more, and wait for none. Not answered.
    Done,
    /// Do this on a word of GPU memory; the answer is what it held.
    Atomic {
        op: AtomicOp,
        width: Width,
        offset: u64,
        operand: u64,
        compare: u64,
    },
}

/// What is copied between a slot's beginning and GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagePiece {
    pub slot: u8,
    pub len: u32,
    /// In bytes from the start of the GPU heap.
    pub offset: u64,
}

impl StagePiece {
    fn to_bytes(self, kind: u8) -> Vec<u8> {
        let mut bytes = vec![kind, self.slot];
        bytes.extend_from_slice(&self.len.to_le_bytes());
        bytes.extend_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<StagePiece> {
        let (slot, rest) = bytes.split_first()?;
        let (len, rest) = rest.split_first_chunk()?;
        Some(StagePiece {
            slot: *slot,
            len: u32::from_le_bytes(*len),
            offset: u64::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

impl StageRequest {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self {
            StageRequest::Take(most) => vec![0, most],
            StageRequest::In(piece) => piece.to_bytes(1),
            StageRequest::Out(piece) => piece.to_bytes(2),
            StageRequest::Done => vec![3],
            StageRequest::Atomic {
                op,
                width,
                offset,
                operand,
                compare,
            } => {
                let mut bytes = vec![4, op as u8, width as u8];
                for word in [offset, operand, compare] {
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
                bytes
            }
        }
    }

    /// None for what no PE of this version sends.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<StageRequest> {
        let (kind, rest) = bytes.split_first()?;
        match (kind, rest) {
            (0, [most]) => Some(StageRequest::Take(*most)),
            (1, rest) => StagePiece::of_bytes(rest).map(StageRequest::In),
            (2, rest) => StagePiece::of_bytes(rest).map(StageRequest::Out),
            (3, []) => Some(StageRequest::Done),
            (4, [op, width, words @ ..]) => {
                let ([offset, operand, compare], []) = words.as_chunks::<8>() else {
                    return None;
                };
                Some(StageRequest::Atomic {
                    op: *AtomicOp::ALL.get(usize::from(*op))?,
                    width: *Width::ALL.get(usize::from(*width))?,
                    offset: u64::from_le_bytes(*offset),
                    operand: u64::from_le_bytes(*operand),
                    compare: u64::from_le_bytes(*compare),
                })
            }
            _ => None,
        }
    }
}

/// Where the slots lie, in the host heap of every PE alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// In bytes from the heap's start.
    pub start: u64,
    /// Bytes of each.
    pub bytes: usize,
}

impl Slots {
    /// Bytes of a slot in a heap of this limit: of whole words, and a power of two.
    pub(crate) fn size(limit: usize) -> usize {
        let share = (limit / SHARE / SLOTS).max(1);
        (1 << share.ilog2()).clamp(SMALLEST, LARGEST)
    }

    /// Bytes of all slots in a heap of this limit.
    pub(crate) fn all(limit: usize) -> usize {
        Self::size(limit) * SLOTS
    }

    pub(crate) fn at(self, slot: u8) -> u64 {
        self.start + u64::from(slot) * self.bytes as u64
    }
}

/// A PE that waits for slots, and the number of its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    pe: u32,
    number: u64,
    most: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Who has it.
    who: Option<u32>,
    /// Copies under way to it and from it. Who has it may be lost meanwhile, which is found on other
    /// threads than the one that copies.
    copies: u32,
}

impl Slot {
    fn is_free(&self) -> bool {
        self.who.is_none() && self.copies == 0
    }
}

#[derive(Debug, Default)]
struct State {
    /// None before all PEs have made theirs.
    slots: Option<Slots>,
    lent: [Slot; SLOTS],
    waiting: VecDeque<Waiting>,
    /// Lost for good: what they asked before may still be in the queue.
    gone: BTreeSet<u32>,
}

impl State {
    /// Lends what there is to those that wait, in their order.
    fn lend(&mut self) -> Vec<(Waiting, Vec<u8>)> {
        let mut all = Vec::new();
        while self.slots.is_some()
            && self.lent.iter().any(Slot::is_free)
            && let Some(next) = self.waiting.pop_front()
        {
            let most = usize::from(next.most).clamp(1, MAX_LENT);
            let free = (0..).zip(&mut self.lent).filter(|(_, slot)| slot.is_free());
            let given = free.take(most).map(|(index, slot)| {
                slot.who = Some(next.pe);
                index
            });
            all.push((next, given.collect()));
        }
        all
    }

    /// Takes back what a PE has and asks for. A slot that is copied is free when that is done.
    fn take_back(&mut self, pe: u32) {
        self.waiting.retain(|waiting| waiting.pe != pe);
        let theirs = self.lent.iter_mut().filter(|slot| slot.who == Some(pe));
        theirs.for_each(|slot| slot.who = None);
    }

    /// Where a PE's slot lies, if it has it and the piece fits. It is lent to nobody else before
    /// [`State::copied`].
    fn copying(&mut self, pe: u32, piece: StagePiece) -> Result<u64, String> {
        let slot = self.lent.get_mut(usize::from(piece.slot));
        match (self.slots, slot) {
            (Some(slots), Some(slot))
                if slot.who == Some(pe) && piece.len as usize <= slots.bytes =>
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

    /// Ends a copy that [`State::copying`] began.
    fn copied(&mut self, slot: u8) {
        if let Some(slot) = self.lent.get_mut(usize::from(slot)) {
            slot.copies -= 1;
        }
    }
}

/// A slot that is copied, until this is dropped.
struct Copying<'a> {
    stage: &'a StagingServer,
    slot: u8,
    at: *mut u8,
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.stage.state().copied(self.slot);
        // Who had it may be lost, and others wait.
        self.stage.lend();
    }
}

/// Who asks, the number of the question, and what it is.
type Asked = (u32, u64, StageRequest);

/// What a PE has for others to reach its GPU by.
pub(crate) struct StagingServer {
    access: Option<Arc<dyn GpuAccess>>,
    own: Arc<Mapping>,
    flushes: GpuFlushes,
    /// Weak: the bootstrap holds the handler, which holds this.
    bootstrap: Weak<dyn Bootstrap>,
    state: Mutex<State>,
    /// To the thread that serves, which the first question begins and the end of this ends; or why there is
    /// none.
    queue: OnceLock<Result<mpsc::Sender<Asked>, String>>,
}

impl fmt::Debug for StagingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

impl StagingServer {
    pub(crate) fn new(
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

    /// From here on there are slots. They lie within the host heap.
    pub(crate) fn open(&self, slots: Slots) {
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

    /// That, for who keeps it.
    #[cfg(feature = "cuda")]
    pub(crate) fn shared_access(&self) -> Option<Arc<dyn GpuAccess>> {
        self.access.clone()
    }

    /// Has what a PE asks done behind what was asked before, and answered then.
    pub(crate) fn asked(self: &Arc<Self>, from: u32, number: u64, request: StageRequest) {
        let queue = self.queue.get_or_init(|| self.start());
        let queued = queue.as_ref().map_err(String::clone).and_then(|queue| {
            let sent = queue.send((from, number, request));
            sent.map_err(|_| "its thread for copies to and from its GPU has ended".into())
        });
        if let Err(why) = queued {
            self.answer(from, number, Err(why));
        }
    }

    fn start(self: &Arc<Self>) -> Result<mpsc::Sender<Asked>, String> {
        let (queue, asked) = mpsc::channel::<Asked>();
        // Weak: it ends with the stage, which has the queue's other end.
        let stage = Arc::downgrade(self);
        let serve = move || {
            for (from, number, request) in asked {
                let Some(stage) = stage.upgrade() else { return };
                stage.serve(from, number, request);
            }
        };
        let thread = std::thread::Builder::new().name("oxshmem-stage".into());
        let started = thread.spawn(serve);
        started.map_err(|error| format!("no thread for copies to and from its GPU: {error}"))?;
        Ok(queue)
    }

    /// Does what a PE asks, and answers when it is done.
    fn serve(&self, from: u32, number: u64, request: StageRequest) {
        match request {
            StageRequest::Take(most) => {
                {
                    let mut state = self.state();
                    if state.gone.contains(&from) {
                        return;
                    }
                    // A PE is in one transfer at a time: what it had before it has given up.
                    state.take_back(from);
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
                // A program's own `GpuAccess` may panic: who asked is told, and those behind are served.
                let performed = catch_unwind(AssertUnwindSafe(|| self.perform(from, request)));
                let answer = performed.unwrap_or_else(|panic| Err(panicked(&*panic)));
                self.answer(from, number, answer);
            }
        }
    }

    /// Takes back what a PE has that needs it no more.
    fn done(&self, pe: u32) {
        self.state().take_back(pe);
        self.lend();
    }

    /// Takes back what a PE has that is gone, and lends it nothing from now on. What is being copied for
    /// it, on another thread, is lent again only when that has ended.
    pub(crate) fn lost(&self, pe: u32) {
        self.state().gone.insert(pe);
        self.done(pe);
    }

    fn lend(&self) {
        // The lock is not held while answers are sent.
        let lent = self.state().lend();
        for (waiting, slots) in lent {
            self.answer(waiting.pe, waiting.number, Ok(slots));
        }
    }

    fn answer(&self, to: u32, number: u64, answer: Result<Vec<u8>, String>) {
        let answer = Message::Answer(number, answer).to_bytes();
        // Who is gone needs no answer, and its loss takes back what it has.
        let _ = self.bootstrap.upgrade().map(|b| b.send(to, &answer));
    }

    fn perform(&self, from: u32, request: StageRequest) -> Result<Vec<u8>, String> {
        let access = self.access()?;
        match request {
            StageRequest::In(piece) => {
                let slot = self.copying(from, piece)?;
                // What came before the request comes before the copy.
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
                // The answer says that it is there.
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
                let old = access.atomic(offset, op, width, (operand, compare))?;
                Ok(old.to_le_bytes().to_vec())
            }
            StageRequest::Take(_) | StageRequest::Done => Ok(Vec::new()),
        }
    }

    fn copying(&self, from: u32, piece: StagePiece) -> Result<Copying<'_>, String> {
        let at = self.state().copying(from, piece)? as usize;
        Ok(Copying {
            stage: self,
            slot: piece.slot,
            at: self.own.base().as_ptr().wrapping_add(at),
        })
    }
}

/// What a call that panicked gives for an answer.
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
