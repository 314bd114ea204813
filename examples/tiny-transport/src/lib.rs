//! A whole transport, as a crate outside oxshmem would write it.
//!
//! PEs are threads of one process. What makes it a good example is what it lacks: peers are not
//! mapped, a lane holds 8 operations and performs them later, only some atomics exist, long
//! transfers need registered memory, and a lane must be connected with each PE. So it shows each
//! decision that a transport for a real network makes, in its simplest form:
//!
//! 1. **Declare** (this file) what you can do ([`Capabilities`]) and which orders you keep ([`Guarantees`]) and
//!    nothing more. What you leave out costs speed, never correctness: oxshmem flushes, splits and
//!    emulates around it. What you claim is held against you by the [conformance suite].
//! 2. **[`Transport`]** (this file) finds devices and opens a **[`Domain`]** (`domain.rs`) for a PE. Its `address`, its
//!    regions' keys and its lanes' endpoints travel to peers as bytes. They come back from peers
//!    you cannot trust: read each as if it were garbage, and answer `BadPeerData`.
//! 3. **[`Lane`]** (`lane.rs`): `post` checks *everything* first, so that what it takes cannot fail later but by
//!    the peer's death; takes a prefix; answers `Full` rather than wait. `progress` does a bounded
//!    amount of work. `counters` is all that a caller waits on.
//! 4. **End well**: after `peer_lost` refuse that PE and give up what is outstanding to it, after
//!    `shutdown` refuse all, and once a lane is dropped touch no local memory.
//! 5. **Run the suite** (`tests/conformance.rs`, a dozen lines) until it passes.
//!
//! [`Lane`]: oxshmem_transport::Lane
//! [conformance suite]: oxshmem_transport::conformance

mod domain;
mod lane;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Completion, Device, Domain, Error, GpuFlush,
    Guarantees, Job, Limits, Memory, MemoryKind, Pe, RegionId, Result, SignalSupport, Transport,
    Width, WireUp,
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
    pins: false,
    message: 0,
    passive_target: true,
};

/// A lane's queue keeps order; two lanes' queues know nothing of each other.
const GUARANTEES: Guarantees = Guarantees {
    put_put: true,
    put_atomic: true,
    atomic_put: true,
    atomic_atomic: true,
    put_message: false,
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

// SAFETY: nothing here is mapped. A lane touches local memory only in `progress`, for operations it
// has queued: it counts one as completed after that, and drops the queue with the lane or the PE.
unsafe impl Transport for Tiny {
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
        let (board, job) = (self.board.clone(), job.clone());
        Ok(Arc::new(domain::TinyDomain::new(board, job)))
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
    fn check_open(&self) -> Result<()> {
        match self.closed {
            true => Err(Error::Closed { transport: NAME }),
            false => Ok(()),
        }
    }

    fn check(&self, job: &Job, pe: Pe) -> Result<()> {
        self.check_open()?;
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
