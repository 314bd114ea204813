//! Handlers of what other PEs and the bootstrap report: control messages, lost PEs and exits; and the progress threads that
//! serve active messages.
//!
//! Once they are installed, a PE's exit reaches the liveness table that waits read, and requests have replies while the
//! program computes. The bootstrap owns the handlers, so they refer to it weakly.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_engine::am::progress_thread::{self, ProgressThread};
use oxshmem_engine::control::message::{ControlRequest, Message};
use oxshmem_engine::control::pending::ControlRequests;
use oxshmem_engine::gpu::flush::{GpuFlushes, rail_of_requests};
use oxshmem_engine::gpu::staging_server::StagingServer;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::peer::liveness::Liveness;
use oxshmem_engine::peer::loss_reasons::{self, LossReason};
use oxshmem_engine::progress::long_waits::LongWaits;
use oxshmem_engine::route::path::{Path, PeerPaths};
use oxshmem_engine::trace::timeline::{Trace, Track};
use oxshmem_heap::Mapping;
use oxshmem_transport::{Domain, Pe};

use crate::error::Result;
use crate::lock::broken::{Broken, BrokenLocks};
use crate::setup::accept_workers::AcceptWorkers;
use oxshmem_engine::engine::PeerFailureSink;
use oxshmem_engine::report;

/// State that the handlers share with a world's calls.
pub(crate) struct Handlers {
    pub requests: ControlRequests,
    pub broken_locks: BrokenLocks,
    pub report_lost: PeerFailureSink,
    pub long_waits: LongWaits,
}

/// The parts of a PE that its handlers use.
pub(super) struct Handled<'a> {
    pub liveness: &'a Arc<Liveness>,
    pub rails: &'a [Arc<Rail>],
    pub gpu_flushes: &'a GpuFlushes,
    pub stage: &'a Arc<StagingServer>,
    /// Ends the waits of this PE's GPU streams.
    pub end_streams: Box<dyn Fn() + Send + Sync>,
}

impl Handlers {
    /// Installs the handlers: from here on requests have replies, and failures are recorded.
    pub(super) fn install(bootstrap: &Arc<dyn Bootstrap>, handled: Handled<'_>) -> Result<Self> {
        let (requests, broken_locks) = (ControlRequests::default(), BrokenLocks::of(bootstrap));
        let rails = handled.rails.iter();
        let failures = Arc::new(FailureHandler {
            domains: rails.clone().map(|rail| Arc::clone(&rail.domain)).collect(),
            stage: Arc::clone(handled.stage),
            liveness: Arc::clone(handled.liveness),
            broken_locks: broken_locks.clone(),
            end_streams: handled.end_streams,
        });
        let control = ControlHandler {
            failures: Arc::clone(&failures),
            rails: rails
                .map(|rail| (rail.name, Arc::clone(&rail.domain)))
                .collect(),
            gpu_flushes: handled.gpu_flushes.clone(),
            stage: Arc::clone(handled.stage),
            requests: requests.clone(),
            broken_locks: broken_locks.clone(),
            accepting: AcceptWorkers::new(),
            bootstrap: Arc::downgrade(bootstrap),
        };
        bootstrap.on_message(Box::new(move |from, bytes| control.handle(from, bytes)))?;
        let on_exit = Arc::clone(&failures);
        bootstrap.on_exit(Box::new(move |exit| {
            on_exit.liveness.note_exit(exit.rank as usize, exit.orderly);
            on_exit.lose(exit.rank, exit.orderly);
        }))?;
        let long_waits = LongWaits::default();
        let reported = long_waits.clone();
        bootstrap.on_ask(Box::new(move || reported.all()))?;
        Ok(Handlers {
            requests,
            broken_locks,
            report_lost: report_lost(bootstrap, failures),
            long_waits,
        })
    }
}

/// The sink for failures that this PE's lanes find. It also notifies the PE, which must not wait for this one even if
/// both live.
fn report_lost(bootstrap: &Arc<dyn Bootstrap>, failures: Arc<FailureHandler>) -> PeerFailureSink {
    let bootstrap = Arc::downgrade(bootstrap);
    Arc::new(move |pe| {
        failures.lose(pe, false);
        let why = format!("its connection with PE {pe} has ended");
        let message = Message::disconnect(&why).to_bytes();
        let _ = bootstrap.upgrade().map(|b| b.send(pe, &message));
    })
}

/// Marks PEs as lost everywhere.
struct FailureHandler {
    domains: Vec<Arc<dyn Domain>>,
    stage: Arc<StagingServer>,
    liveness: Arc<Liveness>,
    broken_locks: BrokenLocks,
    end_streams: Box<dyn Fn() + Send + Sync>,
}

impl FailureHandler {
    fn lose(&self, pe: u32, orderly: bool) {
        // The domains first: a thread that sees the loss may rely on its operations being cancelled.
        for domain in &self.domains {
            domain.peer_lost(Pe(pe));
        }
        self.stage.lost(pe);
        self.liveness.mark_lost(pe as usize);
        self.broken_locks.tell_again();
        // When a PE leaves in order, all PEs have reached finalize, and their streams run to completion. After any
        // other exit the loss is published first: a thread whose wait on a stream ends checks for it.
        if !orderly {
            fence(Ordering::SeqCst);
            (self.end_streams)();
        }
    }
}

/// Serves other PEs' control messages.
struct ControlHandler {
    failures: Arc<FailureHandler>,
    /// The rails by name.
    rails: Vec<(&'static str, Arc<dyn Domain>)>,
    gpu_flushes: GpuFlushes,
    stage: Arc<StagingServer>,
    requests: ControlRequests,
    broken_locks: BrokenLocks,
    accepting: AcceptWorkers,
    bootstrap: Weak<dyn Bootstrap>,
}

impl ControlHandler {
    fn handle(&self, from: u32, bytes: &[u8]) {
        match Message::of_bytes(bytes) {
            Some(Message::Disconnect(why)) => {
                // First the reason: a thread that sees the loss may tell it at once.
                loss_reasons::record(from, LossReason::GaveUp(why));
                self.failures.lose(from, false);
            }
            Some(Message::Request(number, request)) => self.serve(from, number, request),
            Some(Message::Reply(number, reply)) => {
                self.requests.answered(from as usize, number, reply);
            }
            Some(Message::Notice(offset, bytes)) => match Broken::of_bytes(&bytes) {
                Some(broken) => self.broken_locks.note(offset, broken),
                None => not_understood(from, bytes.len()),
            },
            Some(Message::Forgot) => loss_reasons::record(from, LossReason::NoFinalize),
            None => not_understood(from, bytes.len()),
        }
    }

    fn serve(&self, from: u32, number: u64, request: ControlRequest) {
        let bootstrap = Weak::clone(&self.bootstrap);
        match request {
            ControlRequest::FlushGpu => reply(&bootstrap, from, number, self.gpu_flushes.asked()),
            ControlRequest::Connect {
                transport,
                endpoint,
            } => match self.rails.iter().find(|(name, _)| *name == transport) {
                Some((_, domain)) => {
                    let domain = Arc::clone(domain);
                    self.accepting.submit(Box::new(move || {
                        let accepted = domain.accept(Pe(from), &endpoint);
                        let accepted = accepted.map_err(|error| error.to_string());
                        reply(&bootstrap, from, number, accepted);
                    }));
                }
                None => {
                    let unknown = format!("it has no transport {transport}");
                    reply(&bootstrap, from, number, Err(unknown));
                }
            },
            // The staging server sends the reply itself, maybe later.
            ControlRequest::Stage(request) => self.stage.asked(from, number, request),
        }
    }
}

/// Sends the reply to a request. A PE that is gone needs none.
fn reply(
    bootstrap: &Weak<dyn Bootstrap>,
    to: u32,
    number: u64,
    reply: std::result::Result<Vec<u8>, String>,
) {
    let reply = Message::Reply(number, reply).to_bytes();
    let _ = bootstrap.upgrade().map(|b| b.send(to, &reply));
}

/// The warning of a message that no PE of this version sends.
fn not_understood(from: u32, len: usize) {
    report::warn(&format!(
        "PE {from} sent {len} bytes that this version of oxshmem does not understand"
    ));
}

/// The PEs to which this PE sends active messages, and which send it some, too: atomics on host memory, and in the
/// ordered model requests for flushes of GPUs.
pub(super) fn message_senders(
    paths: &[PeerPaths],
    rails: &[Arc<Rail>],
    me: usize,
    is_ordered: bool,
) -> Vec<u32> {
    let by_message = |paths: &PeerPaths| {
        let atomics = matches!(paths.host_atomics, Path::Message(_));
        atomics || (is_ordered && rail_of_requests(paths, rails).is_some())
    };
    let others = (0..).zip(paths).filter(|(pe, _)| *pe != me as u32);
    let senders = others.filter(|(_, paths)| by_message(paths));
    senders.map(|(pe, _)| pe).collect()
}

/// The parts of a PE that its progress threads serve.
pub(super) struct Served<'a> {
    pub rails: &'a [Arc<Rail>],
    /// The PE's own heap.
    pub own: &'a Arc<Mapping>,
    pub gpu_flushes: &'a GpuFlushes,
    /// The PEs to which this PE sends active messages.
    pub senders: Vec<u32>,
}

/// Starts a progress thread for each rail that takes active messages to this PE.
pub(super) fn start_services(
    served: &Served<'_>,
    report_lost: &PeerFailureSink,
    trace: Option<&Arc<Trace>>,
) -> Result<Vec<ProgressThread>> {
    let takes = served.rails.iter().enumerate();
    let takes = takes.filter(|(_, rail)| rail.caps.message > 0 && !rail.is_retired());
    takes
        .map(|(index, rail)| {
            let (report_lost, senders) = (Arc::clone(report_lost), served.senders.clone());
            // A PE that waits for a reply must not wait for ever.
            let ended = move || senders.iter().for_each(|pe| report_lost(*pe));
            let trace = trace.map(|trace| (Arc::clone(trace), Track::of_service(index)));
            let served = progress_thread::Served {
                own: Arc::clone(served.own),
                extents: rail.host.extents,
                gpu_flushes: served.gpu_flushes.clone(),
            };
            Ok(ProgressThread::start(
                &rail.domain,
                served,
                Box::new(ended),
                trace,
            )?)
        })
        .collect()
}
