//! A NIC's read of GPU memory at its own host. What NICs have written there before is in memory when it
//! comes back, since on PCIe no read passes a write: so a GPU is made to see it whose driver has no flush.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oxshmem_transport::{Memory, Result};

use crate::domain::Opened;
use crate::gpu::refused;
use crate::ibv::{Completion, CompletionQueue, MemoryRegion, QueuePair, QueueSizes};
use crate::lane::batch::{Batch, Do, Near, Request};
use crate::port::path;
use crate::region::Arena;

/// How long a read within one host may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Looks for its end between two yields of the CPU.
const SPIN: u32 = 200;

/// A queue pair that is connected with itself, and what it reads.
#[derive(Debug)]
pub(super) struct ReadBack(Mutex<Loop>);

#[derive(Debug)]
struct Loop {
    // Before what it may write to and read.
    pair: QueuePair,
    queue: Arc<CompletionQueue>,
    batch: Batch,
    into: Arena,
    from: MemoryRegion,
    memory: Memory,
    /// Why it does no more.
    failed: Option<String>,
}

impl ReadBack {
    /// Reads the first byte of registered memory.
    pub(super) fn new(opened: &Opened, from: MemoryRegion, memory: Memory) -> Result<ReadBack> {
        let port = &opened.port;
        let queue = Arc::new(CompletionQueue::new(&port.context, 4, None)?);
        let sizes = QueueSizes {
            depth: 2,
            inline: 0,
            most_pairs: port.limits.queue_pairs,
        };
        let pair = QueuePair::new(&opened.domain, &queue, &queue, None, sizes)?;
        pair.prepare(port.number, port.partition)?;
        let here = port.place();
        let path = path(&here, &here, opened.route_needed()).map_err(refused)?;
        let sequence = (opened.nonce() >> 40) as u32;
        let (number, sequences) = (pair.number(), (sequence, sequence));
        let connect = opened
            .connection(&path, here.lid, number, sequences, (1, 1))
            .map_err(refused)?;
        pair.connect(&connect)?;
        Ok(ReadBack(Mutex::new(Loop {
            pair,
            queue,
            batch: Batch::new(),
            into: Arena::new(&opened.domain, 64)?,
            from,
            memory,
            failed: None,
        })))
    }

    /// Reads it, and waits until it has come.
    pub(super) fn read(&self) -> Result<(), String> {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &ends.failed {
            return Err(why.clone());
        }
        let read = ends.read();
        ends.failed = read.as_ref().err().cloned();
        read
    }
}

impl Loop {
    fn read(&mut self) -> Result<(), String> {
        let from = self.memory.base().as_ptr().addr() as u64;
        let request = Request {
            what: Do::Read(from, self.from.rkey()),
            near: Near::Piece(self.into.at(0), 1, self.into.lkey()),
            fenced: false,
        };
        self.batch.push(0, request);
        self.batch.signal_last();
        // SAFETY: the near side is this loop's own, registered and there until after its queue pair.
        unsafe { self.batch.post(&self.pair) }.map_err(|code| {
            let source = std::io::Error::from_raw_os_error(code);
            format!("ibv_post_send of a read of GPU memory: {source}")
        })?;
        let until = Instant::now() + PATIENCE;
        let mut taken = [Completion::none()];
        for round in 1u32.. {
            match self.queue.poll(&mut taken) {
                Ok(0) => {}
                Ok(_) if taken[0].succeeded() => return Ok(()),
                Ok(_) => {
                    let (status, code) = (taken[0].status(), taken[0].vendor_code());
                    return Err(format!(
                        "the NIC's read of GPU memory failed (ibv_wc_status {status}, vendor's code \
                         {code:#x})"
                    ));
                }
                Err(error) => return Err(error.to_string()),
            }
            if round.is_multiple_of(SPIN) {
                if Instant::now() > until {
                    break;
                }
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        Err(format!(
            "the NIC's read of GPU memory has not come back within {} s",
            PATIENCE.as_secs()
        ))
    }
}

#[cfg(test)]
mod tests {
    use oxshmem_transport::{HostId, Job, Pe, Transport};

    use super::*;
    use crate::Verbs;
    use crate::ibv::Access;
    use crate::port::Port;
    use crate::settings::Settings;
    use crate::statistics::Totals;

    /// Of host memory: the queue pair, its path and its waiting are the same.
    #[test]
    #[ignore = "needs an RDMA device; run in ci/softroce"]
    fn a_pe_reads_its_own_memory_again_and_again_and_a_failure_is_told_each_time() {
        let verbs = Verbs::with(Settings::default());
        let devices = verbs.probe().unwrap_or_else(|error| panic!("{error}"));
        let port = Port::open(&devices[0].name, &Settings::default()).unwrap();
        let job = Job {
            me: Pe(0),
            size: 1,
            host: HostId("here".into()),
        };
        let opened = Opened::new(port, Settings::default(), job, Arc::<Totals>::default()).unwrap();
        let memory = oxshmem_transport::conformance::host_memory(4096).unwrap();
        let (base, len) = (memory.base().as_ptr(), memory.len());
        // SAFETY: the memory is kept with its registration.
        let region = unsafe { MemoryRegion::register(&opened.domain, base, len, Access::Remote) };
        let back = ReadBack::new(&opened, region.unwrap(), memory).unwrap();
        for _ in 0..100 {
            back.read().unwrap();
        }
        back.0.lock().unwrap().pair.fail().unwrap();
        let first = back.read().unwrap_err();
        assert!(first.contains("failed"), "{first}");
        assert_eq!(back.read(), Err(first));
    }
}
