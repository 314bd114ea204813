//! Kernels in execution: the clocks of their threads, from the launch to the end.

use std::sync::{Arc, Mutex};

use super::clock::{Agent, Clock};
use super::notes::{Launch, notes};
use super::strand::{Piece, piece_waited, running};
use super::thread::Thread;
use crate::kernel::shape::Shape;
use crate::sync::lock;

/// Launches whose names are kept.
const MOST_LAUNCHES: usize = 4096;

/// The check of one grid.
pub(crate) struct GridCheck {
    strand: u32,
    piece: u32,
    device: u32,
    threads: u32,
    before: Arc<Clock>,
    /// All that its threads which are over have heard of others.
    ended: Mutex<(Clock, Option<Arc<Clock>>)>,
    /// All that has come to its barrier in this round, and in the last one.
    gathering: Mutex<Clock>,
    gathered: Mutex<Arc<Clock>>,
}

impl GridCheck {
    /// The check of a grid that the running piece launches.
    pub(crate) fn begin(name: &str, shape: Shape) -> Option<GridCheck> {
        let running = running()?;
        let Piece {
            strand,
            piece,
            device,
            clock: before,
        } = running;
        let mut notes = notes();
        if notes.launches.len() >= MOST_LAUNCHES {
            notes.launches.clear();
        }
        let name = name.to_owned();
        notes
            .launches
            .insert((strand, piece), Launch { name, shape });
        drop(notes);
        Some(GridCheck {
            strand,
            piece,
            device,
            threads: shape.block_threads(),
            before,
            ended: Mutex::default(),
            gathering: Mutex::default(),
            gathered: Mutex::default(),
        })
    }

    /// The clock of one of its threads.
    pub(crate) fn thread(&self, block: u64, thread: u32) -> Thread {
        let number = (block as u32)
            .wrapping_mul(self.threads)
            .wrapping_add(thread);
        let agent = Agent {
            strand: self.strand,
            piece: self.piece,
            thread: number,
        };
        Thread::new(agent, self.device, block as u32, &self.before)
    }

    /// A thread of it is over. What it has done itself is over with the grid.
    pub(crate) fn leave(&self, thread: &Thread) {
        let mut ended = lock(&self.ended);
        let (all, last) = &mut *ended;
        let before = thread.before();
        if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, before)) {
            all.join_others(before, (self.strand, self.piece));
            *last = Some(Arc::clone(before));
        }
    }

    /// A thread comes to its barrier.
    pub(crate) fn arrive(&self, thread: &mut Thread) {
        lock(&self.gathering).join(&thread.release());
    }

    /// All have come.
    pub(crate) fn open(&self) {
        let all = std::mem::take(&mut *lock(&self.gathering));
        *lock(&self.gathered) = Arc::new(all);
    }

    /// A thread goes on from its barrier.
    pub(crate) fn pass(&self, thread: &mut Thread) {
        thread.acquire(&lock(&self.gathered));
    }

    /// All its threads are over.
    pub(crate) fn end(self) {
        let ended = self.ended.into_inner();
        let ended = ended.unwrap_or_else(std::sync::PoisonError::into_inner);
        piece_waited(&Arc::new(ended.0));
        notes().pending.end(self.strand, self.piece);
    }
}
