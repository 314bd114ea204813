//! A whole transport, as a crate outside oxshmem would write it.
//!
//! PEs are threads of one process. It is a good example because of the features that it lacks: peers are not
//! mapped, a lane holds 8 operations and performs them later, only some atomics exist, long
//! transfers need registered memory, and a lane must be connected with each PE. [`Tiny::nic`] lacks
//! more, as a NIC does. So it shows each decision that a transport for a real network makes, in its
//! simplest form:
//!
//! 1. **Declare** (`kinds.rs`) what you can do ([`Capabilities`]) and which orders you keep ([`Guarantees`]) and
//!    nothing more. A missing capability costs speed, never correctness: oxshmem flushes, splits and
//!    emulates around it. The [conformance suite] checks every claim.
//! 2. **[`Transport`]** (this file) finds devices and opens a **[`Domain`]** (`domain.rs`) for a PE. Its `address`, its
//!    regions' keys and its lanes' endpoints travel to peers as bytes. They come back from peers
//!    you cannot trust: read each as if it were garbage, and answer `BadPeerData`.
//! 3. **[`Lane`]** (`lane.rs`): `post` checks *everything* (`operation.rs`) first, so that an accepted operation can fail
//!    later only with its peer; accepts a prefix; gives `Full` rather than wait. `progress` does a bounded
//!    amount of work. `counters` is all that a caller waits on.
//!    Operations whose effect follows their completion wait in `late.rs`.
//! 4. **[`Inbox`]** (`inbox.rs`): messages in each sender's order, and replies whose number is written after
//!    their value; none once the sender's lane is dropped or the PE is lost to it.
//! 5. **End well**: after `peer_lost` refuse that PE and cancel the operations outstanding to it, after
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
    /// The lock that makes NICs' atomics exclusive against each other.
    nic: Mutex<()>,
}

/// The entries that domains look up. No number is used twice.
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
    /// The mailbox of the PE that made it.
    mailbox: Arc<Mailbox>,
}

impl Board {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Locks. The state that the mutexes here guard is whole whenever one is unlocked, so poison means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transport. All PEs of a job open it on the same one, or on clones.
#[derive(Clone, Debug)]
pub struct Tiny {
    table: Arc<Table>,
}

/// A step that can be refused: see [`Tiny::refuse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Registering a region of the PE's own.
    Register,
    /// Importing a region of a peer.
    Import,
}

impl Default for Tiny {
    /// A transport whose atomics are the CPU's, and whose completed operations are placed.
    fn default() -> Self {
        Tiny::of(&kinds::PLAIN)
    }
}

impl Tiny {
    /// A transport that behaves as NICs do: its atomics are exclusive among each other, not against CPUs'; the effect
    /// of a completed operation may follow later; registration pins memory.
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

    /// Makes a step of a PE fail with regions of this number, until this is called again without `on`: for tests
    /// of how the job ends then.
    pub fn refuse(&self, step: Step, pe: Pe, region: RegionId, on: bool) {
        let refusals = &mut lock(&self.table.board).refusals;
        if on {
            refusals.insert((step, pe, region));
        } else {
            refusals.remove(&(step, pe, region));
        }
    }
}

// SAFETY: nothing here is mapped. A lane touches local memory only in `post` and in `progress`, for
// operations it has queued: it counts one as completed after that, and drops the queue with the lane or
// the PE. The data of delayed operations is copied.
unsafe impl Transport for Tiny {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        let description = "a table in this process, for its threads".into();
        Ok(vec![Device {
            name: "table".into(),
            description,
            megabits: 0,
            networks: Vec::new(),
        }])
    }

    fn open(&self, _: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let (table, job) = (self.table.clone(), job.clone());
        Ok(Arc::new(domain::TinyDomain::new(table, job)))
    }
}

/// The state that a domain and its lanes share.
#[derive(Debug, Default)]
struct Shared {
    closed: bool,
    lost: HashSet<Pe>,
    imported: HashMap<(Pe, RegionId), Memory>,
}

impl Shared {
    fn check_open(&self) -> Result<()> {
        if self.closed {
            return Err(Error::Closed { transport: NAME });
        }
        Ok(())
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
        if self.lost.contains(&pe) {
            return Err(Error::PeerLost {
                transport: NAME,
                pe,
            });
        }
        Ok(())
    }
}

/// The sender of a message, to which the reply goes.
#[derive(Clone, Debug)]
struct Sender {
    pe: Pe,
    /// The state of its domain.
    shared: Arc<Mutex<Shared>>,
    /// Whether its lane lives.
    open: Arc<Mutex<bool>>,
}

impl Sender {
    /// Writes a reply, unless its lane is dropped or the replying PE is lost to it.
    fn take_reply_of(&self, pe: Pe, write: impl FnOnce()) {
        let open = lock(&self.open);
        let shared = lock(&self.shared);
        if *open && !shared.lost.contains(&pe) {
            write();
        }
    }
}

/// Packs a tag and numbers.
fn packed(tag: &[u8; 4], numbers: &[u64]) -> Vec<u8> {
    tag.iter()
        .copied()
        .chain(numbers.iter().flat_map(|number| number.to_le_bytes()))
        .collect()
}

/// Unpacks bytes that [`packed`] made; none for others.
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
