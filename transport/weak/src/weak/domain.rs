//! The domain of the weak transport.

use std::any::Any;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Domain, Error, Guarantees, Job, Lane, Limits,
    Local, MemoryKind, Op, Pe, Peer, Reach, RegionId, Remote, RemoteRegion, Result, Schedule,
    SignalSupport, Width, WireUp, forward,
};

use super::lane::WeakLane;
use super::pool::Pool;
use super::{Settings, Shared};

/// One PE's weak transport.
pub(super) struct WeakDomain {
    settings: Settings,
    pool: Arc<Pool>,
    checks: Arc<Checks>,
    schedule: Option<Arc<dyn Schedule>>,
}

/// All that can be wrong with an operation, found before the pool takes it.
pub(super) struct Checks {
    name: &'static str,
    inner: Arc<dyn Domain>,
    pool: Arc<Pool>,
    /// Moves what is in the pool.
    _shared: Arc<Shared>,
    job: Job,
    capabilities: Capabilities,
    lose: Option<(Pe, u64)>,
    state: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    closed: bool,
    lost: HashSet<Pe>,
    /// Operations taken towards each PE.
    taken: HashMap<Pe, u64>,
    regions: HashMap<(Pe, RegionId), u64>,
}

impl fmt::Debug for WeakDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakDomain")
            .field("inner", &self.checks.inner)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl WeakDomain {
    pub(super) fn new(
        name: &'static str,
        job: Job,
        settings: Settings,
        inner: Arc<dyn Domain>,
        pool: Arc<Pool>,
        shared: Arc<Shared>,
        schedule: Option<Arc<dyn Schedule>>,
    ) -> Self {
        let of = inner.capabilities();
        let capabilities = Capabilities {
            put: Limits {
                inline: settings.inline,
                ordered: settings.ordered,
                ..of.put
            },
            get: Limits {
                inline: 0,
                ordered: settings.ordered,
                ..of.get
            },
            put_signal: signals(&settings, &of.atomics),
            atomics: of.atomics.both(&settings.atomics),
            memory: of.memory,
            depth: settings.depth,
            wire_up: of.wire_up,
            pins: of.pins,
            // So that what sessions gather is not on its way before it has to be.
            batch: 4,
            // The pool knows no messages.
            message: 0,
            passive_target: of.passive_target,
            moves_in_calls: false,
            acknowledges: settings.acknowledges,
        };
        WeakDomain {
            settings,
            pool: Arc::clone(&pool),
            checks: Arc::new(Checks {
                name,
                inner,
                pool,
                _shared: shared,
                job,
                capabilities,
                lose: settings.lose,
                state: Mutex::default(),
            }),
            schedule,
        }
    }
}

/// The put-with-signal of these settings over these atomics: a signal is performed as an atomic, at whatever level that is.
fn signals(settings: &Settings, atomics: &AtomicTable) -> SignalSupport {
    let signal = atomics.level(AtomicOp::Set, Width::W64);
    match settings.put_signal {
        SignalSupport::Native(_) if signal != AtomicLevel::None => SignalSupport::Native(signal),
        _ => SignalSupport::None,
    }
}

impl Domain for WeakDomain {
    forward!(address, make_visible, message_window, register, register_local, wants_descriptor => checks.inner);

    fn capabilities(&self) -> &Capabilities {
        &self.checks.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        let inner = self.checks.inner.guarantees(kind)?;
        Some(Guarantees {
            gpu_flush: inner.gpu_flush,
            ..self.settings.guarantees
        })
    }

    fn atomics_towards(&self, peer: &Peer) -> AtomicTable {
        let inner = self.checks.inner.atomics_towards(peer);
        inner.both(&self.settings.atomics)
    }

    fn put_signal_towards(&self, peer: &Peer) -> SignalSupport {
        signals(&self.settings, &self.checks.inner.atomics_towards(peer))
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match self.checks.inner.reach(peer, kind) {
            Reach::None(why) => Reach::None(why),
            Reach::Remote | Reach::Mapped { .. } => Reach::Remote,
        }
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let inner = self.checks.inner.import(peer, region, key, descriptor)?;
        let known = (peer.pe, region);
        self.checks.lock().regions.insert(known, inner.len() as u64);
        Ok(Arc::new(Unmapped(inner)))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        self.checks.open()?;
        let number = self.pool.add_lane(self.checks.inner.lane()?);
        Ok(Box::new(WeakLane {
            pool: Arc::clone(&self.pool),
            checks: Arc::clone(&self.checks),
            number,
            connected: BTreeSet::new(),
        }))
    }

    fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        self.checks.open()?;
        self.checks.inner.accept(pe, endpoint)
    }

    fn schedule(&self) -> Option<Arc<dyn Schedule>> {
        self.schedule.clone()
    }

    fn peer_lost(&self, pe: Pe) {
        self.checks.lose(pe);
    }

    fn shutdown(&self) {
        self.checks.lock().closed = true;
        self.checks.inner.shutdown();
    }
}

impl Checks {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self) -> Result<()> {
        if self.lock().closed {
            Err(Error::Closed {
                transport: self.name,
            })
        } else {
            Ok(())
        }
    }

    /// Refuses what can never be done.
    pub(super) fn check(&self, pe: Pe, op: &Op, connected: bool) -> Result<()> {
        self.open()?;
        let transport = self.name;
        if pe.0 >= self.job.size {
            let why = format!("the job has {} PEs", self.job.size);
            return Err(Error::Unreachable { transport, pe, why });
        }
        let mut known = self.lock();
        if let Some((whom, after)) = self.lose
            && whom == pe
            && !known.lost.contains(&pe)
            && known.taken.get(&pe).copied().unwrap_or(0) >= after
        {
            drop(known);
            self.lose(pe);
            known = self.lock();
        }
        if known.lost.contains(&pe) {
            return Err(Error::PeerLost { transport, pe });
        }
        if !connected && self.capabilities.wire_up == WireUp::PerLane {
            let why = "the lane is not connected with its lane; connect it first".into();
            return Err(Error::Unreachable { transport, pe, why });
        }
        self.check_op(&known, pe, op)
    }

    /// Counts an operation towards a PE that will be lost.
    pub(super) fn taken(&self, pe: Pe) {
        *self.lock().taken.entry(pe).or_default() += 1;
    }

    /// From now on a PE is lost.
    fn lose(&self, pe: Pe) {
        self.lock().lost.insert(pe);
        // The wrapped domain first: the pool may drop only operations that it has cancelled.
        self.inner.peer_lost(pe);
        self.pool.cancel(pe);
    }

    fn check_op(&self, known: &Known, pe: Pe, op: &Op) -> Result<()> {
        let caps = &self.capabilities;
        let unsupported = |what: String| Error::Unsupported {
            transport: self.name,
            what,
        };
        let transfer = |what: &str, local: &Local, limits: &Limits| match local.len as u64 {
            len if len > limits.max => Err(unsupported(format!("a {what} of {len} bytes"))),
            len if len > limits.unregistered && local.key.is_none() => {
                Err(unsupported(format!("a {what} of {len} unregistered bytes")))
            }
            _ => Ok(()),
        };
        match op {
            Op::Put { from, to } => {
                transfer("put", from, &caps.put)?;
                self.check_far(known, pe, *to, "a put", (from.len as u64, caps.put.align))
            }
            Op::Get { into, from } => {
                transfer("get", into, &caps.get)?;
                self.check_far(known, pe, *from, "a get", (into.len as u64, caps.get.align))
            }
            Op::PutSignal {
                from, to, signal, ..
            } => {
                if caps.put_signal == SignalSupport::None {
                    return Err(unsupported("put-with-signal".into()));
                }
                transfer("put-with-signal", from, &caps.put)?;
                self.check_far(known, pe, *to, "a put", (from.len as u64, caps.put.align))?;
                self.check_far(known, pe, *signal, "a signal", (8, 8))
            }
            Op::Atomic {
                op,
                width,
                on,
                fetch,
                ..
            } => {
                if caps.atomics.level(*op, *width) == AtomicLevel::None {
                    return Err(unsupported(format!("atomic {op} of {width} bits")));
                }
                let bytes = width.bytes() as u64;
                if let Some(into) = fetch {
                    into.check_fetch(self.name, *width)?;
                }
                self.check_far(known, pe, *on, "an atomic", (bytes, bytes))
            }
            Op::Flush => Ok(()),
            other => Err(unsupported(format!("{other:?}"))),
        }
    }

    fn check_far(
        &self,
        known: &Known,
        pe: Pe,
        at: Remote,
        what: &'static str,
        size: (u64, u64),
    ) -> Result<()> {
        let transport = self.name;
        let Some(&region) = known.regions.get(&(pe, at.region)) else {
            return Err(Error::UnknownRegion {
                transport,
                region: at.region.0,
                pe,
            });
        };
        at.check(transport, what, size, region)
    }
}

/// A peer's region that lanes alone reach.
#[derive(Debug)]
struct Unmapped(Arc<dyn RemoteRegion>);

impl RemoteRegion for Unmapped {
    fn mapped(&self) -> Option<NonNull<u8>> {
        None
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        self.0.keep_alive()
    }
}
