//! The local side of a transfer on a lane: its memory key, or the bounce buffer that it goes through. Data only.

use oxshmem_transport::{Limits, Local};
use std::fmt;

use crate::lane::in_flight::Until;
use crate::memory::bounce_pool::Bounce;
use crate::memory::registrations::MrKey;

/// The local side of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct LocalBuffer {
    pub(crate) at: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// The key of all of it for the lane's transport, if the caller has one; else it is looked up, and bytes
    /// without one are the CPU's.
    pub(crate) keyed: Option<MrKey>,
}

impl LocalBuffer {
    /// Its first byte's address.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.at
    }

    /// The CPU's memory, or symmetric memory.
    pub fn at(at: *const u8, len: usize) -> LocalBuffer {
        let at = at.cast_mut();
        LocalBuffer {
            at,
            len,
            keyed: None,
        }
    }

    /// A source.
    pub fn read(bytes: &[u8]) -> LocalBuffer {
        LocalBuffer::at(bytes.as_ptr(), bytes.len())
    }

    /// The same bytes by a key of the transport whose lane is used, which lasts as long as they are.
    pub fn keyed(self, keyed: MrKey) -> LocalBuffer {
        LocalBuffer {
            keyed: Some(keyed),
            ..self
        }
    }

    /// A part of it.
    pub(crate) fn part(&self, at: usize, len: usize) -> LocalBuffer {
        LocalBuffer {
            at: self.at.wrapping_add(at),
            len,
            ..*self
        }
    }
}

/// The local side of the next chunk of a transfer.
pub struct LocalChunk<'w> {
    /// The bytes as the transport gets them.
    pub local: Local,
    /// Whether they lie in GPU memory.
    pub on_gpu: bool,
    /// The bounce buffer, if the bytes go through it.
    pub bounce: Option<Bounce<'w>>,
}

impl fmt::Debug for LocalChunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalChunk")
            .field("on_gpu", &self.on_gpu)
            .finish_non_exhaustive()
    }
}

impl LocalChunk<'_> {
    /// The memory itself.
    pub(crate) fn zcopy(addr: *mut u8, len: usize, keyed: Option<MrKey>) -> Self {
        LocalChunk {
            local: Local {
                addr,
                len,
                key: keyed.map(|keyed| keyed.key),
            },
            on_gpu: keyed.is_some_and(|keyed| keyed.on_gpu),
            bounce: None,
        }
    }

    /// How far a put must have come before its source may be reused. A lane copies short ones inline, but nothing that lies
    /// on a GPU.
    #[inline]
    pub(crate) fn until_reusable(&self, limits: Limits) -> Until {
        if self.local.len as u64 <= limits.inline && !self.on_gpu {
            Until::Posted
        } else {
            Until::Reusable
        }
    }
}
