//! The buffers in which peers' messages arrive, and the queues of their completions.
//!
//! Where the device has shared receive queues, all queue pairs share one. Else each queue pair has a *ring* of receives of
//! its own; the rings of a *block* share a completion queue and registered memory. A buffer belongs to the device from its
//! posting until its completion was taken, or until its queue pair is gone. No completion queue overruns: it has room
//! for every buffer that may complete in it.

use std::any::Any;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam::queue::SegQueue;
use oxshmem_transport::{Error, Result};

use crate::arena::Arena;
use crate::ibv::{
    Channel, CompletionQueue, DeviceLimits, Posted, QueuePair, ReceiveBuffers, ReceiveSource,
    SharedReceiveQueue,
};
use crate::limits::MESSAGE;
use crate::port_state::PortState;

/// Buffers of a shared receive queue: as many messages may wait for the inbox. A device that finds no buffer holds up all
/// that its peer sends, so there are more in a large job.
const LEAST_BUFFERS: u32 = 1024;
const BUFFERS_PER_PE: u32 = 16;

/// Buffers of a ring: as many messages of one lane may wait for the inbox.
const RING: u32 = 64;

/// Rings of a block at most: one bit each says whether it is in use.
const RINGS: u32 = u32::BITS;

/// Completions and messages taken with one call.
pub(crate) const BATCH: usize = 32;

/// Entries of a completion queue beside those for the buffers: completions of queue pairs that are gone.
const SPARE: u32 = 64;

/// Receive buffers of all queue pairs.
#[derive(Debug)]
pub(crate) enum Receives {
    Shared(Arc<SharedBuffers>),
    PerPair(Rings),
}

/// A shared receive queue, and its buffers.
#[derive(Debug)]
pub(crate) struct SharedBuffers {
    // Before its buffers.
    queue: Arc<SharedReceiveQueue>,
    completions: Arc<CompletionQueue>,
    /// Buffers that the device refused when they were posted.
    refused: SegQueue<u32>,
    arena: Arena,
}

/// Rings for queue pairs, made when they are needed.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Receives of one ring.
    depth: u32,
    /// Rings of one block.
    per_block: u32,
    blocks: Mutex<Vec<Arc<Block>>>,
    channel: Arc<Channel>,
}

/// The memory and the completion queue of some rings.
#[derive(Debug)]
pub(crate) struct Block {
    completions: Arc<CompletionQueue>,
    arena: Arena,
    /// A bit for each ring in use.
    used: AtomicU32,
}

/// The receives of one queue pair.
#[derive(Debug)]
pub(crate) struct Ring {
    block: Arc<Block>,
    index: u32,
    depth: u32,
}

/// The source of one queue pair's receives.
#[derive(Debug)]
pub(crate) enum PairReceives {
    Shared(Arc<SharedBuffers>),
    Own(Arc<Ring>),
}

impl PairReceives {
    pub(crate) fn completions(&self) -> &Arc<CompletionQueue> {
        match self {
            PairReceives::Shared(shared) => &shared.completions,
            PairReceives::Own(ring) => &ring.block.completions,
        }
    }

    pub(crate) fn source(&self) -> ReceiveSource<'_> {
        match self {
            PairReceives::Shared(shared) => ReceiveSource::Shared(&shared.queue),
            PairReceives::Own(ring) => ReceiveSource::Own(ring.depth),
        }
    }

    /// The memory of the receives. A ring is another queue pair's when nobody holds it any more.
    pub(crate) fn memory(&self) -> Arc<dyn Any + Send + Sync> {
        match self {
            PairReceives::Shared(shared) => Arc::clone(shared) as _,
            PairReceives::Own(ring) => Arc::clone(ring) as _,
        }
    }

    /// Posts the receives that are the queue pair's own. It has not received yet.
    pub(crate) fn fill(&self, pair: &QueuePair) -> Result<()> {
        match self {
            PairReceives::Shared(_) => Ok(()),
            PairReceives::Own(ring) => {
                let all: Vec<u32> = (0..ring.depth).collect();
                ring.post(pair, &all)
            }
        }
    }

    /// The ring, if they are the queue pair's own.
    pub(crate) fn into_ring(self) -> Option<Arc<Ring>> {
        match self {
            PairReceives::Shared(_) => None,
            PairReceives::Own(ring) => Some(ring),
        }
    }
}

fn lock(blocks: &Mutex<Vec<Arc<Block>>>) -> std::sync::MutexGuard<'_, Vec<Arc<Block>>> {
    blocks.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receives {
    pub(crate) fn new(port_state: &PortState, channel: &Arc<Channel>) -> Result<Receives> {
        let limits = port_state.port.limits;
        if !limits.has_shared_receives() {
            let depth = ring_depth(limits);
            let fit = limits.completions.saturating_sub(SPARE) / depth;
            return Ok(Receives::PerPair(Rings {
                depth,
                per_block: fit.clamp(1, RINGS),
                blocks: Mutex::default(),
                channel: Arc::clone(channel),
            }));
        }
        let count = shared_buffers(port_state.published.job.size, limits);
        let domain = &port_state.protection_domain;
        let shared = SharedBuffers {
            queue: Arc::new(SharedReceiveQueue::new(domain, count)?),
            completions: completions(port_state, channel, count)?,
            refused: SegQueue::new(),
            arena: Arena::new(domain, count as usize * MESSAGE)?,
        };
        let all: Vec<u32> = (0..count).collect();
        shared.try_post(&all).map_err(|(_, error)| error)?;
        Ok(Receives::Shared(Arc::new(shared)))
    }

    /// Whether all queue pairs share the buffers.
    pub(crate) fn are_shared(&self) -> bool {
        matches!(self, Receives::Shared(_))
    }

    /// The receives of a new queue pair.
    pub(crate) fn of_pair(&self, port_state: &PortState) -> Result<PairReceives> {
        match self {
            Receives::Shared(shared) => Ok(PairReceives::Shared(Arc::clone(shared))),
            Receives::PerPair(rings) => {
                let ring = rings.claim(port_state)?;
                Ok(PairReceives::Own(Arc::new(ring)))
            }
        }
    }

    /// Calls `with` for each queue of completions.
    pub(crate) fn each_queue(
        &self,
        mut with: impl FnMut(&CompletionQueue) -> Result<()>,
    ) -> Result<()> {
        match self {
            Receives::Shared(shared) => with(&shared.completions),
            Receives::PerPair(rings) => lock(&rings.blocks)
                .iter()
                .try_for_each(|block| with(&block.completions)),
        }
    }

    /// The first byte of a buffer. `ring`: that of its queue pair.
    pub(crate) fn buffer(&self, ring: Option<&Ring>, number: u32) -> *mut u8 {
        match (self, ring) {
            (_, Some(ring)) => ring.buffers().at(number),
            (Receives::Shared(shared), None) => shared.buffers().at(number),
            // Queue pairs have rings here; this one is not of this domain.
            (Receives::PerPair(_), None) => std::ptr::null_mut(),
        }
    }

    /// Posts shared buffers that nothing else uses. Those that the device refuses are posted again later.
    pub(crate) fn post_shared(&self, numbers: &[u32]) {
        if let Receives::Shared(shared) = self
            && let Err((taken, error)) = shared.try_post(numbers)
        {
            tracing::warn!(%error, "buffers for messages are offered again later");
            let left = numbers.get(taken..).unwrap_or_default();
            left.iter().for_each(|number| shared.refused.push(*number));
        }
    }

    /// Posts the buffers again that the device refused.
    pub(crate) fn post_refused(&self) {
        let Receives::Shared(shared) = self else {
            return;
        };
        // Once each: one that is refused again goes to the end.
        for _ in 0..shared.refused.len() {
            let Some(number) = shared.refused.pop() else {
                break;
            };
            if shared.try_post(&[number]).is_err() {
                shared.refused.push(number);
            }
        }
    }
}

/// The number of shared buffers in a job of so many PEs, if the device holds as many, and their completions.
fn shared_buffers(pes: u32, limits: DeviceLimits) -> u32 {
    let wanted = pes.saturating_mul(BUFFERS_PER_PE).max(LEAST_BUFFERS);
    let completions = limits.completions.saturating_sub(SPARE);
    wanted.min(limits.receive_depth).min(completions).max(1)
}

/// The number of receives of one ring.
fn ring_depth(limits: DeviceLimits) -> u32 {
    RING.min(limits.queue_depth).max(1)
}

/// The messages of each PE that may be here without a reply, in a job of so many PEs: a buffer is ready for each of them, as far
/// as the device holds so many.
pub(crate) fn message_window(pes: u32, limits: DeviceLimits) -> NonZeroU32 {
    let (buffers, sharers) = match limits.has_shared_receives() {
        true => (shared_buffers(pes, limits), pes.max(1)),
        // A PE's lanes have a ring each, and one may send all its messages.
        false => (ring_depth(limits), 1),
    };
    // The buffers of a batch are posted together, after the replies to some of its messages.
    let late = (BATCH as u32).min(buffers / 2);
    // One of each share is for the end of a lane, which is a message without a reply.
    let window = ((buffers - late) / sharers).saturating_sub(1);
    NonZeroU32::new(window).unwrap_or(NonZeroU32::MIN)
}

/// A queue for the completions of so many buffers.
fn completions(
    port_state: &PortState,
    channel: &Arc<Channel>,
    buffers: u32,
) -> Result<Arc<CompletionQueue>> {
    let entries = (buffers + SPARE).min(port_state.port.limits.completions);
    let spread = port_state.published.job.host_rank;
    let context = &port_state.port.context;
    CompletionQueue::new(context, entries.max(1), Some((channel, spread))).map(Arc::new)
}

impl SharedBuffers {
    fn buffers(&self) -> ReceiveBuffers {
        ReceiveBuffers {
            base: self.arena.at(0),
            len: MESSAGE as u32,
            lkey: self.arena.lkey(),
        }
    }

    fn try_post(&self, numbers: &[u32]) -> Posted<Error> {
        // SAFETY: the buffers are the arena's, which is registered. Their completions are taken before they are
        // posted again; the arena ends after the queue pairs, which hold the domain's objects and
        // are dropped first.
        unsafe { self.queue.post(self.buffers(), numbers) }
    }
}

impl Rings {
    /// A ring that no queue pair uses.
    fn claim(&self, port_state: &PortState) -> Result<Ring> {
        let mut blocks = lock(&self.blocks);
        let ring = |block: &Arc<Block>| {
            Some(Ring {
                index: block.claim(self.per_block)?,
                block: Arc::clone(block),
                depth: self.depth,
            })
        };
        if let Some(ring) = blocks.iter().find_map(ring) {
            return Ok(ring);
        }
        let count = self.per_block * self.depth;
        let block = Arc::new(Block {
            completions: completions(port_state, &self.channel, count)?,
            arena: Arena::new(&port_state.protection_domain, count as usize * MESSAGE)?,
            used: AtomicU32::new(1),
        });
        // An inbox may be asleep: it has requested events of the queues that there were.
        block.completions.arm()?;
        blocks.push(Arc::clone(&block));
        Ok(Ring {
            block,
            index: 0,
            depth: self.depth,
        })
    }
}

impl Block {
    /// Claims a ring of a block of `count`, if one is free.
    fn claim(&self, count: u32) -> Option<u32> {
        let free = |used: u32| used.trailing_ones() < count;
        let taken = |used: u32| free(used).then(|| used | 1 << used.trailing_ones());
        // Acquire: with the release by the last user of the ring, whose queue pair is gone.
        let before = self
            .used
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, taken);
        before.ok().map(u32::trailing_ones)
    }
}

impl Ring {
    fn buffers(&self) -> ReceiveBuffers {
        let first = (self.index * self.depth) as usize * MESSAGE;
        ReceiveBuffers {
            base: self.block.arena.at(first),
            len: MESSAGE as u32,
            lkey: self.block.arena.lkey(),
        }
    }

    /// Posts some of its buffers, which nothing else uses, to its queue pair.
    pub(crate) fn post(&self, pair: &QueuePair, numbers: &[u32]) -> Result<()> {
        // SAFETY: the buffers are the block's, which are registered and outlive the queue pair. Each is posted at
        // first, and then after its completion was taken.
        unsafe { pair.post_receives(self.buffers(), numbers) }.map_err(|(_, error)| error)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Release: its queue pair is gone.
        self.block
            .used
            .fetch_and(!(1 << self.index), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(shared_queues: u32, receive_depth: u32, completions: u32) -> DeviceLimits {
        DeviceLimits {
            queue_depth: 4096,
            completions,
            shared_queues,
            queue_pairs: 1024,
            receive_depth,
            reads_out: 16,
            reads_in: 16,
            atomics: 0,
            pci_atomics: false,
            vendor: 0,
            part: 0,
            ports: 1,
        }
    }

    #[test]
    fn shared_buffers_grow_with_the_job_as_far_as_the_device_holds_them() {
        let of = |pes, receive_depth, completions| {
            shared_buffers(pes, limits(1, receive_depth, completions))
        };
        let large = 1 << 20;
        assert_eq!(of(1, large, large), 1024);
        assert_eq!(of(64, large, large), 1024);
        assert_eq!(of(65, large, large), 1040);
        assert_eq!(of(10_000, large, large), 160_000);
        assert_eq!(of(10_000, 32_767, large), 32_767);
        assert_eq!(of(u32::MAX, large, large), large - SPARE);
        // No completion is lost for want of room.
        assert_eq!(of(1, 128, 255), 128);
        assert_eq!(of(1, 1024, 255), 255 - SPARE);
        assert_eq!(of(1, 1024, 10), 1);
    }

    #[test]
    fn the_windows_of_all_pes_and_a_batch_fit_into_the_buffers() {
        let large = 1 << 20;
        for pes in [1, 2, 5, 64, 65, 1000, 10_000] {
            for receive_depth in [64, 1024, 32_767, large] {
                let limits = limits(1, receive_depth, large);
                let window = message_window(pes, limits).get();
                let buffers = shared_buffers(pes, limits);
                let taken = pes * (window + 1) + BATCH as u32;
                assert!(window == 1 || taken <= buffers, "{pes} {receive_depth}");
            }
        }
        let of = |pes, depth| message_window(pes, limits(1, depth, large)).get();
        assert_eq!(
            [of(64, large), of(10_000, 32_767), of(10_000, 64)],
            [14, 2, 1]
        );
        // A ring is one lane's alone.
        for pes in [1, 10_000] {
            let window = message_window(pes, limits(0, 0, large)).get();
            assert_eq!(window + 1 + BATCH as u32, RING);
        }
    }
}
