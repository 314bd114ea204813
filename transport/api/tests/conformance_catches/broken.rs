//! Right transports with one fault put in front of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "of tests")]

mod inbox;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Completion, Counters, Device, Domain, Error,
    Guarantees, Inbox, Job, Lane, Local, Memory, MemoryKind, Op, Pe, Peer, Posted, Reach, Region,
    RegionId, Remote, RemoteRegion, Result, SignalOp, SignalSupport, Status, Transport, WireUp,
    forward,
};

use inbox::BrokenInbox;

/// The right transport beneath.
#[derive(Clone, Copy, Debug)]
pub enum Base {
    /// Performs at once, is never full, maps its peers.
    Loopback,
    /// Queues, is full at 8, maps nothing.
    Tiny,
    /// The same, with messages.
    TinyNics,
}

/// The fault; `PromisesLittle` is none, and must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    AcceptsLessThanAll,
    AddsInTwoSteps,
    AnswersNobody,
    AnswersTheNumberAlone,
    ClaimsAcrossLanes,
    ClaimsAtomics,
    ClaimsCuda,
    ClaimsDepth(u32),
    ClaimsInline,
    ClaimsMax,
    ClaimsMessages,
    ClaimsNoDepth,
    ClaimsNoWiring,
    ClaimsSignal,
    ClaimsUnregistered,
    ClaimsWindow(u32),
    ComparesNothing,
    CompletesEarly,
    CountsAnotherPe,
    CutsMessages,
    DropsLastByte,
    ForgetsCompletions,
    FullForAll,
    HidesAtomics,
    HidesMapping,
    HidesMax,
    HidesMessages,
    HidesMisaligned,
    HidesOutOfRange,
    HidesSignal,
    HidesUnknown,
    HidesUnregistered,
    IgnoresFull,
    IgnoresLoss,
    IgnoresShutdown,
    Panics,
    PromisesLittle,
    RepeatsMessages,
    ReusesEarly,
    ReversesBatches,
    ReversesMessages,
    SetsForAdds,
    SignalsFirst,
    TakesAfterRefusal,
    TearsWords,
    TrustsAddresses,
    TrustsKeys,
    WorksAfterDrop,
    WritesOneByteMore,
}

#[derive(Debug)]
pub struct Broken {
    right: Box<dyn Transport>,
    fault: Fault,
    keys: Keys,
}

/// Sound keys, for the fault that trusts any.
type Keys = Arc<Mutex<HashMap<(Pe, RegionId), Vec<u8>>>>;
/// Dropped lanes that go on working, for the fault that lets them.
type Graveyard = Arc<Mutex<Vec<Box<dyn Lane>>>>;

impl Broken {
    pub fn new(base: Base, fault: Fault) -> Broken {
        let right: Box<dyn Transport> = match base {
            Base::Loopback => Box::new(Loopback::new()),
            Base::Tiny => Box::new(Tiny::default()),
            Base::TinyNics => Box::new(Tiny::nic()),
        };
        Broken {
            right,
            fault,
            keys: Keys::default(),
        }
    }
}

// SAFETY: what it breaks on purpose stays within the memory it was given; the rest is the inner one's.
unsafe impl Transport for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.right.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let right = self.right.open(device, job)?;
        let capabilities = declared(self.fault, right.capabilities().clone());
        Ok(Arc::new(BrokenDomain {
            right,
            fault: self.fault,
            me: job.me,
            capabilities,
            keys: self.keys.clone(),
            graveyard: Graveyard::default(),
        }))
    }
}

fn declared(fault: Fault, mut right: Capabilities) -> Capabilities {
    match fault {
        Fault::ClaimsAtomics => right.atomics = AtomicTable::uniform(AtomicLevel::Cpu),
        Fault::ClaimsCuda => right.memory = &MemoryKind::ALL,
        Fault::ClaimsDepth(depth) => right.depth = Some(depth),
        Fault::ClaimsInline => right.put.inline = 8,
        Fault::ClaimsMax => right.put.max *= 2,
        Fault::ClaimsMessages => right.message = 64,
        Fault::ClaimsNoDepth => right.depth = None,
        Fault::ClaimsNoWiring => right.wire_up = WireUp::None,
        Fault::ClaimsSignal => right.put_signal = SignalSupport::Native(AtomicLevel::Cpu),
        Fault::ClaimsUnregistered => right.put.unregistered *= 2,
        Fault::HidesAtomics => right.atomics = AtomicTable::uniform(AtomicLevel::None),
        Fault::HidesMax => right.get.max /= 2,
        Fault::HidesMessages => right.message = 0,
        Fault::HidesSignal => right.put_signal = SignalSupport::None,
        Fault::HidesUnregistered => right.get.unregistered /= 2,
        Fault::PromisesLittle => right.passive_target = false,
        _ => {}
    }
    right
}

#[derive(Debug)]
struct BrokenDomain {
    right: Arc<dyn Domain>,
    fault: Fault,
    me: Pe,
    capabilities: Capabilities,
    keys: Keys,
    graveyard: Graveyard,
}

impl Domain for BrokenDomain {
    forward!(accept, address => right);

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        let right = self.right.guarantees(kind)?;
        Some(match self.fault {
            Fault::ClaimsAcrossLanes => Guarantees {
                across_lanes: true,
                ..right
            },
            Fault::PromisesLittle => Guarantees {
                put_put: false,
                put_fence_put: false,
                put_atomic: false,
                atomic_put: false,
                atomic_atomic: false,
                put_message: false,
                put_get: false,
                get_get: false,
                across_lanes: false,
                completion: Completion::Accepted,
                gpu_flush: right.gpu_flush,
            },
            _ => right,
        })
    }

    fn message_window(&self, _: &Peer) -> Option<u32> {
        match self.fault {
            Fault::ClaimsWindow(window) => Some(window),
            _ => None,
        }
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match self.fault {
            Fault::HidesMapping => Reach::Remote,
            Fault::TrustsAddresses if peer.address.is_some() => {
                let peer = Peer {
                    address: Some(self.address()),
                    ..peer.clone()
                };
                self.right.reach(&peer, kind)
            }
            _ => self.right.reach(peer, kind),
        }
    }

    fn inbox(&self) -> Result<Box<dyn Inbox>> {
        Ok(Box::new(BrokenInbox {
            right: self.right.inbox()?,
            fault: self.fault,
        }))
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        let region = self.right.register(id, memory)?;
        let place = (self.me, region.id());
        self.keys
            .lock()
            .unwrap()
            .insert(place, region.key().to_vec());
        Ok(region)
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let known = self.keys.lock().unwrap().get(&(peer.pe, region)).cloned();
        let trusted = known.filter(|_| self.fault == Fault::TrustsKeys);
        self.right
            .import(peer, region, trusted.as_deref().unwrap_or(key), descriptor)
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        Ok(Box::new(BrokenLane {
            right: Some(self.right.lane()?),
            fault: self.fault,
            surplus: HashMap::new(),
            pretended: HashMap::new(),
            graveyard: self.graveyard.clone(),
        }))
    }

    fn peer_lost(&self, pe: Pe) {
        if self.fault != Fault::IgnoresLoss {
            self.right.peer_lost(pe);
        }
    }

    fn shutdown(&self) {
        if self.fault != Fault::IgnoresShutdown {
            self.right.shutdown();
        }
    }
}

#[derive(Debug)]
struct BrokenLane {
    /// None only while dropped.
    right: Option<Box<dyn Lane>>,
    fault: Fault,
    /// Operations beneath that nobody asked for, by PE: not to be counted.
    surplus: HashMap<Pe, u64>,
    /// Operations taken that never went beneath, by PE: to be counted.
    pretended: HashMap<Pe, u64>,
    graveyard: Graveyard,
}

/// Part of an operation's bytes.
fn part(local: Local, remote: Remote, from: usize, to: usize) -> (Local, Remote) {
    // SAFETY: `from` is at most the length of what the operation names.
    let addr = unsafe { local.addr.add(from) };
    let remote = Remote {
        offset: remote.offset + from as u64,
        ..remote
    };
    (
        Local {
            addr,
            len: to - from,
            ..local
        },
        remote,
    )
}

impl BrokenLane {
    fn right(&self) -> &dyn Lane {
        self.right.as_deref().unwrap()
    }

    fn right_mut(&mut self) -> &mut (dyn Lane + 'static) {
        self.right.as_deref_mut().unwrap()
    }

    /// The operations for the transport beneath, in place of one.
    ///
    /// # Safety
    ///
    /// The operation's local buffer is valid.
    unsafe fn distorted(&mut self, pe: Pe, op: Op) -> Vec<Op> {
        match (self.fault, op) {
            (Fault::DropsLastByte, Op::Put { from, to }) if from.len > 1 => {
                let (from, to) = part(from, to, 0, from.len - 1);
                vec![Op::Put { from, to }]
            }
            // The suite's memory goes on behind what it puts in the check that this is for.
            (Fault::WritesOneByteMore, Op::Put { from, to }) if from.len > 0 => {
                vec![Op::Put {
                    from: Local {
                        len: from.len + 1,
                        ..from
                    },
                    to,
                }]
            }
            (Fault::TearsWords, Op::Put { from, to }) if from.len > 16 => {
                let (first, second) = (part(from, to, 0, 12), part(from, to, 12, from.len));
                // SAFETY: part of what the caller vouches for.
                unsafe {
                    self.beforehand(
                        pe,
                        Op::Put {
                            from: first.0,
                            to: first.1,
                        },
                    )
                };
                vec![Op::Put {
                    from: second.0,
                    to: second.1,
                }]
            }
            (
                Fault::ComparesNothing,
                Op::Atomic {
                    op: AtomicOp::CompareSwap,
                    width,
                    on,
                    operand,
                    compare,
                    fetch,
                },
            ) => vec![Op::Atomic {
                op: AtomicOp::Swap,
                width,
                on,
                operand,
                compare,
                fetch,
            }],
            (
                Fault::AddsInTwoSteps,
                Op::Atomic {
                    op: AtomicOp::Add,
                    width,
                    on,
                    operand,
                    compare,
                    fetch: Some(into),
                },
            ) if width.bytes() == 8 => {
                let fetch = Some(into);
                let read = Op::Atomic {
                    op: AtomicOp::Fetch,
                    width,
                    on,
                    operand,
                    compare,
                    fetch,
                };
                // SAFETY: its local buffer is the add's.
                unsafe { self.beforehand(pe, read) };
                // SAFETY: the fetched word, which the caller vouches for.
                let old = unsafe { into.addr.cast::<u64>().read() };
                let operand = old.wrapping_add(operand);
                vec![Op::Atomic {
                    op: AtomicOp::Set,
                    width,
                    on,
                    operand,
                    compare,
                    fetch: None,
                }]
            }
            (
                Fault::SetsForAdds,
                Op::PutSignal {
                    from,
                    to,
                    signal,
                    value,
                    ..
                },
            ) => {
                vec![Op::PutSignal {
                    from,
                    to,
                    signal,
                    op: SignalOp::Set,
                    value,
                }]
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
                let nothing = Local { len: 0, ..from };
                let alone = Op::PutSignal {
                    from: nothing,
                    to,
                    signal,
                    op,
                    value,
                };
                // SAFETY: it has no local buffer.
                unsafe { self.beforehand(pe, alone) };
                vec![Op::Put { from, to }]
            }
            _ => vec![op],
        }
    }

    /// Performs an operation that nobody counts, and leaves others time to see it alone.
    ///
    /// # Safety
    ///
    /// Its local buffer is valid.
    unsafe fn beforehand(&mut self, pe: Pe, op: Op) {
        *self.surplus.entry(pe).or_default() += 1;
        // SAFETY: the caller's promise.
        let posted = unsafe { self.right_mut().post(pe, &[op]) };
        assert_eq!(posted.accepted, 1, "{posted:?}");
        std::thread::yield_now();
    }

    fn answer(&mut self, pe: Pe, ops: &[Op], posted: Posted) -> Posted {
        let hidden = match (self.fault, &posted.status) {
            (Fault::HidesOutOfRange, Status::Refused(Error::OutOfRange { .. }))
            | (Fault::HidesUnknown, Status::Refused(Error::UnknownRegion { .. }))
            | (Fault::HidesMisaligned, Status::Refused(Error::Misaligned { .. }))
            | (Fault::IgnoresFull, Status::Full) => true,
            (Fault::AcceptsLessThanAll, Status::All) if !ops.is_empty() => {
                return Posted {
                    accepted: ops.len() - 1,
                    status: Status::All,
                };
            }
            _ => false,
        };
        if !hidden {
            return posted;
        }
        *self.pretended.entry(pe).or_default() += (ops.len() - posted.accepted) as u64;
        Posted::all(ops.len())
    }
}

impl Lane for BrokenLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        self.right_mut().endpoint(pe)
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        self.right_mut().connect(pe, endpoint)
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        if self.fault == Fault::Panics {
            panic!("a transport that panics");
        }
        let others_work = (0..4).map(Pe).any(|other| {
            let counters = self.right().counters(other);
            other != pe && counters.posted != counters.completed
        });
        if self.fault == Fault::FullForAll && others_work {
            return Posted::full(0);
        }
        // There is room for three messages.
        let is_message = matches!(ops, [Op::Message { .. }]);
        let has_no_room = self.right().counters(pe).posted >= 3;
        if matches!(self.fault, Fault::ClaimsWindow(_)) && is_message && has_no_room {
            return Posted::full(0);
        }
        let mut beneath = Vec::new();
        for &op in ops {
            // SAFETY: the caller's promise.
            beneath.extend(unsafe { self.distorted(pe, op) });
        }
        if self.fault == Fault::ReversesBatches {
            for op in beneath.into_iter().rev() {
                // SAFETY: the caller's promise.
                unsafe { self.beforehand(pe, op) };
            }
            *self.surplus.entry(pe).or_default() -= ops.len() as u64;
            return Posted::all(ops.len());
        }
        // SAFETY: the caller's promise; distorted operations name nothing else.
        let posted = unsafe { self.right_mut().post(pe, &beneath) };
        if self.fault == Fault::TakesAfterRefusal
            && matches!(posted.status, Status::Refused(_))
            && posted.accepted + 1 < ops.len()
        {
            let rest = &ops[posted.accepted + 1..];
            // SAFETY: the caller's promise.
            let more = unsafe { self.right_mut().post(pe, rest) };
            *self.surplus.entry(pe).or_default() += more.accepted as u64;
        }
        self.answer(pe, ops, posted)
    }

    fn progress(&mut self) -> Result<()> {
        for dead in self.graveyard.lock().unwrap().iter_mut() {
            dead.progress()?;
        }
        self.right_mut().progress()
    }

    fn fence(&mut self, pe: Pe) {
        self.right_mut().fence(pe);
    }

    fn request_completion(&mut self, pe: Pe) {
        self.right_mut().request_completion(pe);
    }

    fn counters(&self, pe: Pe) -> Counters {
        let right = self.right().counters(pe);
        let of = |table: &HashMap<Pe, u64>| table.get(&pe).copied().unwrap_or(0);
        let change = |count| count + of(&self.pretended) - of(&self.surplus);
        let Counters { posted, completed } = Counters {
            posted: change(right.posted),
            completed: change(right.completed),
        };
        match self.fault {
            Fault::CompletesEarly => Counters {
                posted,
                completed: posted,
            },
            Fault::ForgetsCompletions => Counters {
                posted,
                completed: completed.min(2),
            },
            Fault::CountsAnotherPe if pe == Pe(2) => self.right().counters(Pe(1)),
            _ => Counters { posted, completed },
        }
    }

    fn reusable(&self, pe: Pe) -> u64 {
        match self.fault {
            Fault::ReusesEarly => self.counters(pe).posted,
            _ => self.counters(pe).completed,
        }
    }
}

impl Drop for BrokenLane {
    fn drop(&mut self) {
        if let Some(lane) = self.right.take()
            && self.fault == Fault::WorksAfterDrop
        {
            self.graveyard.lock().unwrap().push(lane);
        }
    }
}
