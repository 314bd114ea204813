//! A transport that pins, as a NIC's does: nvlink's behind keys of its own, which name what is registered
//! while that lives and nothing else.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use oxshmem::cuda::pointer::{Memory as Of, attributes};
use oxshmem::cuda::{Context, DevicePtr};
use oxshmem_nvlink::Nvlink;
use oxshmem_transport::{
    Capabilities, Device, Domain, Error, GpuFlush, Guarantees, Job, Lane, Local, LocalKey,
    LocalRegion, MemoryKind, Op, Pe, Posted, Result, Transport, forward,
};

pub const NAME: &str = "nic";
/// Keys of registrations begin here; below are nvlink's, of heaps.
const FIRST: u64 = 1 << 32;

/// The outcome of registering local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registers {
    #[default]
    All,
    /// As a NIC that has no way to such memory.
    Nothing,
    /// As a domain that has ended.
    NoMore,
}

/// The state of all domains of one `Nic`, and the faults that they are to show.
#[derive(Debug, Default)]
pub struct Seen {
    pub registers: Registers,
    /// Every registration by its key, with the inner key, while it lives.
    pub live: BTreeMap<u64, (LocalKey, Range<usize>)>,
    /// The keys of registrations that operations named, in order.
    pub named: Vec<u64>,
    /// Operands that no lane may be given: GPU memory without a key, or with one that has ended.
    pub strays: Vec<String>,
    /// Gets into registered memory that no flush has followed.
    pub unflushed: usize,
    /// The next operation by a registration waits.
    pub hold: bool,
    pub held: bool,
    /// Lanes fail when they are driven.
    pub fails: bool,
    /// Lanes that have ended after that.
    pub ended: usize,
    next: u64,
}

#[derive(Clone, Debug)]
pub struct Nic {
    inner: Arc<Nvlink>,
    context: Context,
    state: Arc<(Mutex<Seen>, Condvar)>,
}

impl Nic {
    pub fn on(context: &Context) -> Nic {
        Nic {
            inner: Arc::new(Nvlink::on(context.clone())),
            context: context.clone(),
            state: Arc::default(),
        }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.state.0.lock().unwrap()
    }

    pub fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.state.1.notify_all();
    }

    /// Waits till this holds.
    pub fn until(&self, holds: impl Fn(&Seen) -> bool) {
        let limit = Duration::from_secs(30);
        let waited = self
            .state
            .1
            .wait_timeout_while(self.seen(), limit, |seen| !holds(seen));
        let (seen, timed_out) = waited.unwrap();
        assert!(!timed_out.timed_out(), "{seen:?}");
    }

    /// The near side as nvlink's lane is to have it.
    fn near(&self, near: Local) -> Result<Local> {
        let refused = |what: String| {
            let error = Error::Unsupported {
                transport: NAME,
                what: what.clone(),
            };
            self.change(|seen| seen.strays.push(what));
            Err(error)
        };
        let Some(key) = near.key else {
            let found = attributes(&self.context, DevicePtr::from_host(near.addr)).unwrap();
            return match found.memory {
                Of::Device if near.len > 0 => refused("GPU memory without a key".into()),
                _ => Ok(near),
            };
        };
        if key.0 < FIRST {
            return Ok(near);
        }
        let start = near.addr.addr();
        let found = self.seen().live.get(&key.0).cloned();
        match found {
            Some((inner, range)) if range.start <= start && start + near.len <= range.end => {
                let mut held = false;
                self.change(|seen| {
                    seen.named.push(key.0);
                    held = std::mem::take(&mut seen.hold);
                    seen.held |= held;
                });
                if held {
                    self.until(|seen| !seen.held);
                }
                let key = Some(inner);
                Ok(Local { key, ..near })
            }
            found => refused(format!("{near:?} by the key of {found:?}")),
        }
    }

    fn op(&self, op: Op) -> Result<Op> {
        Ok(match op {
            Op::Put { from, to } => Op::Put {
                from: self.near(from)?,
                to,
            },
            Op::Get { into, from } => {
                let named = into.key.is_some_and(|key| key.0 >= FIRST);
                let into = self.near(into)?;
                self.change(|seen| seen.unflushed += usize::from(named));
                Op::Get { into, from }
            }
            other => other,
        })
    }
}

// SAFETY: it hands on what it was given, as it was given, or nothing.
unsafe impl Transport for Nic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.inner.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let inner = self.inner.open(device, job)?;
        let capabilities = Capabilities {
            pins: true,
            ..inner.capabilities().clone()
        };
        Ok(Arc::new(NicDomain {
            nic: self.clone(),
            inner,
            capabilities,
        }))
    }
}

#[derive(Debug)]
struct NicDomain {
    nic: Nic,
    inner: Arc<dyn Domain>,
    capabilities: Capabilities,
}

impl Domain for NicDomain {
    forward!(address, import, peer_lost, reach, register, shutdown => inner);

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        let gpu_flush = GpuFlush::Target;
        let inner = self.inner.guarantees(kind)?;
        Some(Guarantees { gpu_flush, ..inner })
    }

    unsafe fn register_local(
        &self,
        addr: *mut u8,
        len: usize,
        written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        match self.nic.seen().registers {
            Registers::All => {}
            Registers::Nothing => {
                return Err(Error::Memory {
                    transport: NAME,
                    kind: MemoryKind::Cuda,
                    why: "refused on demand".into(),
                });
            }
            Registers::NoMore => return Err(Error::Closed { transport: NAME }),
        }
        // SAFETY: the caller's promise.
        let inner = unsafe { self.inner.register_local(addr, len, written) }?;
        let mut key = FIRST;
        self.nic.change(|seen| {
            key += seen.next;
            seen.next += 1;
            let range = addr.addr()..addr.addr() + len;
            seen.live.insert(key, (inner.key(), range));
        });
        Ok(Box::new(NicLocal {
            nic: self.nic.clone(),
            key,
            _inner: inner,
        }))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        Ok(Box::new(NicLane {
            nic: self.nic.clone(),
            inner: self.inner.lane()?,
        }))
    }

    fn make_visible(&self, kind: MemoryKind) -> Result<()> {
        self.nic.change(|seen| seen.unflushed = 0);
        self.inner.make_visible(kind)
    }
}

#[derive(Debug)]
struct NicLocal {
    nic: Nic,
    key: u64,
    _inner: Box<dyn LocalRegion>,
}

impl LocalRegion for NicLocal {
    fn key(&self) -> LocalKey {
        LocalKey(self.key)
    }
}

impl Drop for NicLocal {
    fn drop(&mut self) {
        self.nic.change(|seen| {
            seen.live.remove(&self.key);
        });
    }
}

#[derive(Debug)]
struct NicLane {
    nic: Nic,
    inner: Box<dyn Lane>,
}

impl Lane for NicLane {
    forward!(connect, counters, endpoint, fence => inner);

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        for (accepted, &op) in ops.iter().enumerate() {
            let posted = match self.nic.op(op) {
                // SAFETY: the caller's promise.
                Ok(op) => unsafe { self.inner.post(pe, &[op]) },
                Err(error) => Posted::refused(0, error),
            };
            if posted.accepted == 0 {
                return Posted { accepted, ..posted };
            }
        }
        Posted::all(ops.len())
    }

    fn progress(&mut self) -> Result<()> {
        match self.nic.seen().fails {
            true => Err(Error::Closed { transport: NAME }),
            false => self.inner.progress(),
        }
    }
}

impl Drop for NicLane {
    fn drop(&mut self) {
        self.nic
            .change(|seen| seen.ended += usize::from(seen.fails));
    }
}
