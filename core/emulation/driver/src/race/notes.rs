//! The detector's notes: those of this process, or those that all processes of a job share.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, OnceLock};

use super::arena::{self, Arena};
use super::clock::{Agent, Clock, join};
use super::known::Host;
use super::meeting;
use super::names::Numbers;
use super::pending::{Completes, Pending};
use super::scope::Scope;
use super::shadow::{ByAddress, Shadow};
use super::thread::Released;
use crate::kernel::shape::Shape;
use crate::sync::lock;

/// Whether races are looked for: a checked image was loaded, and no process has left the shared notes half changed.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// A kernel that was launched.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) shape: Shape,
}

/// The notes.
pub(super) struct Notes {
    pub(super) shadow: Shadow,
    /// By a byte's name: what atomic stores have published there.
    pub(super) published: ByAddress<Vec<Released>>,
    /// By their numbers.
    pub(super) hosts: Vec<Host>,
    /// The number of times that what one of them passes on may have changed.
    pub(super) changes: u64,
    /// By a strand's number: the number of its process.
    pub(super) strands: Vec<usize>,
    pub(super) pending: Pending,
    /// By strand and piece.
    pub(super) launches: HashMap<(u32, u32), Launch>,
    /// The number of times that memory was forgotten.
    pub(super) forgets: u64,
    /// The places of races that were told.
    pub(super) told: HashSet<(usize, usize, usize)>,
    /// Names, where several processes share these notes.
    pub(super) numbers: Option<Numbers>,
}

/// Room in maps from the start: an empty one may point to a variable of the process that has made it.
const ROOM: usize = 64;

impl Notes {
    fn new() -> Notes {
        Notes {
            shadow: Shadow::with_capacity(ROOM),
            published: ByAddress::with_capacity_and_hasher(ROOM, Default::default()),
            hosts: Vec::new(),
            changes: 0,
            strands: Vec::new(),
            pending: Pending::default(),
            launches: HashMap::with_capacity(ROOM),
            forgets: 0,
            told: HashSet::with_capacity(ROOM),
            numbers: None,
        }
    }

    fn alone() -> Notes {
        let mut notes = Notes::new();
        notes.add_host("");
        notes
    }

    fn shared() -> Notes {
        let mut notes = Notes::new();
        notes.numbers = Some(Numbers::default());
        notes
    }

    fn add_host(&mut self, name: &str) -> usize {
        self.hosts.push(Host::new(name));
        self.hosts.len() - 1
    }

    /// The name of a byte of this process.
    pub(super) fn byte(&mut self, at: usize) -> usize {
        self.bytes(at, 1).0
    }

    /// The name of the first of some bytes of this process, and how many of them have names that follow it.
    pub(super) fn bytes(&mut self, at: usize, length: usize) -> (usize, usize) {
        match &mut self.numbers {
            None => (at, length),
            Some(numbers) => numbers.bytes(me(), at, length),
        }
    }

    /// The name of a place in this process's code.
    pub(super) fn code(&mut self, pc: usize) -> usize {
        match &mut self.numbers {
            None => pc,
            Some(numbers) => numbers.code(pc),
        }
    }

    /// Adds to a clock of this process what a call completes behind what the clock has.
    pub(super) fn complete(&self, clock: &mut Clock, by: Completes) {
        let is_own = |strand: u32| self.strands.get(strand as usize) == Some(&me());
        self.pending.complete(clock, by, is_own);
    }

    /// This process.
    pub(super) fn host(&mut self) -> &mut Host {
        self.changes += 1;
        &mut self.hosts[me()]
    }

    /// All that this process's host knows, and has done.
    pub(super) fn known(&mut self) -> &Arc<Clock> {
        self.hosts[me()].now()
    }

    /// All that it knows, and what it may have heard from kernels whose requests it carries out.
    pub(super) fn known_and_passed(&mut self) -> Arc<Clock> {
        self.known();
        let host = &self.hosts[me()];
        joined([host.clock(), &host.passed].into_iter())
    }

    /// The number of a new strand of this process.
    pub(super) fn new_strand(&mut self) -> u32 {
        self.strands.push(me());
        (self.strands.len() - 1) as u32
    }

    /// This process's host as a thread.
    pub(super) fn host_agent(&mut self) -> Agent {
        let known = self.hosts[me()].agent();
        known.unwrap_or_else(|| {
            let strand = self.new_strand();
            self.host().becomes(strand)
        })
    }

    /// The other processes.
    fn others(&self) -> impl Iterator<Item = &Host> {
        let numbered = self.hosts.iter().enumerate();
        numbered
            .filter(|(number, _)| *number != me())
            .map(|(_, host)| host)
    }

    /// All that the others may have told; none if there is no other.
    pub(super) fn told_by_others(&self) -> Option<Arc<Clock>> {
        let clocks = self.others().flat_map(|host| [&host.told, &host.passed]);
        (self.hosts.len() > 1).then(|| joined(clocks))
    }

    /// All that the others have said at a meeting.
    pub(super) fn said_at(&self, meeting: u64) -> Option<Arc<Clock>> {
        // One that has come to no meeting since it looks for races has said nothing at one.
        let came = self.others().filter(|host| host.meeting >= meeting);
        let said = came.map(|host| &host.said[(meeting % 2) as usize]);
        let clocks = said.chain(self.others().map(|host| &host.passed));
        (self.hosts.len() > 1).then(|| joined(clocks))
    }

    /// All that kernels have published for the whole system, in whatever word, and their writes of these words.
    pub(super) fn published_to_all(&self) -> Arc<Clock> {
        let to_all = |released: &&Released| released.by.scope == Scope::System;
        let releases = self.published.values().flatten().filter(to_all);
        let mut all = joined(releases.map(|one| &one.clock));
        let words = self.published.keys();
        let writes = words.flat_map(|name| self.shadow.system_writes(*name));
        arena::inside(false, || {
            let writes = writes.map(|stamp| (stamp.agent, stamp.epoch));
            Arc::make_mut(&mut all).add_all(writes.collect());
        });
        all
    }

    /// All that hosts may have passed on to kernels: this one, too, which moves data for others.
    pub(super) fn passed(&self) -> Arc<Clock> {
        static LAST: Mutex<(u64, Option<Arc<Clock>>)> = Mutex::new((0, None));
        let mut last = lock(&LAST);
        match &last.1 {
            Some(clock) if last.0 == self.changes => Arc::clone(clock),
            _ => {
                let all = joined(self.hosts.iter().map(|host| &host.passed));
                *last = (self.changes, Some(Arc::clone(&all)));
                all
            }
        }
    }
}

/// Some clocks in one, which is this process's own.
fn joined<'n>(clocks: impl Iterator<Item = &'n Arc<Clock>>) -> Arc<Clock> {
    arena::inside(false, || {
        let mut all = Arc::default();
        clocks.for_each(|clock| join(&mut all, clock));
        all
    })
}

/// A clock of the notes for this process alone.
pub(super) fn take(clock: &Arc<Clock>) -> Arc<Clock> {
    match arena::is_inside() {
        true => arena::inside(false, || Arc::new(Clock::clone(clock))),
        false => Arc::clone(clock),
    }
}

static ALONE: LazyLock<Mutex<Notes>> = LazyLock::new(|| Mutex::new(Notes::alone()));
static SHARED: OnceLock<Option<Arena>> = OnceLock::new();
static ME: AtomicUsize = AtomicUsize::new(0);

/// Whether this process belongs to a job whose processes share their notes.
pub(super) fn has_job() -> bool {
    meeting::job().is_some()
}

/// The number of this process.
pub(super) fn me() -> usize {
    ME.load(Ordering::Relaxed)
}

/// Has races looked for from here on.
pub(super) fn activate() {
    ACTIVE.store(true, Ordering::Release);
}

pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Joins the other processes of the job, if there is one, before anything is noted.
pub(super) fn join_job() {
    SHARED.get_or_init(|| {
        let job = meeting::job()?;
        let met = meeting::meet(&job, Notes::shared);
        let arena = met.inspect_err(|error| {
            eprintln!(
                "softcuda: races with the other processes of this job are not looked for: {error}"
            );
        });
        let arena = arena.ok()?;
        let name = name();
        let notes = arena.lock::<Notes>()?;
        let mut notes = Held::Shared(arena, notes);
        ME.store(notes.add_host(&name), Ordering::Relaxed);
        // It may have heard of the others before it looked for races.
        if let Some(heard) = notes.told_by_others() {
            notes.host().hears(&heard, false);
        }
        drop(notes);
        Some(arena)
    });
}

/// The name of this process in reports.
fn name() -> String {
    let ranks = [
        "OXSHMEM_RANK",
        "PMIX_RANK",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "SLURM_PROCID",
    ];
    let rank = ranks.into_iter().find_map(|name| std::env::var(name).ok());
    rank.map_or_else(
        || format!("process {}", std::process::id()),
        |rank| format!("PE {rank}"),
    )
}

/// The notes, locked.
pub(super) enum Held {
    Alone(MutexGuard<'static, Notes>),
    Shared(Arena, *mut Notes),
}

/// Locks the notes.
pub(super) fn notes() -> Held {
    if let Some(Some(arena)) = SHARED.get() {
        if let Some(notes) = arena.lock() {
            return Held::Shared(*arena, notes);
        }
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            eprintln!(
                "softcuda: a process of this job ended while it noted an access: races are not looked for any more"
            );
        });
        ME.store(0, Ordering::Relaxed);
        ACTIVE.store(false, Ordering::Release);
    }
    Held::Alone(lock(&ALONE))
}

impl Deref for Held {
    type Target = Notes;
    fn deref(&self) -> &Notes {
        match self {
            Held::Alone(notes) => notes,
            // SAFETY: this thread has the lock of the notes as long as this lives.
            Held::Shared(_, notes) => unsafe { &**notes },
        }
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Notes {
        match self {
            Held::Alone(notes) => notes,
            // SAFETY: as above.
            Held::Shared(_, notes) => unsafe { &mut **notes },
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Held::Shared(arena, _) = self {
            arena.unlock();
        }
    }
}
