//! The progress thread: it executes active messages of other PEs on this PE's CPU, while the program
//! computes. It exists only where a PE is reached by active messages, and sleeps while none arrive.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use oxshmem_heap::Mapping;
use oxshmem_transport::{AtomicRequest, Domain, Inbox, Pe, RegionId, Remote, Reply};

use crate::am::request::AmRequest;
use crate::error::{Error, Result};
use crate::memory::extents::Extents;
use crate::memory::mapped::{HostMemory, Span};
use crate::order::fence_site::FenceSite;
use crate::report;
use crate::trace::timeline::{Trace, Track};

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
    /// Serves the messages to `domain`, on the heap that is mapped at `own`; peers have cut theirs, of
    /// the same size, by `extents`. `ended` is called if it ends because it cannot go on.
    pub fn start(
        domain: &Arc<dyn Domain>,
        own: &Arc<Mapping>,
        extents: Extents,
        ended: Box<dyn FnOnce() + Send>,
        trace: Option<(Arc<Trace>, Track)>,
    ) -> Result<Self> {
        if let Some((trace, track)) = &trace {
            trace.name(*track, "progress thread");
        }
        let server = RequestServer {
            trace,
            inbox: domain.inbox()?,
            own: Arc::clone(own),
            extents,
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
    own: Arc<Mapping>,
    extents: Extents,
    trace: Option<(Arc<Trace>, Track)>,
}

impl RequestServer {
    fn run(mut self, ended: Box<dyn FnOnce() + Send>) {
        let (own, extents) = (Arc::clone(&self.own), self.extents);
        loop {
            let mut handle = |pe: Pe, bytes: &[u8]| {
                let reply = serve(&own, extents, bytes);
                if reply.is_none() {
                    report::warn(&format!(
                        "PE {pe} sent an active message of {} bytes that makes no sense here; \
                         ignored",
                        bytes.len()
                    ));
                }
                reply
            };
            let served = match &self.trace {
                Some((trace, track)) => trace.serving(*track, || self.inbox.drain(&mut handle)),
                None => self.inbox.drain(&mut handle),
            };
            let slept = match served {
                Ok(0) => self.inbox.wait(SLEEP),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            match slept {
                Ok(()) => {}
                Err(oxshmem_transport::Error::Closed { .. }) => return,
                Err(error) => {
                    report::warn(&format!(
                        "this PE executes no more remote atomics, because {error}"
                    ));
                    ended();
                    return;
                }
            }
        }
    }
}

/// Executes one request.
fn serve(own: &Mapping, extents: Extents, bytes: &[u8]) -> Option<Reply> {
    let request = AmRequest::of_bytes(bytes)?;
    let width = request.width.bytes() as u64;
    let inside = |offset: u64, len: u64, align: u64| {
        let end = offset.checked_add(len)?;
        (end <= own.len() as u64 && offset.is_multiple_of(align)).then_some(())
    };
    inside(request.offset, width, width)?;
    inside(request.reply, Reply::BYTES, Reply::BYTES)?;
    // The sender's stores before the message come before the atomic.
    fence(Ordering::Acquire);
    // SAFETY: the word lies in the heap, which `own` keeps mapped, and is aligned; all access to it is
    // atomic or at machine level.
    let word = unsafe { Span::new(own.base().add(request.offset as usize), width as usize) };
    let atomic = AtomicRequest {
        op: request.op,
        width: request.width,
        operand: request.operand,
        compare: request.compare,
    };
    let old = word.rmw_word(atomic, FenceSite::Fetch);
    // The atomic comes before the reply that announces it.
    fence(Ordering::SeqCst);
    let remote = |at: u64| {
        let (extent, offset, _) = extents.locate(at);
        let region = RegionId(extent);
        Remote { region, offset }
    };
    Some(Reply {
        to: remote(request.reply),
        value: old,
        number: request.number,
    })
}

#[cfg(test)]
mod tests {
    use oxshmem_transport::AtomicOp;

    use super::*;
    use crate::am::request::tests::request;

    #[test]
    fn m35_what_leaves_the_heap_is_refused_and_what_is_inside_is_done() {
        let whole = Extents::whole(8192);
        let options = oxshmem_heap::SegmentOptions::default();
        let mut segment = oxshmem_heap::Segment::create(8192, &options).unwrap();
        segment.commit(8192).unwrap();
        let own = segment.mapping();
        for offset in [8185, 8192, u64::MAX - 3, 4] {
            let refused = serve(own, whole, &request(AtomicOp::Add, offset).to_bytes());
            assert_eq!(refused, None, "{offset}");
        }
        let mut outside = request(AtomicOp::Add, 8);
        for reply in [8184, 8192, 4104] {
            outside.reply = reply;
            assert_eq!(serve(own, whole, &outside.to_bytes()), None, "{reply}");
        }
        for expected in [0, 5, 10] {
            let answer = serve(own, whole, &request(AtomicOp::Add, 8).to_bytes()).unwrap();
            assert_eq!((answer.value, answer.number), (expected, 77));
            assert_eq!(answer.to.offset, 4096);
        }
    }
}
