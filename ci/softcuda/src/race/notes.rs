//! The detector's notes: those of this process, or those that all processes of a job share.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, OnceLock};

use super::arena::{self, Arena};
use super::clock::{Clock, join};
use super::meeting;
use super::names::Numbers;
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

/// A process of the job, as a thread that waits for its GPU's work, and gives it work.
#[derive(Default)]
pub(super) struct Host {
    /// Its name in reports; empty if it is alone.
    pub(super) name: String,
    pub(super) clock: Arc<Clock>,
    /// Knowledge that other hosts may have of it: all that it knew at its last call.
    told: Arc<Clock>,
    /// Knowledge that others' kernels may have of it: what kernels have told it to pass on, what was before unseen work, and what it
    /// knew when it wrote to GPU memory itself.
    passed: Arc<Clock>,
    /// The number of the last meeting of all that it has come to, and what it knew there and at the one before.
    meeting: u64,
    said: [Arc<Clock>; 2],
    /// Whether it is there: the library may still end work in that call, which the others then know of.
    meets: bool,
}

impl Host {
    /// Hears of something. If it tells others at once, they may have heard of it.
    pub(super) fn hears(&mut self, clock: &Arc<Clock>, tells: bool) {
        join(&mut self.clock, clock);
        if tells {
            join(&mut self.told, clock);
        }
        if tells && self.meets {
            join(&mut self.said[(self.meeting % 2) as usize], clock);
        }
    }

    /// Leaves a meeting.
    pub(super) fn leaves(&mut self) {
        self.meets = false;
    }

    /// Tells other hosts what it knows, at a meeting or not; and their kernels, if it writes to GPU memory.
    pub(super) fn tells(&mut self, on_gpu: bool, meeting: u64) {
        let clock = keep(&self.clock);
        join(&mut self.told, &clock);
        if on_gpu {
            join(&mut self.passed, &clock);
        }
        if meeting != 0 {
            self.meeting = meeting;
            self.meets = true;
            self.said[(meeting % 2) as usize] = clock;
        }
    }

    /// Others may hear of this.
    pub(super) fn passes(&mut self, clock: &Arc<Clock>) {
        join(&mut self.passed, clock);
    }
}

/// The notes.
pub(super) struct Notes {
    pub(super) shadow: Shadow,
    /// By a byte's name: what atomic stores have published there.
    pub(super) published: ByAddress<Vec<Released>>,
    /// By their numbers.
    pub(super) hosts: Vec<Host>,
    /// The number of changes of their clocks.
    pub(super) changes: u64,
    /// By a strand's number: the number of its process.
    pub(super) strands: Vec<usize>,
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
        self.hosts.push(Host {
            name: name.to_owned(),
            ..Host::default()
        });
        self.hosts.len() - 1
    }

    /// The name of a byte of this process.
    pub(super) fn byte(&mut self, at: usize) -> usize {
        match &mut self.numbers {
            None => at,
            Some(numbers) => numbers.byte(me(), at),
        }
    }

    /// The name of a place in this process's code.
    pub(super) fn code(&mut self, pc: usize) -> usize {
        match &mut self.numbers {
            None => pc,
            Some(numbers) => numbers.code(pc),
        }
    }

    /// This process.
    pub(super) fn host(&mut self) -> &mut Host {
        self.changes += 1;
        &mut self.hosts[me()]
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
        self.joined(|host| [&host.told, &host.passed])
    }

    /// All that the others have said at a meeting.
    pub(super) fn said_at(&self, meeting: u64) -> Option<Arc<Clock>> {
        let came = |host: &Host| host.meeting >= meeting;
        // One that has come to no meeting since it looks for races has said nothing at one.
        static NOTHING: LazyLock<Arc<Clock>> = LazyLock::new(Arc::default);
        self.joined(|host| match came(host) {
            true => [&host.said[(meeting % 2) as usize], &host.passed],
            false => [&*NOTHING, &host.passed],
        })
    }

    /// All that hosts may have passed on to kernels: this one, too, which moves data for others.
    pub(super) fn passed(&self) -> Arc<Clock> {
        static LAST: Mutex<(u64, Option<Arc<Clock>>)> = Mutex::new((0, None));
        arena::inside(false, || {
            let mut last = lock(&LAST);
            if last.1.is_none() || last.0 != self.changes {
                let mut all = Arc::default();
                self.hosts
                    .iter()
                    .for_each(|host| join(&mut all, &host.passed));
                *last = (self.changes, Some(all));
            }
            last.1.clone().unwrap_or_default()
        })
    }

    /// Some clocks of all other processes in one, which is this process's own.
    fn joined<'n, const N: usize>(
        &'n self,
        of: impl Fn(&'n Host) -> [&'n Arc<Clock>; N],
    ) -> Option<Arc<Clock>> {
        if self.hosts.len() < 2 {
            return None;
        }
        arena::inside(false, || {
            let mut all = Arc::default();
            for clock in self.others().flat_map(of) {
                join(&mut all, clock);
            }
            Some(all)
        })
    }
}

/// A clock for the notes.
pub(super) fn keep(clock: &Arc<Clock>) -> Arc<Clock> {
    match arena::is_inside() {
        true => Arc::new(Clock::clone(clock)),
        false => Arc::clone(clock),
    }
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
