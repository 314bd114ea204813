//! The transport with one fault put in front of its lanes.

use std::sync::Arc;
use std::time::Duration;

use oxshmem_nvlink::Nvlink;
use oxshmem_transport::{
    Counters, Device, Domain, Error, Job, Lane, Local, Op, Pe, Posted, Result, Status, Transport,
    forward,
};

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Puts are a byte shorter.
    DropsLastByte,
    /// A signal is sent before its data.
    SignalsFirst,
    /// Every eighth atomic is left out.
    SkipsAtomics,
    /// An operation that leaves the region is accepted, and does nothing.
    TakesAnyRange,
}

#[derive(Debug)]
pub struct Broken {
    right: Nvlink,
    fault: Fault,
}

impl Broken {
    pub fn new(fault: Fault) -> Broken {
        let right = Nvlink::new();
        Broken { right, fault }
    }
}

// SAFETY: what it breaks stays within the memory it was given; the rest is the inner one's.
unsafe impl Transport for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.right.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Ok(Arc::new(BrokenDomain {
            right: self.right.open(device, job)?,
            fault: self.fault,
        }))
    }
}

#[derive(Debug)]
struct BrokenDomain {
    right: Arc<dyn Domain>,
    fault: Fault,
}

impl Domain for BrokenDomain {
    forward!(
        address, capabilities, guarantees, import, peer_lost, reach, register, register_local,
        shutdown => right
    );

    fn lane(&self) -> Result<Box<dyn Lane>> {
        Ok(Box::new(BrokenLane {
            right: self.right.lane()?,
            fault: self.fault,
            atomics: 0,
            uncounted: 0,
        }))
    }
}

#[derive(Debug)]
struct BrokenLane {
    right: Box<dyn Lane>,
    fault: Fault,
    atomics: u64,
    /// Operations that the suite did not post, all towards PE 1.
    uncounted: u64,
}

impl BrokenLane {
    /// The operations done instead of one.
    fn instead(&mut self, pe: Pe, op: Op) -> Op {
        match (self.fault, op) {
            (Fault::DropsLastByte, Op::Put { mut from, to }) => {
                from.len = from.len.saturating_sub(1);
                Op::Put { from, to }
            }
            (Fault::SkipsAtomics, Op::Atomic { .. }) => {
                self.atomics += 1;
                match self.atomics % 8 {
                    0 => Op::Flush,
                    _ => op,
                }
            }
            (
                Fault::SignalsFirst,
                Op::PutSignal {
                    from,
                    to,
                    signal,
                    op,
                    value,
                },
            ) => {
                let alone = Op::PutSignal {
                    from: Local { len: 0, ..from },
                    to,
                    signal,
                    op,
                    value,
                };
                // SAFETY: it has no local buffer.
                let posted = unsafe { self.right.post(pe, &[alone]) };
                self.uncounted += posted.accepted as u64;
                // Long enough for who watches the signal.
                std::thread::sleep(Duration::from_millis(2));
                Op::Put { from, to }
            }
            (_, op) => op,
        }
    }
}

impl Lane for BrokenLane {
    forward!(connect, endpoint, fence, progress => right);

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        for (accepted, &op) in ops.iter().enumerate() {
            let op = self.instead(pe, op);
            // SAFETY: the caller's promise; what is done instead touches no more.
            let status = unsafe { self.right.post(pe, &[op]) }.status;
            let status = match status {
                Status::Refused(Error::OutOfRange { .. }) if self.fault == Fault::TakesAnyRange => {
                    // SAFETY: it has no local buffer.
                    unsafe { self.right.post(pe, &[Op::Flush]) }.status
                }
                other => other,
            };
            if !matches!(status, Status::All) {
                return Posted { accepted, status };
            }
        }
        Posted::all(ops.len())
    }

    fn counters(&self, pe: Pe) -> Counters {
        let Counters { posted, completed } = self.right.counters(pe);
        Counters {
            posted: posted.saturating_sub(self.uncounted),
            completed: completed.saturating_sub(self.uncounted),
        }
    }
}
