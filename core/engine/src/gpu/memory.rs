//! The two traits of GPU memory that users may implement: [`GpuMemory`], of which a heap is made, and [`GpuAccess`], by
//! which its PE's process accesses it.

use std::fmt;
use std::sync::Arc;

use oxshmem_transport::{AtomicRequest, Memory};

/// GPU memory of one PE, reserved as a whole and committed from its start, piece by piece, as the heap
/// grows. Its pieces lie one behind the other in its GPU's addresses.
///
/// Safe code cannot implement it:
///
/// ```compile_fail
/// #[derive(Debug)]
/// struct Pretended;
/// impl oxshmem::GpuMemory for Pretended {
///     fn limit(&self) -> usize { 1 << 40 }
///     fn commit(&mut self, _: usize, _: usize) -> Result<oxshmem::Memory, String> { Err(String::new()) }
///     fn uncommit(&mut self, _: usize) {}
/// }
/// ```
///
/// # Safety
///
/// Transports access memory by this trait's answers. An implementation promises that [`commit`](Self::commit) gives memory of
/// the length that was asked for (a whole one its [`limit`](Self::limit)), which lies behind the piece before, is a GPU's, and
/// stays there while the [`Memory`] lives.
pub unsafe trait GpuMemory: Send + fmt::Debug {
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

    /// Takes back the pieces from `start` on, which were never used.
    fn uncommit(&mut self, start: usize);

    /// The access of this process to it, requested once, before anything is committed. None if there is none: then
    /// transports that carry it reach it, and nothing else does.
    fn access(&mut self) -> Result<Option<Arc<dyn GpuAccess>>, String> {
        Ok(None)
    }
}

/// A PE's own GPU memory, as its process accesses it: the base of staged transfers, through host memory, and of
/// atomics between PEs that no transport joins.
///
/// Any thread may call. Each call is done when it returns: written bytes are in place, for the GPU too.
/// Places are in bytes from the heap's start; one that is not committed is refused with an error in
/// words. Calls must be bounded even while the GPU is busy, as long as a copy or a kernel of one thread:
/// another PE may be blocked on this one.
pub trait GpuAccess: Send + Sync + fmt::Debug {
    /// Copies bytes into GPU memory, each aligned word whole.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes. Others may be writing there: the bytes that arrive then are unspecified.
    unsafe fn write(&self, offset: u64, source: *const u8, len: usize) -> Result<(), String>;

    /// Copies bytes out of GPU memory.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes, and lies behind no reference but the caller's.
    unsafe fn read(&self, offset: u64, destination: *mut u8, len: usize) -> Result<(), String>;

    /// Performs an atomic on a word, aligned to its width, exclusive against those that the GPU and
    /// transports perform on it (M28). Gives the old value; of
    /// [`AtomicOp::Set`](oxshmem_transport::AtomicOp::Set) any.
    fn atomic(&self, offset: u64, request: AtomicRequest) -> Result<u64, String>;
}

/// Memory that exists already, whole.
// SAFETY: the maker of the memory has promised its length and life; it is one piece.
unsafe impl GpuMemory for Memory {
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
