//! A read of GPU memory by the NIC of its own host. Writes of NICs before it are in memory once it has completed,
//! since on PCIe no read passes a write: the flush for a GPU whose driver has none.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oxshmem_transport::{Memory, Pe, Result};

use crate::arena::Arena;
use crate::ibv::{Completion, CompletionQueue, MemoryRegion, QueuePair};
use crate::lane::batch::{Batch, LocalBuffer, Operation, SendRequest};
use crate::lane::request_id::RequestId;
use crate::port_state::PortState;

/// How long a read within one host may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Polls between two yields of the CPU.
const SPIN: u32 = 200;

/// A queue pair connected with itself, and the memory that it reads.
#[derive(Debug)]
pub(super) struct ReadBack(Mutex<Loopback>);

#[derive(Debug)]
struct Loopback {
    // Before the memory that it may write to and read.
    pair: QueuePair,
    queue: Arc<CompletionQueue>,
    batch: Batch,
    into: Arena,
    from: MemoryRegion,
    memory: Memory,
    /// The reason why it failed.
    failed: Option<String>,
}

impl ReadBack {
    /// A reader of the first byte of registered memory.
    pub(super) fn new(
        port_state: &PortState,
        from: MemoryRegion,
        memory: Memory,
    ) -> Result<ReadBack> {
        let queue = Arc::new(CompletionQueue::new(&port_state.port.context, 4, None)?);
        Ok(ReadBack(Mutex::new(Loopback {
            pair: port_state.pair_with_itself(&queue)?,
            queue,
            batch: Batch::new(),
            into: Arena::new(&port_state.protection_domain, 64)?,
            from,
            memory,
            failed: None,
        })))
    }

    /// Reads the byte, and waits for the completion.
    pub(super) fn read(&self) -> Result<(), String> {
        let mut loopback = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &loopback.failed {
            return Err(why.clone());
        }
        let read = loopback.read();
        loopback.failed = read.as_ref().err().cloned();
        read
    }
}

impl Loopback {
    fn read(&mut self) -> Result<(), String> {
        let from = self.memory.base().as_ptr().addr() as u64;
        let request = SendRequest {
            operation: Operation::Read(from, self.from.rkey()),
            local: LocalBuffer::Registered(self.into.at(0), 1, self.into.lkey()),
            is_fenced: false,
        };
        self.batch.push(RequestId::primary(Pe(0), 0), request);
        self.batch.signal_last();
        // SAFETY: the local buffer is the loopback's own, registered, and outlives its queue pair.
        unsafe { self.batch.post(&self.pair) }.map_err(|refusal| {
            let source = std::io::Error::from_raw_os_error(refusal.code);
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
            host_rank: 0,
            host: HostId("here".into()),
        };
        let port_state =
            PortState::new(port, Settings::default(), job, Arc::<Totals>::default()).unwrap();
        let memory = oxshmem_transport::conformance::host_memory(4096).unwrap();
        let (base, len) = (memory.base().as_ptr(), memory.len());
        // SAFETY: the memory is kept with its registration.
        let region = unsafe {
            MemoryRegion::register(&port_state.protection_domain, base, len, Access::Remote)
        };
        let back = ReadBack::new(&port_state, region.unwrap(), memory).unwrap();
        for _ in 0..100 {
            back.read().unwrap();
        }
        back.0.lock().unwrap().pair.fail().unwrap();
        let first = back.read().unwrap_err();
        assert!(first.contains("failed"), "{first}");
        assert_eq!(back.read(), Err(first));
    }
}
