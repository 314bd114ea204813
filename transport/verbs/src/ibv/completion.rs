//! Completion queues, completions, and the channel that wakes a sleeper for them.

use std::ffi::c_int;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use oxshmem_transport::Result;

use super::calls::{ibv_poll_cq, ibv_req_notify_cq};
use super::context::Context;
use super::result::{created, ended, failed, returned};
use super::sys::{ibv_comp_channel, ibv_cq, ibv_wc, ibv_wc_status};

/// Wakes a thread that sleeps until completions arrive.
#[doc(alias = "ibv_create_comp_channel")]
#[derive(Debug)]
pub(crate) struct Channel {
    raw: NonNull<ibv_comp_channel>,
    context: Arc<Context>,
}

// SAFETY: the library synchronises calls on a channel.
unsafe impl Send for Channel {}
// SAFETY: as for Send.
unsafe impl Sync for Channel {}

impl Channel {
    /// Its descriptor does not block.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Channel> {
        // SAFETY: the context is open.
        let raw = unsafe { context.library().ibv_create_comp_channel(context.as_raw()) };
        let channel = Channel {
            raw: created("ibv_create_comp_channel", raw)?,
            context: Arc::clone(context),
        };
        let fd = channel.descriptor();
        // SAFETY: two calls on a descriptor that is open, without memory.
        let code = unsafe {
            let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        match code {
            -1 => Err(failed("fcntl O_NONBLOCK", io::Error::last_os_error())),
            _ => Ok(channel),
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel lives.
        let fd: RawFd = unsafe { (*self.raw.as_ptr()).fd };
        // SAFETY: the descriptor is open while the channel lives.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }

    /// Takes all pending events.
    #[doc(alias = "ibv_get_cq_event")]
    pub(crate) fn drain(&self) {
        let library = self.context.library();
        let (mut queue, mut context) = (null_mut(), null_mut());
        // SAFETY: the channel lives, both pointers are written. It does not block.
        while unsafe {
            library.ibv_get_cq_event(self.raw.as_ptr(), &raw mut queue, &raw mut context)
        } == 0
        {
            // SAFETY: the queue that the event names: those that use this channel hold it, and
            // wait, when destroyed, until their events are acknowledged.
            unsafe { library.ibv_ack_cq_events(queue, 1) };
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: ended once; its queues hold it, so are gone.
        let code = unsafe {
            let library = self.context.library();
            library.ibv_destroy_comp_channel(self.raw.as_ptr())
        };
        ended("ibv_destroy_comp_channel", code);
    }
}

/// The queue to which completions are written.
#[doc(alias = "ibv_create_cq")]
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    raw: NonNull<ibv_cq>,
    _channel: Option<Arc<Channel>>,
    context: Arc<Context>,
}

// SAFETY: the library synchronises calls on a queue.
unsafe impl Send for CompletionQueue {}
// SAFETY: as for Send.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// `channel`: that which its events go to, and a number that spreads queues over the device's interrupts.
    pub(crate) fn new(
        context: &Arc<Context>,
        entries: u32,
        channel: Option<(&Arc<Channel>, u32)>,
    ) -> Result<CompletionQueue> {
        let raw_channel = channel.map_or(null_mut(), |(channel, _)| channel.raw.as_ptr());
        // SAFETY: the context is open.
        let vectors = unsafe { (*context.as_raw()).num_comp_vectors };
        let vector = channel.map_or(0, |(_, spread)| completion_vector(spread, vectors));
        let count = i32::try_from(entries).unwrap_or(i32::MAX);
        // SAFETY: context and channel live.
        let raw = unsafe {
            let library = context.library();
            library.ibv_create_cq(context.as_raw(), count, null_mut(), raw_channel, vector)
        };
        Ok(CompletionQueue {
            raw: created(&format!("ibv_create_cq of {entries} entries"), raw)?,
            _channel: channel.map(|(channel, _)| Arc::clone(channel)),
            context: Arc::clone(context),
        })
    }

    pub(crate) fn as_raw(&self) -> *mut ibv_cq {
        self.raw.as_ptr()
    }

    /// The number of completions that it holds.
    pub(crate) fn capacity(&self) -> u32 {
        // SAFETY: the queue lives.
        u32::try_from(unsafe { (*self.raw.as_ptr()).cqe }).unwrap_or(0)
    }

    #[doc(alias = "ibv_resize_cq")]
    pub(crate) fn resize(&self, entries: u32) -> Result<()> {
        let count = i32::try_from(entries).unwrap_or(i32::MAX);
        // SAFETY: the queue lives.
        let code = unsafe { self.context.library().ibv_resize_cq(self.as_raw(), count) };
        returned(&format!("ibv_resize_cq to {entries} entries"), code)
    }

    /// Takes completions, as many as there are and fit: so many of `into` are filled.
    #[doc(alias = "ibv_poll_cq")]
    #[inline]
    pub(crate) fn poll(&self, into: &mut [Completion]) -> Result<usize> {
        let room = i32::try_from(into.len()).unwrap_or(i32::MAX);
        // SAFETY: the queue lives, at most `room` completions are written, which are what the array
        // holds.
        let count = unsafe { ibv_poll_cq(self.as_raw(), room, into.as_mut_ptr().cast()) };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => Err(failed(
                "ibv_poll_cq",
                io::Error::from_raw_os_error(libc::EIO),
            )),
        }
    }

    /// Requests an event for the next completion that was sent as solicited, or failed.
    #[doc(alias = "ibv_req_notify_cq")]
    pub(crate) fn arm(&self) -> Result<()> {
        // SAFETY: the queue lives.
        returned("ibv_req_notify_cq", unsafe {
            ibv_req_notify_cq(self.as_raw(), 1)
        })
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: ended once; its queue pairs hold it, so are gone.
        ended("ibv_destroy_cq", unsafe {
            self.context.library().ibv_destroy_cq(self.as_raw())
        });
    }
}

/// The completion vector, which is an interrupt and so a CPU, of a queue: those of a host's PEs differ.
fn completion_vector(spread: u32, vectors: c_int) -> c_int {
    match u32::try_from(vectors) {
        Ok(vectors) if vectors > 0 => c_int::try_from(spread % vectors).unwrap_or(0),
        _ => 0,
    }
}

/// `IBV_WC_WITH_IMM`.
const WITH_IMMEDIATE: u32 = 2;

/// The completion of a request.
#[doc(alias = "ibv_wc")]
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Completion(ibv_wc);

impl Completion {
    /// An empty one, for arrays to poll into.
    pub(crate) fn none() -> Completion {
        // SAFETY: integers only, for which zero is a value.
        Completion(unsafe { std::mem::zeroed() })
    }

    #[cfg(test)]
    pub(crate) fn failed(status: ibv_wc_status::Type, vendor_code: u32) -> Completion {
        let mut completion = Completion::none();
        (completion.0.status, completion.0.vendor_err) = (status, vendor_code);
        completion
    }

    /// The number that the request had.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.0.wr_id
    }

    #[inline]
    pub(crate) fn succeeded(&self) -> bool {
        self.0.status == ibv_wc_status::IBV_WC_SUCCESS
    }

    pub(crate) fn status(&self) -> ibv_wc_status::Type {
        self.0.status
    }

    pub(crate) fn vendor_code(&self) -> u32 {
        self.0.vendor_err
    }

    /// The number of this side's queue pair.
    #[inline]
    pub(crate) fn queue_pair(&self) -> u32 {
        self.0.qp_num
    }

    /// Whether a message with immediate data was received.
    #[inline]
    pub(crate) fn has_immediate(&self) -> bool {
        self.succeeded() && self.0.wc_flags & WITH_IMMEDIATE != 0
    }

    /// Bytes received; 0 if it failed, when its length means nothing.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.succeeded() {
            self.0.byte_len as usize
        } else {
            0
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("id", &self.id())
            .field("status", &self.status())
            .field("queue_pair", &self.queue_pair())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sleepers_of_one_host_are_not_all_woken_by_one_cpu() {
        let vectors: Vec<c_int> = (8..16).map(|pe| completion_vector(pe, 8)).collect();
        assert_eq!(vectors, [0, 1, 2, 3, 4, 5, 6, 7]);
        // A device without a number of them has the first.
        for none in [0, -1] {
            assert_eq!(completion_vector(5, none), 0);
        }
    }
}
