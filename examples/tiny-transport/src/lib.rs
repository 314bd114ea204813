//! A whole transport in one file, as a crate outside oxshmem would write it.
//!
//! PEs are threads of one process. What makes it a good example is what it lacks: peers are not
//! mapped, a lane holds 8 operations and performs them later, only some atomics exist, long
//! transfers need registered memory, and lanes must be connected in pairs. So it shows each
//! decision that a transport for a real network makes, in its simplest form:
//!
//! 1. **Declare** what you can do ([`Capabilities`]) and which orders you keep ([`Guarantees`]) and
//!    nothing more. What you leave out costs speed, never correctness: oxshmem flushes, splits and
//!    emulates around it. What you claim is held against you by the [conformance suite].
//! 2. **[`Transport`]** finds devices and opens a **[`Domain`]** for a PE. Its `address`, its
//!    regions' keys and its lanes' endpoints travel to peers as bytes. They come back from peers
//!    you cannot trust: read each as if it were garbage, and answer `BadPeerData`.
//! 3. **[`Lane`]** `post` checks *everything* first, so that what it takes cannot fail later but by
//!    the peer's death; takes a prefix; answers `Full` rather than wait. `progress` does a bounded
//!    amount of work. `counters` is all that a caller waits on.
//! 4. **End well**: after `peer_lost` refuse that PE and give up what is outstanding to it, after
//!    `shutdown` refuse all, and once a lane is dropped touch no local memory.
//! 5. **Run the suite** (`tests/conformance.rs`, a dozen lines) until it passes.
//!
//! [conformance suite]: oxshmem_transport::conformance

use std::any::Any;
use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Completion, Counters, Device, Domain, Error,
    GpuFlush, Guarantees, Job, Lane, Limits, Local, LocalKey, Memory, MemoryKind, Op, Pe, Peer,
    Posted, Reach, Region, RegionId, Remote, RemoteRegion, Result, SignalSupport, Transport, Width,
    WireUp,
};

const NAME: &str = "tiny";
const DEPTH: usize = 8;
const LIMITS: Limits = Limits {
    max: 64 << 10,
    align: 1,
    unregistered: 1024,
    inline: 0,
};
const CPU: AtomicLevel = AtomicLevel::Cpu;

static CAPABILITIES: Capabilities = Capabilities {
    put: LIMITS,
    get: LIMITS,
    put_signal: SignalSupport::None,
    atomics: AtomicTable::uniform(AtomicLevel::None)
        .with(AtomicOp::Fetch, Width::W64, CPU)
        .with(AtomicOp::Set, Width::W64, CPU)
        .with(AtomicOp::Add, Width::W64, CPU)
        .with(AtomicOp::CompareSwap, Width::W64, CPU),
    memory: &[MemoryKind::Host],
    depth: Some(DEPTH as u32),
    wire_up: WireUp::PerLane,
    passive_target: true,
};

/// A lane's queue keeps order; two lanes' queues know nothing of each other.
const GUARANTEES: Guarantees = Guarantees {
    put_put: true,
    put_atomic: true,
    atomic_put: true,
    atomic_atomic: true,
    put_get: true,
    get_get: true,
    across_lanes: false,
    completion: Completion::Placed,
    gpu_flush: GpuFlush::None,
};

/// The "network": what all domains of one [`Tiny`] can look up. Numbers are never given twice.
#[derive(Debug, Default)]
struct Board {
    next: u64,
    regions: HashMap<u64, (Pe, RegionId, Memory)>,
    /// Each endpoint's own PE, and the one it is meant for.
    endpoints: HashMap<u64, (Pe, Pe)>,
}

impl Board {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Locks; what the mutexes here guard is whole whenever one is free, so poison means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transport. All PEs of a job open it on the same one, or on clones.
#[derive(Clone, Debug, Default)]
pub struct Tiny {
    board: Arc<Mutex<Board>>,
}

impl Transport for Tiny {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        let description = "a table in this process, for its threads".into();
        Ok(vec![Device {
            name: "table".into(),
            description,
        }])
    }

    fn open(&self, _: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (board, job) = (self.board.clone(), job.clone());
        Ok(Arc::new(TinyDomain {
            board,
            job,
            shared,
            regions: Mutex::new(0),
        }))
    }
}

/// What a domain and its lanes share.
#[derive(Debug, Default)]
struct Shared {
    closed: bool,
    lost: HashSet<Pe>,
    imported: HashMap<(Pe, RegionId), Memory>,
}

impl Shared {
    fn check(&self, job: &Job, pe: Pe) -> Result<()> {
        if self.closed {
            return Err(Error::Closed { transport: NAME });
        }
        if pe.0 >= job.size {
            let why = format!("the job has {} PEs", job.size);
            return Err(Error::Unreachable {
                transport: NAME,
                pe,
                why,
            });
        }
        match self.lost.contains(&pe) {
            true => Err(Error::PeerLost {
                transport: NAME,
                pe,
            }),
            false => Ok(()),
        }
    }
}

#[derive(Debug)]
struct TinyDomain {
    board: Arc<Mutex<Board>>,
    job: Job,
    shared: Arc<Mutex<Shared>>,
    regions: Mutex<u32>,
}

/// Bytes for a peer: a tag, then numbers.
fn packed(tag: &[u8; 4], numbers: &[u64]) -> Vec<u8> {
    tag.iter()
        .copied()
        .chain(numbers.iter().flat_map(|number| number.to_le_bytes()))
        .collect()
}

/// What [`packed`] packed, and nothing else.
fn unpacked<const N: usize>(tag: &[u8; 4], bytes: &[u8]) -> Option<[u64; N]> {
    let (words, odd) = bytes.strip_prefix(tag)?.as_chunks();
    let numbers: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    numbers.try_into().ok().filter(|_| odd.is_empty())
}

fn bad_data(what: &'static str, pe: Pe, why: &str) -> Error {
    Error::BadPeerData {
        transport: NAME,
        what,
        pe,
        why: why.into(),
    }
}

impl Domain for TinyDomain {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        (kind == MemoryKind::Host).then_some(GUARANTEES)
    }

    /// This process, and the table in it: two PEs reach each other if they name the same.
    fn address(&self) -> Vec<u8> {
        packed(
            b"addr",
            &[
                std::process::id().into(),
                Arc::as_ptr(&self.board).addr() as u64,
            ],
        )
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match &peer.address {
            _ if kind != MemoryKind::Host => Reach::None(format!("{kind} memory is not copied")),
            None => Reach::None("it has no tiny transport open".into()),
            Some(address) if *address != self.address() => {
                Reach::None("it shares no table with this PE; give both the same Tiny".into())
            }
            Some(_) => Reach::Wire,
        }
    }

    fn register(&self, memory: &Memory) -> Result<Box<dyn Region>> {
        if memory.kind != MemoryKind::Host || !memory.base.addr().get().is_multiple_of(4096) {
            let why = "only host memory that begins on a page".into();
            return Err(Error::Memory {
                transport: NAME,
                kind: memory.kind,
                why,
            });
        }
        let mut count = lock(&self.regions);
        let id = RegionId(*count);
        *count += 1;
        let mut board = lock(&self.board);
        let number = board.number();
        board
            .regions
            .insert(number, (self.job.me, id, memory.clone()));
        let key = packed(b"key ", &[number, memory.len as u64]);
        Ok(Box::new(TinyRegion {
            board: self.board.clone(),
            id,
            number,
            key,
        }))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        _: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let bad = |why| bad_data("the key of a region", peer.pe, why);
        let [number, len] = unpacked(b"key ", key).ok_or_else(|| bad("it is not a key"))?;
        let board = lock(&self.board);
        let (pe, id, memory) = board
            .regions
            .get(&number)
            .ok_or_else(|| bad("no such region"))?;
        if (*pe, *id, memory.len as u64) != (peer.pe, region, len) {
            return Err(bad("it is another region's"));
        }
        let memory = memory.clone();
        lock(&self.shared)
            .imported
            .insert((peer.pe, region), memory.clone());
        Ok(Arc::new(TinyRemote(memory)))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        let (board, job, shared) = (self.board.clone(), self.job.clone(), self.shared.clone());
        shared_open(&shared)?;
        let ways = (0..job.size).map(|_| Way::default()).collect();
        Ok(Box::new(TinyLane {
            board,
            job,
            shared,
            ways,
            queue: VecDeque::new(),
        }))
    }

    fn peer_lost(&self, pe: Pe) {
        lock(&self.shared).lost.insert(pe);
    }

    fn shutdown(&self) {
        lock(&self.shared).closed = true;
    }
}

fn shared_open(shared: &Mutex<Shared>) -> Result<()> {
    match lock(shared).closed {
        true => Err(Error::Closed { transport: NAME }),
        false => Ok(()),
    }
}

#[derive(Debug)]
struct TinyRegion {
    board: Arc<Mutex<Board>>,
    id: RegionId,
    number: u64,
    key: Vec<u8>,
}

impl Region for TinyRegion {
    fn id(&self) -> RegionId {
        self.id
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        LocalKey(self.number)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for TinyRegion {
    fn drop(&mut self) {
        lock(&self.board).regions.remove(&self.number);
    }
}

#[derive(Debug)]
struct TinyRemote(Memory);

impl RemoteRegion for TinyRemote {
    fn mapped(&self) -> Option<NonNull<u8>> {
        None
    }

    fn len(&self) -> usize {
        self.0.len
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        self.0.owner.clone()
    }
}

/// A lane's way to one PE.
#[derive(Debug, Default)]
struct Way {
    /// This side's endpoint, once made.
    endpoint: Option<u64>,
    connected: bool,
    counters: Counters,
}

#[derive(Debug)]
struct TinyLane {
    board: Arc<Mutex<Board>>,
    job: Job,
    shared: Arc<Mutex<Shared>>,
    ways: Vec<Way>,
    /// What was accepted, and the far address that was checked then.
    queue: VecDeque<(Pe, Op, Far)>,
}

/// A checked far address, and the memory that keeps it.
#[derive(Debug)]
struct Far(Option<(Memory, usize)>);

// SAFETY: the raw pointers in the queue's `Op`s are the poster's, who promised their validity until
// the lane is done with them, wherever the lane is moved to.
unsafe impl Send for TinyLane {}

impl Far {
    /// The address; dangling for a flush, which has none.
    fn ptr(&self) -> *mut u8 {
        match &self.0 {
            // SAFETY: `checked` found the offset inside the memory, which its owner keeps.
            Some((memory, offset)) => unsafe { memory.base.as_ptr().add(*offset) },
            None => std::ptr::dangling_mut(),
        }
    }
}

/// All that can be wrong with an operation.
fn checked(shared: &Shared, pe: Pe, op: &Op) -> Result<Far> {
    let unsupported = |what: String| Error::Unsupported {
        transport: NAME,
        what,
    };
    let transfer = |local: &Local| match local.len as u64 {
        len if len > LIMITS.max => Err(unsupported(format!("a transfer of {len} bytes"))),
        len if len > LIMITS.unregistered && local.key.is_none() => Err(unsupported(format!(
            "a transfer of {len} unregistered bytes"
        ))),
        len => Ok(len),
    };
    let (remote, len) = match op {
        Op::Put {
            from: local,
            to: remote,
        }
        | Op::Get {
            into: local,
            from: remote,
        } => (remote, transfer(local)?),
        Op::Atomic {
            op,
            width,
            on,
            fetch,
            ..
        } => {
            if CAPABILITIES.atomics.level(*op, *width) == AtomicLevel::None {
                return Err(unsupported(format!("atomic {op} of {width} bits")));
            }
            let align = width.bytes() as u64;
            let near = fetch.map_or(0, |into| into.addr.addr() as u64);
            if let Some(offset) = [on.offset, near].into_iter().find(|at| at % align != 0) {
                let what = "an atomic";
                return Err(Error::Misaligned {
                    transport: NAME,
                    what,
                    offset,
                    align,
                });
            }
            (on, align)
        }
        Op::Flush => return Ok(Far(None)),
        other => return Err(unsupported(format!("{other:?}"))),
    };
    let Remote { region, offset } = *remote;
    let unknown = Error::UnknownRegion {
        transport: NAME,
        region: region.0,
        pe,
    };
    let memory = shared.imported.get(&(pe, region)).ok_or(unknown)?;
    match offset.checked_add(len) {
        Some(end) if end <= memory.len as u64 => Ok(Far(Some((memory.clone(), offset as usize)))),
        _ => {
            let region = memory.len as u64;
            Err(Error::OutOfRange {
                transport: NAME,
                offset,
                len,
                region,
            })
        }
    }
}

/// # Safety
///
/// The operation's near side is valid; `far` is what [`checked`] made of it.
unsafe fn perform(op: &Op, far: *mut u8) {
    // Before and after: no operation of a lane is seen out of its turn.
    fence(Ordering::SeqCst);
    match *op {
        // SAFETY: both sides are valid for `len` bytes, by the caller's promise.
        Op::Put { from, .. } => unsafe { oxshmem_heap::copy::copy(far, from.addr, from.len) },
        // SAFETY: as for put.
        Op::Get { into, .. } => unsafe { oxshmem_heap::copy::copy(into.addr, far, into.len) },
        Op::Atomic {
            op,
            operand,
            compare,
            fetch,
            ..
        } => {
            // SAFETY: a checked, aligned word; all PEs access it atomically.
            let word = unsafe { AtomicU64::from_ptr(far.cast()) };
            let order = Ordering::SeqCst;
            let old = match op {
                AtomicOp::Set => word.swap(operand, order),
                AtomicOp::Add => word.fetch_add(operand, order),
                AtomicOp::CompareSwap => word
                    .compare_exchange(compare, operand, order, order)
                    .unwrap_or_else(|found| found),
                // Fetch; `checked` refused all others.
                _ => word.load(order),
            };
            if let Some(into) = fetch {
                // SAFETY: a valid word by the caller's promise, aligned as `checked` found.
                unsafe { AtomicU64::from_ptr(into.addr.cast()) }.store(old, Ordering::Relaxed);
            }
        }
        _ => {}
    }
    fence(Ordering::SeqCst);
}

impl Lane for TinyLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        lock(&self.shared).check(&self.job, pe)?;
        let me = self.job.me;
        let mut board = lock(&self.board);
        let number = *self.ways[pe.index()]
            .endpoint
            .get_or_insert_with(|| board.number());
        board.endpoints.insert(number, (me, pe));
        Ok(packed(b"end ", &[number]))
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        lock(&self.shared).check(&self.job, pe)?;
        let bad = |why| bad_data("an endpoint", pe, why);
        let [number] = unpacked(b"end ", endpoint).ok_or_else(|| bad("it is not an endpoint"))?;
        if lock(&self.board).endpoints.get(&number) != Some(&(pe, self.job.me)) {
            return Err(bad("it was not made by that PE for this one"));
        }
        self.ways[pe.index()].connected = true;
        Ok(())
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let shared = lock(&self.shared);
        if let Err(error) = shared.check(&self.job, pe) {
            return Posted::refused(0, error);
        }
        let way = &mut self.ways[pe.index()];
        if !way.connected {
            let why = "this lane is not connected with it".into();
            return Posted::refused(
                0,
                Error::Unreachable {
                    transport: NAME,
                    pe,
                    why,
                },
            );
        }
        for (accepted, op) in ops.iter().enumerate() {
            if way.counters.posted - way.counters.completed >= DEPTH as u64 {
                return Posted::full(accepted);
            }
            match checked(&shared, pe, op) {
                Ok(far) => self.queue.push_back((pe, *op, far)),
                Err(error) => return Posted::refused(accepted, error),
            }
            way.counters.posted += 1;
        }
        Posted::all(ops.len())
    }

    /// At most 4 operations a call.
    fn progress(&mut self) -> Result<()> {
        shared_open(&self.shared)?;
        for _ in 0..4 {
            let Some((pe, op, far)) = self.queue.pop_front() else {
                break;
            };
            if lock(&self.shared).lost.contains(&pe) {
                continue;
            }
            // SAFETY: the poster promised the near side's validity until completion, which is not
            // counted before the next line; `far` was checked when the operation was taken.
            unsafe { perform(&op, far.ptr()) };
            self.ways[pe.index()].counters.completed += 1;
        }
        Ok(())
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.ways
            .get(pe.index())
            .map(|way| way.counters)
            .unwrap_or_default()
    }
}

impl Drop for TinyLane {
    fn drop(&mut self) {
        let mut board = lock(&self.board);
        for number in self.ways.iter().filter_map(|way| way.endpoint) {
            board.endpoints.remove(&number);
        }
    }
}
