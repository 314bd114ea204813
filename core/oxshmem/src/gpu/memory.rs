//! What a GPU heap is made of.

use std::fmt;

use oxshmem_transport::Memory;

/// GPU memory of one PE, reserved as a whole and committed from its start, piece by piece, as the heap
/// grows. Its pieces lie one behind the other in its GPU's addresses.
pub trait GpuMemory: Send + fmt::Debug {
    /// Bytes reserved: the heap's limit.
    fn limit(&self) -> usize;

    /// Whether it is committed already, and known to transports as one piece.
    fn is_whole(&self) -> bool {
        false
    }

    /// Commits the `len` bytes from `start` on, where the piece before has ended. It stays where it is
    /// while what is given lives. All or nothing; an error says in words what is missing and how to
    /// mend it.
    fn commit(&mut self, start: usize, len: usize) -> Result<Memory, String>;

    /// Takes back the pieces from `start` on, which nobody has used.
    fn uncommit(&mut self, start: usize);
}

/// Memory that is there.
impl GpuMemory for Memory {
    fn limit(&self) -> usize {
        self.len()
    }

    fn is_whole(&self) -> bool {
        true
    }

    fn commit(&mut self, _start: usize, _len: usize) -> Result<Memory, String> {
        Ok(self.clone())
    }

    fn uncommit(&mut self, _start: usize) {}
}
