//! The PE that this process is: its world, contexts and teams, and the way in which threads use them.
//!
//! Any number of Python threads make calls. The default context is one that they share: a lock is held for one operation, and by no thread that
//! waits for a word. Calls that concern all PEs use the world's own context, one thread at a time; a thread that finds it in use takes a
//! spare one for a collective call. A call holds the job alive: the end of the world waits for no call, and is refused while one is in progress.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError};

use oxshmem::cuda::Stream;
use oxshmem::{
    Context, ContextOptions, DetachedTeam, LockedContext, SharedContext, Team, World, bindings,
};
use pyo3::prelude::*;

use crate::errors::{Done, Failure};

/// The number of the default context, and of the team of all PEs.
pub(crate) const DEFAULT: u64 = 0;
/// The number of the team of the PEs that share memory.
pub(crate) const SHARED: u64 = 1;

/// A context that threads share, and what its operations in flight need.
pub(crate) struct Entry {
    pub(crate) context: SharedContext<'static>,
    /// Python's owners of buffers that nonblocking operations use. Locked within the context's own lock.
    in_flight: Mutex<Vec<Py<PyAny>>>,
    /// The team whose numbers it uses for PEs.
    pub(crate) team: u64,
}

/// Locks, whatever a thread that panicked has left: each value is whole at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entry {
    fn new(context: Context<'static>, team: u64) -> Arc<Self> {
        Arc::new(Entry {
            context: context.share(),
            in_flight: Mutex::default(),
            team,
        })
    }

    /// The context, for one operation.
    pub(crate) fn lock(&self) -> LockedContext<'_, 'static> {
        self.context.lock()
    }

    /// Issues an operation that uses a buffer until the next quiet.
    pub(crate) fn issue(
        &self,
        owner: Py<PyAny>,
        act: impl FnOnce(&Context<'static>) -> oxshmem::Result<()>,
    ) -> Done {
        let context = self.context.lock();
        // First, and for a failed operation too: a part of it may be in flight.
        lock(&self.in_flight).push(owner);
        Ok(act(&context)?)
    }

    /// Completes what was issued, and gives its buffers up.
    pub(crate) fn quiet(&self) -> Done {
        let context = self.context.lock();
        let used = std::mem::take(&mut *lock(&self.in_flight));
        let done = context.quiet();
        if done.is_err() {
            // They may still be in flight.
            lock(&self.in_flight).extend(used);
        }
        Ok(done?)
    }

    /// Completes and ends it.
    fn destroy(self) -> Done {
        let done = self.context.destroy();
        if done.is_err() {
            std::mem::forget(self.in_flight);
        }
        Ok(done?)
    }
}

/// A team, apart from any context.
pub(crate) struct TeamEntry {
    team: DetachedTeam,
}

/// A world while calls may be made. Contexts are dropped before the teams, and these before the world, to which they belong.
pub(crate) struct Live {
    contexts: RwLock<BTreeMap<u64, Arc<Entry>>>,
    /// The one that most calls use.
    default: Arc<Entry>,
    /// Contexts that no call uses.
    spare: Mutex<Vec<Context<'static>>>,
    teams: RwLock<BTreeMap<u64, Arc<TeamEntry>>>,
    /// The next number of a context or team.
    next: AtomicU64,
    /// Python's owners of buffers that work on a stream uses, by the stream's handle.
    on_streams: Mutex<HashMap<usize, Vec<Py<PyAny>>>>,
    /// The library's own stream.
    pub(crate) own_stream: OnceLock<Stream>,
    /// Held by the thread that uses the world's own context.
    world_call: Mutex<()>,
    world: World,
}

/// The world, which threads share, and its end.
pub(crate) struct State {
    live: RwLock<Option<Live>>,
    /// The world after its end: its memory stays mapped while an array refers to it.
    ended: Mutex<Option<World>>,
}

// SAFETY: a world, its contexts, teams and streams move between threads. Threads use the world's own context in turns (`world_call`), except
// for reads of what never changes: numbers, addresses, and the making of contexts. Each other context is behind its lock, or is in `spare`
// and taken from there by one thread.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

/// The state of the world that this process is a PE of now.
static CURRENT: Mutex<Option<Arc<State>>> = Mutex::new(None);

/// Set in a process that a PE has forked.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_fork() {
    // Its process has one thread.
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process was forked by a PE.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The current state, if no other thread changes it.
pub(crate) fn current() -> Option<Arc<State>> {
    CURRENT.try_lock().ok()?.clone()
}

/// Progress on all contexts, in waits on any of them. It waits for no lock: the thread that holds it may be the one that waits.
fn drive() {
    let Some(state) = current() else { return };
    let Ok(live) = state.live.try_read() else {
        return;
    };
    let Some(live) = live.as_ref() else { return };
    if let Ok(contexts) = live.contexts.try_read() {
        contexts.values().for_each(|entry| entry.context.progress());
    }
    if let Ok(spare) = live.spare.try_lock() {
        spare.iter().for_each(Context::progress);
    }
    if let Ok(_turn) = live.world_call.try_lock() {
        live.world.progress();
    }
}

/// A context or a team whose lifetime is that of a world in a `Live`, which drops it first.
///
/// # Safety
///
/// The result is dropped before the world.
unsafe fn of_world<'a>(world: &World) -> &'a World {
    // SAFETY: the caller's promise; the world's parts that contexts use are boxed or counted, and do not move with it.
    unsafe { &*std::ptr::from_ref(world) }
}

impl Live {
    fn new(world: World) -> Done<Self> {
        // From here on programs store by addresses: each quiet is a full fence.
        let _ = bindings::addresses(&world);
        let (all, shared) = (world.team().detach(), world.shared_team().detach());
        // SAFETY: `Live` drops its contexts before the world.
        let of = unsafe { of_world(&world) };
        let default = Entry::new(of.create_context(ContextOptions::NONE)?, DEFAULT);
        let teams = [(DEFAULT, all), (SHARED, shared)];
        let teams = teams.map(|(number, team)| (number, Arc::new(TeamEntry { team })));
        Ok(Live {
            contexts: RwLock::new(BTreeMap::from([(DEFAULT, Arc::clone(&default))])),
            default,
            spare: Mutex::default(),
            teams: RwLock::new(BTreeMap::from(teams)),
            next: AtomicU64::new(SHARED + 1),
            on_streams: Mutex::default(),
            own_stream: OnceLock::new(),
            world_call: Mutex::default(),
            world,
        })
    }

    /// A context by its number.
    pub(crate) fn context(&self, number: u64) -> Done<Arc<Entry>> {
        if number == DEFAULT {
            return Ok(Arc::clone(&self.default));
        }
        let contexts = self.contexts.read().unwrap_or_else(PoisonError::into_inner);
        let found = contexts.get(&number).cloned();
        found.ok_or_else(|| {
            Failure::Argument(
                "context",
                "this context was destroyed; make another one".into(),
            )
        })
    }

    /// The default context.
    pub(crate) fn default_context(&self) -> &Entry {
        &self.default
    }

    /// A new context of a team.
    pub(crate) fn add_context(&self, team: u64, options: ContextOptions) -> Done<u64> {
        let entry = self.team_entry(team)?;
        // SAFETY: `Live` drops its contexts before the world.
        let world = unsafe { of_world(&self.world) };
        let context = if team == DEFAULT {
            world.create_context(options)?
        } else {
            // SAFETY: a team's contexts are ended before it (`remove_team`), and keep nothing of its memory but its members' numbers,
            // which they count.
            let entry = unsafe { &*std::ptr::from_ref(&*entry) };
            entry.team.create_context(world, options)?
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut contexts = self
            .contexts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.insert(number, Entry::new(context, team));
        Ok(number)
    }

    /// Completes a context and ends it.
    pub(crate) fn remove_context(&self, number: u64) -> Done {
        let mut contexts = self
            .contexts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let taken = contexts.remove(&number).filter(|_| number != DEFAULT);
        let Some(entry) = taken else {
            return Err(Failure::Argument(
                "destroy",
                "this context was destroyed before; destroy each once".into(),
            ));
        };
        match Arc::try_unwrap(entry) {
            Ok(entry) => {
                drop(contexts);
                entry.destroy()
            }
            Err(entry) => {
                contexts.insert(number, entry);
                Err(Failure::Argument(
                    "destroy",
                    "another thread is in a call of this context; wait for that thread first"
                        .into(),
                ))
            }
        }
    }

    fn team_entry(&self, number: u64) -> Done<Arc<TeamEntry>> {
        let teams = self.teams.read().unwrap_or_else(PoisonError::into_inner);
        teams.get(&number).cloned().ok_or_else(|| {
            Failure::Argument("team", "this team was destroyed; split another one".into())
        })
    }

    /// A new team's number.
    pub(crate) fn add_team(&self, team: Team<'_>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(TeamEntry {
            team: team.detach(),
        });
        let mut teams = self.teams.write().unwrap_or_else(PoisonError::into_inner);
        teams.insert(number, entry);
        number
    }

    /// Ends a team and its contexts. Collective over the team.
    pub(crate) fn remove_team(&self, number: u64) -> Done {
        let refuse = |why: &str| Err(Failure::Argument("destroy", why.into()));
        if number <= SHARED {
            return refuse("this team is always there, and ends with the world");
        }
        let of_team: Vec<u64> = {
            let contexts = self.contexts.read().unwrap_or_else(PoisonError::into_inner);
            let of_team = contexts.iter().filter(|(_, entry)| entry.team == number);
            of_team.map(|(context, _)| *context).collect()
        };
        of_team
            .into_iter()
            .try_for_each(|context| self.remove_context(context))?;
        let mut teams = self.teams.write().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = teams.remove(&number) else {
            return refuse("this team was destroyed before; destroy each once");
        };
        match Arc::try_unwrap(entry) {
            Ok(entry) => {
                drop(teams);
                self.with_world(|world| Ok(entry.team.into_team(world)?.destroy()?))
            }
            Err(entry) => {
                teams.insert(number, entry);
                refuse("another thread is in a call of this team; wait for that thread first")
            }
        }
    }

    /// Says that this PE makes no further call of a team, so that the others do not wait for it.
    pub(crate) fn leave_team(&self, number: u64) -> Done {
        let entry = self.team_entry(number)?;
        self.with_context_of_own(|context| Ok(entry.team.leave(context)?))
    }

    /// Does something with a team, on a context that no other thread uses meanwhile.
    pub(crate) fn with_team<R>(
        &self,
        number: u64,
        act: impl FnOnce(&Team<'_>) -> Done<R>,
    ) -> Done<R> {
        let entry = self.team_entry(number)?;
        self.with_context_of_own(|context| act(&*entry.team.attach(context)?))
    }

    /// Does something with a context that no other thread uses meanwhile: the world's own, or a spare one.
    pub(crate) fn with_context_of_own<R>(
        &self,
        act: impl FnOnce(&Context<'_>) -> Done<R>,
    ) -> Done<R> {
        match self.world_call.try_lock() {
            Ok(_turn) => return act(&self.world),
            Err(TryLockError::Poisoned(_turn)) => return act(&self.world),
            Err(TryLockError::WouldBlock) => {}
        }
        let spare = lock(&self.spare).pop();
        let context = match spare {
            Some(context) => context,
            // SAFETY: `Live` drops its contexts before the world.
            None => unsafe { of_world(&self.world) }.create_context(ContextOptions::NONE)?,
        };
        let result = act(&context);
        lock(&self.spare).push(context);
        result
    }

    /// Does something with a team and the world, one thread at a time.
    pub(crate) fn with_team_and_world<R>(
        &self,
        number: u64,
        act: impl FnOnce(&Team<'_>, &World) -> Done<R>,
    ) -> Done<R> {
        let entry = self.team_entry(number)?;
        self.with_world(|world| act(&*entry.team.attach(world)?, world))
    }

    /// Makes a call of the world, one thread at a time.
    pub(crate) fn with_world<R>(&self, act: impl FnOnce(&World) -> Done<R>) -> Done<R> {
        let _turn = lock(&self.world_call);
        act(&self.world)
    }

    /// The world, for reads of what never changes.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Keeps a buffer's owner until the stream is synchronized.
    pub(crate) fn keep_for_stream(&self, stream: usize, owner: Py<PyAny>) {
        lock(&self.on_streams)
            .entry(stream)
            .or_default()
            .push(owner);
    }

    /// Gives up what work on a stream has used.
    pub(crate) fn is_synchronized(&self, stream: usize) {
        let used = lock(&self.on_streams).remove(&stream);
        drop(used);
    }

    /// Ends the contexts, in order. Gives the first error, and the world.
    fn end(self) -> (Done, World) {
        let Live {
            contexts,
            default,
            spare,
            teams,
            own_stream,
            on_streams,
            world,
            ..
        } = self;
        drop(default);
        let mut done = Ok(());
        let contexts = contexts
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        for entry in contexts.into_values() {
            // No call is in progress, so that nobody else has it.
            if let Ok(entry) = Arc::try_unwrap(entry) {
                done = done.and(entry.destroy());
            }
        }
        let spare = spare.into_inner().unwrap_or_else(PoisonError::into_inner);
        for context in spare {
            done = done.and(context.destroy().map_err(Failure::from));
        }
        drop(teams);
        let ended = bindings::finalize_at_exit(&world).map_err(Failure::from);
        if ended.is_err() {
            std::mem::forget(on_streams);
        }
        drop(own_stream);
        (done.and(ended), world)
    }
}

impl State {
    /// Ends the world. Collective. Refused while another thread is in a call.
    pub(crate) fn finalize(&self) -> Done {
        let mut live = match self.live.try_write() {
            Ok(live) => live,
            Err(TryLockError::Poisoned(live)) => live.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Argument(
                    "finalize",
                    "another thread of this process is in a call of the world; join your threads first"
                        .into(),
                ));
            }
        };
        let Some(taken) = live.take() else {
            return Err(Failure::Ended);
        };
        let (done, world) = taken.end();
        *lock(&self.ended) = Some(world);
        forget_current();
        done
    }

    /// Leaves the job without the others, to whom this PE is lost.
    pub(crate) fn abandon(&self) -> Done {
        let Ok(mut live) = self.live.try_write() else {
            // A thread that is in a call keeps the world: the end of the process tells the others.
            return Ok(());
        };
        let Some(Live {
            contexts,
            default,
            spare,
            teams,
            on_streams,
            own_stream,
            world,
            ..
        }) = live.take()
        else {
            return Err(Failure::Ended);
        };
        // Their operations may be in flight, and arrays may refer to the memory: both are kept until the process ends.
        std::mem::forget((contexts, default, spare, teams, on_streams, own_stream));
        drop(world);
        forget_current();
        Ok(())
    }

    /// [`finalize`](Self::finalize) at the end of the process. Gives no answer where another thread is in a call.
    pub(crate) fn finalize_at_exit(&self) -> Option<Done> {
        let mut live = self.live.try_write().ok()?;
        let (done, world) = live.take()?.end();
        // The driver of a GPU may be gone already.
        std::mem::forget(world);
        Some(done)
    }
}

fn forget_current() {
    *lock(&CURRENT) = None;
}

/// A PE and its world.
#[pyclass(frozen, module = "oxshmem._oxshmem")]
pub(crate) struct Job {
    pub(crate) state: Arc<State>,
    /// This PE's number.
    #[pyo3(get)]
    my_pe: usize,
    /// The number of PEs.
    #[pyo3(get)]
    n_pes: usize,
    /// Each PE's host.
    #[pyo3(get)]
    hosts: Vec<String>,
    /// The limit of each PE's heap, in bytes.
    #[pyo3(get)]
    heap_limit: usize,
}

#[pymethods]
impl Job {
    /// Whether calls may be made.
    #[getter]
    fn is_live(&self) -> bool {
        !is_forked()
            && self
                .state
                .live
                .try_read()
                .map_or(true, |live| live.is_some())
    }
}

impl Job {
    /// The job of a world that has just begun.
    pub(crate) fn new(world: World) -> Done<Self> {
        static WATCHES_FORKS: OnceLock<()> = OnceLock::new();
        WATCHES_FORKS.get_or_init(|| {
            // SAFETY: the function stores one atomic. Without memory for it, forks are not seen.
            unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
        });
        let (my_pe, n_pes) = (world.my_pe(), world.n_pes());
        let (hosts, heap_limit) = (world.hosts().to_vec(), world.heap_limit());
        if bindings::uses_lanes(&world) {
            bindings::drive_in_waits(&world, drive);
        }
        let state = Arc::new(State {
            live: RwLock::new(Some(Live::new(world)?)),
            ended: Mutex::default(),
        });
        *lock(&CURRENT) = Some(Arc::clone(&state));
        Ok(Job {
            state,
            my_pe,
            n_pes,
            hosts,
            heap_limit,
        })
    }

    /// Makes a call while other threads of the interpreter run.
    pub(crate) fn run<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Live) -> Done<R> + Send,
    ) -> PyResult<R> {
        let state = &self.state;
        let done = py.detach(|| {
            if is_forked() {
                return Err(Failure::Forked);
            }
            let live = state.live.read().unwrap_or_else(PoisonError::into_inner);
            act(live.as_ref().ok_or(Failure::Ended)?)
        });
        done.map_err(|failure| failure.raise(py))
    }
}
