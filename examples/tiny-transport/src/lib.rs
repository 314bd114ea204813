//! A whole transport, as a crate outside oxshmem would write it.
//!
//! PEs are threads of one process. What makes it a good example is what it lacks: peers are not
//! mapped, a lane holds 8 operations and performs them later, only some atomics exist, long
//! transfers need registered memory, and a lane must be connected with each PE. [`Tiny::nic`] lacks
//! more, as a NIC does. So it shows each decision that a transport for a real network makes, in its
//! simplest form:
//!
//! 1. **Declare** (`kinds.rs`) what you can do ([`Capabilities`]) and which orders you keep ([`Guarantees`]) and
//!    nothing more. What you leave out costs speed, never correctness: oxshmem flushes, splits and
//!    emulates around it. What you claim is held against you by the [conformance suite].
//! 2. **[`Transport`]** (this file) finds devices and opens a **[`Domain`]** (`domain.rs`) for a PE. Its `address`, its
//!    regions' keys and its lanes' endpoints travel to peers as bytes. They come back from peers
//!    you cannot trust: read each as if it were garbage, and answer `BadPeerData`.
//! 3. **[`Lane`]** (`lane.rs`): `post` checks *everything* (`operation.rs`) first, so that what it takes cannot fail later but by
//!    the peer's death; takes a prefix; answers `Full` rather than wait. `progress` does a bounded
//!    amount of work. `counters` is all that a caller waits on.
//!    What is done after it has completed waits in `late.rs`.
//! 4. **[`Inbox`]** (`inbox.rs`): messages in each sender's order, and answers whose number comes after
//!    their value; none once its lane is gone or has given the PE up.
//! 5. **End well**: after `peer_lost` refuse that PE and give up what is outstanding to it, after
//!    `shutdown` refuse all, and once a lane is dropped touch no local memory.
//! 6. **Run the suite** (`tests/conformance.rs`, a dozen lines) until it passes.
//!
//! [`Capabilities`]: oxshmem_transport::Capabilities
//! [`Guarantees`]: oxshmem_transport::Guarantees
//! [`Lane`]: oxshmem_transport::Lane
//! [`Inbox`]: oxshmem_transport::Inbox
//! [conformance suite]: oxshmem_transport::conformance

mod domain;
mod inbox;
mod kinds;
mod lane;
mod late;
mod operation;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{Device, Domain, Error, Job, Memory, Pe, RegionId, Result, Transport};

use crate::inbox::Mailbox;
use crate::kinds::Kind;

const NAME: &str = "tiny";

/// The "network": what all domains of one [`Tiny`] share.
#[derive(Debug)]
struct Table {
    kind: &'static Kind,
    board: Mutex<Board>,
    /// What NICs' atomics exclude each other by.
    nic: Mutex<()>,
}

/// What domains can look up. Numbers are never given twice.
#[derive(Debug, Default)]
struct Board {
    next: u64,
    regions: HashMap<u64, (Pe, RegionId, Memory)>,
    endpoints: HashMap<u64, Endpoint>,
    refusals: HashSet<(Step, Pe, RegionId)>,
}

/// One side of a connection.
#[derive(Debug)]
struct Endpoint {
    of: Pe,
    /// The PE that it is meant for.
    towards: Pe,
    /// Of the PE whose it is.
    mailbox: Arc<Mailbox>,
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
#[derive(Clone, Debug)]
pub struct Tiny {
    table: Arc<Table>,
}

/// What can be refused: see [`Tiny::refuse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Registering a region of the PE's own.
    Register,
    /// Importing a region of a peer.
    Import,
}

impl Default for Tiny {
    /// Its atomics are the CPU's, and what is complete is placed.
    fn default() -> Self {
        Tiny::of(&kinds::PLAIN)
    }
}

impl Tiny {
    /// One that behaves as NICs do: its atomics are exclusive among each other, not against CPUs'; what
    /// is complete is done later; registering memory pins it.
    #[must_use]
    pub fn nic() -> Self {
        Tiny::of(&kinds::NICS)
    }

    fn of(kind: &'static Kind) -> Self {
        let (board, nic) = (Mutex::default(), Mutex::default());
        let table = Arc::new(Table { kind, board, nic });
        Tiny { table }
    }

    /// How many endpoints there are, on both sides of connections: for tests of who connects when.
    #[must_use]
    pub fn endpoints(&self) -> usize {
        lock(&self.table.board).endpoints.len()
    }

    /// Has a PE fail at a step with regions of this number, until this is called again without `on`:
    /// for tests of what then becomes of the job.
    pub fn refuse(&self, step: Step, pe: Pe, region: RegionId, on: bool) {
        let refusals = &mut lock(&self.table.board).refusals;
        match on {
            true => refusals.insert((step, pe, region)),
            false => refusals.remove(&(step, pe, region)),
        };
    }
}

// SAFETY: nothing here is mapped. A lane touches local memory only in `post` and in `progress`, for
// operations it has queued: it counts one as completed after that, and drops the queue with the lane or
// the PE. What it does later it has copied.
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
        let (table, job) = (self.table.clone(), job.clone());
        Ok(Arc::new(domain::TinyDomain::new(table, job)))
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

/// Whose message it is, and what takes the answer to it.
#[derive(Clone, Debug)]
struct Sender {
    pe: Pe,
    /// Of its domain.
    shared: Arc<Mutex<Shared>>,
    /// Whether its lane lives.
    open: Arc<Mutex<bool>>,
}

impl Sender {
    /// Writes an answer, unless its lane is gone or has given the answering PE up.
    fn takes_answers_of(&self, pe: Pe, write: impl FnOnce()) {
        let open = lock(&self.open);
        let shared = lock(&self.shared);
        if *open && !shared.lost.contains(&pe) {
            write();
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
