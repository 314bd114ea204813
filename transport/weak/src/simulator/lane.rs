//! The lane of a simulated transport.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicRequest, Counters, Error, Job, Lane, Local, Op, Pe, Posted,
    Remote, Result, SignalOp, SignalSupport,
};

use super::domain::{Peers, PeersState};
use super::{DEPTH, Simulator};
use crate::machine::{Machine, Storage};

/// At most that many operations in one call of progress.
const AT_ONCE: usize = 8;

/// A NIC's queue: in order, each operation once what was before its doorbell has happened.
pub(super) struct SimulatedLane {
    simulator: Simulator,
    job: Job,
    peers: Arc<Peers>,
    counters: Vec<Counters>,
    /// How many completions towards each PE this PE's CPU has seen.
    seen: Vec<Cell<u64>>,
    queue: VecDeque<Queued>,
}

struct Queued {
    pe: Pe,
    doorbell: u64,
    op: Op,
    remote: RemoteStorage,
}

/// The checked remote address: none for a flush, which has none; the signal's too where there is one.
struct RemoteStorage(Option<Arc<Storage>>, Option<Arc<Storage>>);

// SAFETY: the raw pointers in the queue's `Op`s are the poster's, who promised their validity until
// the lane is done with them, wherever the lane is moved to.
unsafe impl Send for SimulatedLane {}

impl fmt::Debug for SimulatedLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedLane")
            .field("simulator", &self.simulator.name)
            .field("me", &self.job.me)
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}

impl SimulatedLane {
    pub(super) fn new(simulator: Simulator, job: Job, peers: Arc<Peers>) -> Self {
        let size = job.size as usize;
        SimulatedLane {
            simulator,
            job,
            peers,
            counters: vec![Counters::default(); size],
            seen: vec![Cell::new(0); size],
            queue: VecDeque::new(),
        }
    }

    /// Whether anything can go to this PE.
    fn check_way(&self, peers: &PeersState, pe: Pe) -> Result<()> {
        let transport = self.simulator.name;
        if peers.closed {
            return Err(Error::Closed { transport });
        }
        if pe.0 >= self.job.size {
            let why = format!("the job has {} PEs", self.job.size);
            return Err(Error::Unreachable { transport, pe, why });
        }
        if peers.lost.contains(&pe) {
            Err(Error::PeerLost { transport, pe })
        } else {
            Ok(())
        }
    }

    /// Takes a prefix of a batch.
    fn queue(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let peers = Arc::clone(&self.peers);
        let peers = peers.lock();
        if let Err(error) = self.check_way(&peers, pe) {
            return Posted::refused(0, error);
        }
        let doorbell = self.simulator.machine.doorbell(self.job.me);
        for (accepted, op) in ops.iter().enumerate() {
            let remote = match self.checked(&peers, pe, op) {
                Ok(remote) => remote,
                Err(error) => return Posted::refused(accepted, error),
            };
            let Some(counters) = self.counters.get_mut(pe.index()) else {
                return Posted::full(accepted);
            };
            if counters.posted - counters.completed >= u64::from(DEPTH) {
                return Posted::full(accepted);
            }
            counters.posted += 1;
            let op = *op;
            self.queue.push_back(Queued {
                pe,
                doorbell,
                op,
                remote,
            });
        }
        Posted::all(ops.len())
    }

    /// All that can be wrong with an operation.
    fn checked(&self, peers: &PeersState, pe: Pe, op: &Op) -> Result<RemoteStorage> {
        let capabilities = &self.simulator.capabilities;
        let transfer = |what: &str, len: usize, max: u64| match len as u64 {
            len if len > max => Err(self.unsupported(format!("a {what} of {len} bytes"))),
            len => Ok(len),
        };
        let find = |at, what, size| self.place(peers, pe, at, what, size);
        match *op {
            Op::Put { from, to } => {
                let len = transfer("put", from.len, capabilities.put.max)?;
                Ok(RemoteStorage(Some(find(to, "a put", (len, 1))?), None))
            }
            Op::Get { into, from } => {
                let len = transfer("get", into.len, capabilities.get.max)?;
                Ok(RemoteStorage(Some(find(from, "a get", (len, 1))?), None))
            }
            Op::PutSignal {
                from, to, signal, ..
            } => {
                if capabilities.put_signal == SignalSupport::None {
                    return Err(self.unsupported("put-with-signal".into()));
                }
                let len = transfer("put-with-signal", from.len, capabilities.put.max)?;
                let data = find(to, "a put", (len, 1))?;
                Ok(RemoteStorage(
                    Some(data),
                    Some(find(signal, "a signal", (8, 8))?),
                ))
            }
            Op::Atomic {
                op,
                width,
                on,
                fetch,
                ..
            } => {
                if capabilities.atomics.level(op, width) == AtomicLevel::None {
                    return Err(self.unsupported(format!("atomic {op} of {width} bits")));
                }
                if let Some(into) = fetch {
                    into.check_fetch(self.simulator.name, width)?;
                }
                let bytes = width.bytes() as u64;
                Ok(RemoteStorage(
                    Some(find(on, "an atomic", (bytes, bytes))?),
                    None,
                ))
            }
            Op::Flush => Ok(RemoteStorage(None, None)),
            ref other => Err(self.unsupported(format!("{other:?}"))),
        }
    }

    fn unsupported(&self, what: String) -> Error {
        let transport = self.simulator.name;
        Error::Unsupported { transport, what }
    }

    fn place(
        &self,
        peers: &PeersState,
        pe: Pe,
        at: Remote,
        what: &'static str,
        size: (u64, u64),
    ) -> Result<Arc<Storage>> {
        let transport = self.simulator.name;
        let Some(storage) = peers.imported.get(&(pe, at.region)) else {
            let region = at.region.0;
            return Err(Error::UnknownRegion {
                transport,
                region,
                pe,
            });
        };
        at.check(transport, what, size, storage.len() as u64)?;
        Ok(Arc::clone(storage))
    }
}

/// One PE's NIC.
struct Nic<'m> {
    machine: &'m Machine,
    me: Pe,
}

impl Nic<'_> {
    /// # Safety
    ///
    /// The operation's local buffer is valid, and `remote` is what `checked` made of it.
    unsafe fn perform(&self, op: &Op, remote: &RemoteStorage) {
        let (machine, me) = (self.machine, self.me);
        let RemoteStorage(Some(storage), signal_storage) = remote else {
            return;
        };
        match *op {
            Op::Put { from, to } => {
                // SAFETY: the caller's promise.
                let bytes = unsafe { self.read_local(from) };
                machine.nic_write(me, storage, to.offset, &bytes);
            }
            Op::Get { into, from } => {
                let mut bytes = vec![0; into.len];
                machine.nic_read(me, storage, from.offset, &mut bytes);
                // SAFETY: the caller's promise.
                unsafe { self.write_local(into, &bytes) };
            }
            Op::PutSignal {
                from,
                to,
                signal,
                op,
                value,
            } => {
                // SAFETY: the caller's promise.
                let bytes = unsafe { self.read_local(from) };
                machine.nic_write(me, storage, to.offset, &bytes);
                let op = match op {
                    SignalOp::Set => AtomicOp::Set,
                    SignalOp::Add => AtomicOp::Add,
                };
                let word = signal_storage.as_ref().unwrap_or(storage);
                machine.nic_update(me, word, signal.offset, AtomicRequest::wide(op, value, 0));
            }
            Op::Atomic {
                op,
                width,
                on,
                operand,
                compare,
                fetch,
            } => {
                let request = AtomicRequest {
                    op,
                    width,
                    operand,
                    compare,
                };
                let old = machine.nic_update(me, storage, on.offset, request);
                if let Some(into) = fetch {
                    let bytes = old.to_le_bytes();
                    let (word, _) = bytes.split_at(width.bytes());
                    // SAFETY: the caller's promise.
                    unsafe { self.write_local(into, word) };
                }
            }
            _ => {}
        }
    }

    /// # Safety
    ///
    /// `local` is readable for its length.
    unsafe fn read_local(&self, local: Local) -> Vec<u8> {
        let mut bytes = vec![0; local.len];
        let registered = self
            .machine
            .registered(self.me, local.addr.addr(), local.len);
        match registered {
            Some((storage, at)) => self.machine.nic_read(self.me, &storage, at, &mut bytes),
            // SAFETY: readable by the caller's promise, and not these new bytes.
            None => unsafe {
                local
                    .addr
                    .copy_to_nonoverlapping(bytes.as_mut_ptr(), local.len)
            },
        }
        bytes
    }

    /// # Safety
    ///
    /// `local` is writable for as many bytes.
    unsafe fn write_local(&self, local: Local, bytes: &[u8]) {
        let (addr, len) = (local.addr, bytes.len());
        match self.machine.registered(self.me, addr.addr(), len) {
            Some((storage, at)) => self.machine.nic_write(self.me, &storage, at, bytes),
            // SAFETY: writable by the caller's promise, and not these bytes of ours.
            None => unsafe { addr.copy_from_nonoverlapping(bytes.as_ptr(), len) },
        }
    }
}

impl Lane for SimulatedLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        self.check_way(&self.peers.lock(), pe)?;
        Ok(Vec::new())
    }

    fn connect(&mut self, pe: Pe, _: &[u8]) -> Result<()> {
        self.check_way(&self.peers.lock(), pe)
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let posted = self.queue(pe, ops);
        // A NIC needs no further call to begin. What fails is told by the next one.
        let _begun = self.progress();
        posted
    }

    fn progress(&mut self) -> Result<()> {
        let (machine, me) = (&self.simulator.machine, self.job.me);
        let nic = Nic { machine, me };
        for _ in 0..AT_ONCE {
            let peers = self.peers.lock();
            if peers.closed {
                let transport = self.simulator.name;
                return Err(Error::Closed { transport });
            }
            self.queue.retain(|queued| !peers.lost.contains(&queued.pe));
            drop(peers);
            let ready = |queued: &Queued| machine.ready(me, queued.doorbell);
            if !self.queue.front().is_some_and(ready) {
                break;
            }
            let Some(queued) = self.queue.pop_front() else {
                break;
            };
            // SAFETY: the poster promised the local buffer's validity until completion, which is not
            // counted before the next line; `remote` was checked when the operation was taken.
            unsafe { nic.perform(&queued.op, &queued.remote) };
            if let Some(counters) = self.counters.get_mut(queued.pe.index()) {
                counters.completed += 1;
            }
        }
        Ok(())
    }

    fn counters(&self, pe: Pe) -> Counters {
        let (Some(counters), Some(seen)) =
            (self.counters.get(pe.index()), self.seen.get(pe.index()))
        else {
            return Counters::default();
        };
        if seen.replace(counters.completed) != counters.completed {
            self.simulator.machine.completion_seen(self.job.me);
        }
        *counters
    }
}
