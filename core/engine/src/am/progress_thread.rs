//! The progress thread: it executes active messages of other PEs on this PE's CPU, while the program
//! computes. It exists only where a PE is reached by active messages, and sleeps while none arrive.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use oxshmem_heap::Mapping;
use oxshmem_transport::{AtomicRequest, Domain, Inbox, Pe, RegionId, Remote, Reply};

use crate::am::request::{Action, AmRequest, FLUSHED, NOT_FLUSHED};
use crate::error::{Error, Result};
use crate::gpu::flush::GpuFlushes;
use crate::memory::extents::Extents;
use crate::memory::mapped::{HostMemory, Span};
use crate::order::fence_site::FenceSite;
use crate::report;
use crate::trace::timeline::{Trace, Track};

/// The parts of a PE that its progress thread serves.
#[derive(Clone, Debug)]
pub struct Served {
    /// This PE's own heap, as it is mapped here.
    pub own: Arc<Mapping>,
    /// The extents by which peers have cut their heaps, which have the same size.
    pub extents: Extents,
    /// The flushes of this PE's GPU.
    pub gpu_flushes: GpuFlushes,
}

/// The running thread. Ended by the shutdown of its domain, and waited for when this is dropped.
pub struct ProgressThread {
    thread: Option<JoinHandle<()>>,
    domain: Arc<dyn Domain>,
}

impl fmt::Debug for ProgressThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressThread").finish_non_exhaustive()
    }
}

impl ProgressThread {
    /// Serves the messages to `domain`, with what `served` has. `ended` is called if it ends because it cannot go on.
    pub fn start(
        domain: &Arc<dyn Domain>,
        served: Served,
        ended: Box<dyn FnOnce() + Send>,
        trace: Option<(Arc<Trace>, Track)>,
    ) -> Result<Self> {
        if let Some((trace, track)) = &trace {
            trace.name(*track, "progress thread");
        }
        let mut inbox = domain.inbox()?;
        // A trace shows this thread's work.
        if trace.is_none() {
            let served = served.clone();
            inbox.serve_at_once(Arc::new(move |_, bytes| served.serve_at_once(bytes)));
        }
        let server = RequestServer {
            trace,
            inbox,
            served,
        };
        let thread = std::thread::Builder::new()
            .name("oxshmem-service".into())
            .stack_size(STACK)
            .spawn(move || server.run(ended))
            .map_err(|error| Error::Argument {
                call: "init",
                what: format!("the progress thread cannot be started: {error}"),
            })?;
        Ok(ProgressThread {
            thread: Some(thread),
            domain: Arc::clone(domain),
        })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.domain.shutdown();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Bytes; the thread runs short functions.
const STACK: usize = 256 << 10;
/// The longest sleep, in case a wake is lost.
const SLEEP: Duration = Duration::from_millis(500);

struct RequestServer {
    inbox: Box<dyn Inbox>,
    served: Served,
    trace: Option<(Arc<Trace>, Track)>,
}

impl RequestServer {
    fn run(self, ended: Box<dyn FnOnce() + Send>) {
        let RequestServer {
            mut inbox,
            served,
            trace,
        } = self;
        loop {
            let mut handle = |pe: Pe, bytes: &[u8]| {
                let reply = served.serve(bytes);
                if reply.is_none() {
                    report::warn(&format!(
                        "PE {pe} sent an active message of {} bytes that makes no sense here; \
                         ignored",
                        bytes.len()
                    ));
                }
                reply
            };
            let taken = match &trace {
                Some((trace, track)) => trace.serving(*track, || inbox.drain(&mut handle)),
                None => inbox.drain(&mut handle),
            };
            let slept = match taken {
                Ok(0) => inbox.wait(SLEEP),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            match slept {
                Ok(()) => {}
                Err(oxshmem_transport::Error::Closed { .. }) => return,
                Err(error) => {
                    report::warn(&format!(
                        "this PE executes no more active messages, because {error}"
                    ));
                    ended();
                    return;
                }
            }
        }
    }
}

impl Served {
    /// Executes one request. None if it makes no sense.
    fn serve(&self, bytes: &[u8]) -> Option<Reply> {
        self.execute(&AmRequest::of_bytes(bytes)?)
    }

    /// Executes an atomic, on whatever thread. Nothing for other requests, and those that make no sense.
    fn serve_at_once(&self, bytes: &[u8]) -> Option<Reply> {
        let request = AmRequest::of_bytes(bytes)?;
        let is_atomic = matches!(request.action, Action::Atomic { .. });
        is_atomic.then(|| self.execute(&request)).flatten()
    }

    fn execute(&self, request: &AmRequest) -> Option<Reply> {
        self.check(request.reply, Reply::BYTES, Reply::BYTES)?;
        let value = match request.action {
            Action::Atomic { atomic, offset } => self.atomic(atomic, offset)?,
            Action::FlushGpu => self.flush_gpu(),
        };
        let (extent, offset, _) = self.extents.locate(request.reply);
        let region = RegionId(extent);
        Some(Reply {
            to: Remote { region, offset },
            value,
            number: request.number,
        })
    }

    /// Nothing if these bytes leave the heap or are not aligned.
    fn check(&self, offset: u64, len: u64, align: u64) -> Option<()> {
        let end = offset.checked_add(len)?;
        (end <= self.own.len() as u64 && offset.is_multiple_of(align)).then_some(())
    }

    /// An atomic for another PE; gives the old value.
    fn atomic(&self, atomic: AtomicRequest, offset: u64) -> Option<u64> {
        let width = atomic.width.bytes();
        self.check(offset, width as u64, width as u64)?;
        // The sender's stores before the message come before the atomic.
        fence(Ordering::Acquire);
        // SAFETY: the word lies in the heap, which `own` keeps mapped, and is aligned; all access to it is
        // atomic or at machine level.
        let word = unsafe { Span::new(self.own.base().add(offset as usize), width) };
        let old = word.rmw_word(atomic, FenceSite::Fetch);
        // The atomic comes before the reply that announces it.
        fence(Ordering::SeqCst);
        Some(old)
    }

    /// A flush of this PE's GPU for another PE, whose data are placed.
    fn flush_gpu(&self) -> u64 {
        match self.gpu_flushes.flush() {
            Ok(()) => FLUSHED,
            Err(error) => {
                report::warn(&format!(
                    "another PE's quiet fails, because this PE's GPU cannot be flushed: {error}"
                ));
                NOT_FLUSHED
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oxshmem_transport::{AtomicOp, Width};

    use super::*;
    use crate::am::request::tests::{atomic, request};

    fn served(gpu_flushes: GpuFlushes) -> Served {
        let options = oxshmem_heap::SegmentOptions::default();
        let mut segment = oxshmem_heap::Segment::create(8192, &options).unwrap();
        segment.commit(8192).unwrap();
        Served {
            own: Arc::clone(segment.mapping()),
            extents: Extents::whole(8192),
            gpu_flushes,
        }
    }

    fn add(offset: u64) -> AmRequest {
        request(atomic(AtomicOp::Add, Width::W64, offset))
    }

    #[test]
    fn m35_what_leaves_the_heap_is_refused_and_what_is_inside_is_done() {
        let served = served(GpuFlushes::default());
        for offset in [8185, 8192, u64::MAX - 3, 4] {
            assert_eq!(served.serve(&add(offset).to_bytes()), None, "{offset}");
        }
        for action in [add(8).action, Action::FlushGpu] {
            let mut outside = request(action);
            for reply in [8184, 8192, 4104] {
                outside.reply = reply;
                assert_eq!(served.serve(&outside.to_bytes()), None, "{reply}");
            }
        }
        for expected in [0, 5, 10] {
            let answer = served.serve(&add(8).to_bytes()).unwrap();
            assert_eq!((answer.value, answer.number), (expected, 77));
            assert_eq!(answer.to.offset, 4096);
        }
    }
}
