//! Receive buffers, of one queue pair or shared by many.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::Mutex;

use crate::abi::sys::ibv_sge;
use crate::sync::lock;

/// A posted buffer.
#[derive(Clone)]
pub(crate) struct Buffer {
    pub(crate) id: u64,
    pub(crate) parts: Vec<ibv_sge>,
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({:#x})", self.id)
    }
}

impl Buffer {
    pub(crate) fn len(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.length)).sum()
    }
}

#[derive(Debug)]
struct Posted {
    buffers: VecDeque<Buffer>,
    refused: Option<c_int>,
    /// Whether buffers are flushed, as those of a queue pair in the error state.
    flushes: bool,
    /// Below so many buffers an event is due, once.
    limit: u32,
}

/// A queue of receive buffers.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    pub(crate) depth: u32,
    pub(crate) parts: u32,
    posted: Mutex<Posted>,
}

impl ReceiveQueue {
    pub(crate) fn new(depth: u32, parts: u32, refused: Option<c_int>) -> ReceiveQueue {
        let posted = Posted {
            buffers: VecDeque::new(),
            refused,
            flushes: false,
            limit: 0,
        };
        ReceiveQueue {
            depth,
            parts,
            posted: Mutex::new(posted),
        }
    }

    pub(crate) fn accept(&self, refused: Option<c_int>) {
        let mut posted = lock(&self.posted);
        (posted.refused, posted.flushes) = (refused, false);
    }

    /// Has buffers be taken and flushed.
    pub(crate) fn flush_all(&self) {
        lock(&self.posted).flushes = true;
    }

    pub(crate) fn flushes(&self) -> bool {
        lock(&self.posted).flushes
    }

    pub(crate) fn post(&self, buffer: Buffer) -> Result<(), c_int> {
        let mut posted = lock(&self.posted);
        if let Some(error) = posted.refused {
            return Err(error);
        }
        if buffer.parts.len() > self.parts as usize {
            return Err(libc::EINVAL);
        }
        if posted.buffers.len() >= self.depth as usize {
            return Err(libc::ENOMEM);
        }
        posted.buffers.push_back(buffer);
        Ok(())
    }

    /// The next buffer, and whether fewer are left than the program wanted to know of.
    pub(crate) fn take(&self) -> Option<(Buffer, bool)> {
        let mut posted = lock(&self.posted);
        let buffer = posted.buffers.pop_front()?;
        let below = (posted.buffers.len() as u64) < u64::from(posted.limit);
        if below {
            posted.limit = 0;
        }
        Some((buffer, below))
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.posted).buffers.is_empty()
    }

    pub(crate) fn clear(&self) {
        lock(&self.posted).buffers.clear();
    }

    pub(crate) fn set_limit(&self, limit: u32) {
        lock(&self.posted).limit = limit;
    }

    pub(crate) fn limit(&self) -> u32 {
        lock(&self.posted).limit
    }
}
