//! The completion queues of a lane, one at each NIC, and the credits for their entries.

use std::ops::AddAssign;
use std::sync::Arc;

use oxshmem_transport::Result;

use crate::ibv::{CompletionQueue, Context};
use crate::limits::MOST_RAILS;
use crate::port_state::PortState;

/// A completion queue, with its credits.
#[derive(Debug)]
pub(crate) struct CompletionRoom {
    pub(crate) queue: Arc<CompletionQueue>,
    /// Free entries, beside those of outstanding requests.
    pub(crate) credits: u32,
    /// Completions of destroyed queue pairs that it may still hold.
    pub(crate) flushed: u32,
}

impl CompletionRoom {
    pub(super) fn new(context: &Arc<Context>, entries: u32) -> Result<CompletionRoom> {
        let queue = CompletionQueue::new(context, entries, None)?;
        Ok(CompletionRoom {
            credits: queue.capacity(),
            queue: Arc::new(queue),
            flushed: 0,
        })
    }

    /// Enlarges it to so many entries, if the device can. Where it cannot, connections share the entries that there are.
    pub(super) fn reserve(&mut self, wanted: u32, limit: u32) {
        let before = self.queue.capacity();
        if wanted <= before || before >= limit {
            return;
        }
        let entries = wanted.next_power_of_two().min(limit);
        match self.queue.resize(entries) {
            Ok(()) => self.credits += self.queue.capacity().saturating_sub(before),
            Err(error) => tracing::debug!(%error, "connections share their completion queue"),
        }
    }

    /// The queue holds nothing of a destroyed queue pair any more.
    pub(super) fn reclaim(&mut self) {
        self.credits += std::mem::take(&mut self.flushed);
    }
}

/// A lane's part at one of the NICs after the first.
#[derive(Debug)]
pub(super) struct LaneNic {
    pub(super) room: CompletionRoom,
    pub(super) port_state: Arc<PortState>,
}

/// A lane's part at a NIC after the first; none where the lane does not use it.
#[inline]
pub(super) fn further_at(further: &[LaneNic], rail: u8) -> Option<&LaneNic> {
    further.iter().find(|nic| nic.port_state.rail == rail)
}

/// A lane's completion queue at a NIC, with its credits; none where the lane does not use it.
#[inline]
pub(super) fn room_at<'a>(
    first: &'a CompletionRoom,
    further: &'a [LaneNic],
    rail: u8,
) -> Option<&'a CompletionRoom> {
    match rail {
        0 => Some(first),
        rail => further_at(further, rail).map(|nic| &nic.room),
    }
}

/// The same, to be changed.
#[inline]
pub(super) fn room_at_mut<'a>(
    first: &'a mut CompletionRoom,
    further: &'a mut [LaneNic],
    rail: u8,
) -> Option<&'a mut CompletionRoom> {
    match rail {
        0 => Some(first),
        rail => {
            let mut nics = further.iter_mut();
            let nic = nics.find(|nic| nic.port_state.rail == rail)?;
            Some(&mut nic.room)
        }
    }
}

/// The credits for requests to a NIC's completion queue.
#[inline]
pub(super) fn credits_at(first: &CompletionRoom, further: &[LaneNic], rail: u8) -> u32 {
    room_at(first, further, rail).map_or(0, |room| room.credits)
}

/// Completions of destroyed queue pairs, by NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flushed([u32; MOST_RAILS]);

impl Flushed {
    /// So many at one NIC.
    pub(super) fn at(rail: u8, count: u32) -> Flushed {
        let mut flushed = Flushed::default();
        flushed.add(rail, count);
        flushed
    }

    pub(super) fn add(&mut self, rail: u8, count: u32) {
        if let Some(at) = self.0.get_mut(usize::from(rail)) {
            *at += count;
        }
    }

    /// Those at one NIC.
    pub(super) fn of(&self, rail: u8) -> u32 {
        self.0.get(usize::from(rail)).copied().unwrap_or(0)
    }
}

impl AddAssign for Flushed {
    fn add_assign(&mut self, other: Flushed) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(one, more)| *one += more);
    }
}
