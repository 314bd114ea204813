//! The one PE that this process is: its world, and the objects that handles name.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use oxshmem::{Context, World, bindings};

use crate::entries::{ActiveSets, CtxEntry, TeamEntry, team_table};
use crate::failure::{self, CResult, Failure, or_abort_job};
use crate::handles::{CONTEXTS, Table, Team};
use crate::thread::Thread;
use crate::threads::Threads;

/// This PE, while the library is initialized.
pub(crate) struct Library {
    pub addresses: bindings::Addresses,
    /// Dropped before the teams, and these before the world, to which they belong.
    pub contexts: Table<CtxEntry>,
    pub teams: Table<TeamEntry>,
    /// The teams of active sets, by their arguments.
    pub active_sets: ActiveSets,
    /// The thread level.
    pub level: c_int,
    /// Whether on each PE one thread at a time makes calls.
    pub is_each_alone: bool,
    /// The thread that initialized.
    initializer: Thread,
    /// Whether operations may be in flight that need progress.
    pub uses_lanes: bool,
    /// Present where several threads make calls at once. Dropped before the world, too.
    threads: OnceLock<Threads>,
    pub world: World,
}

static LIBRARY: AtomicPtr<Library> = AtomicPtr::new(null_mut());

/// The same where one thread at a time makes calls: calls that need no lock find it here.
static UNSHARED: AtomicPtr<Library> = AtomicPtr::new(null_mut());

// SAFETY: a world, and its contexts and teams, move between threads. Below SHMEM_THREAD_MULTIPLE the program sees to it that
// one thread at a time is in a call. At that level threads use the world in turns (`with_world`), except for reads of
// what never changes: numbers, addresses, objects, and the making of contexts. Each context is used by its holder alone
// (`entries`, `threads`), and teams have no context of their own.
unsafe impl Sync for Library {}

/// The library, if it is initialized.
#[inline(always)]
pub(crate) fn get() -> CResult<&'static Library> {
    // SAFETY: `set` leaked it, until `take`, after which no call may be made; the pointer is never
    // freed while a call runs: the thread that finalizes does so when no other thread is in a call.
    unsafe { LIBRARY.load(Ordering::Acquire).as_ref() }.ok_or(Failure::NotInitialized)
}

/// The library, where one thread at a time makes calls.
#[inline(always)]
pub(crate) fn unshared() -> Option<&'static Library> {
    // SAFETY: as in `get`.
    unsafe { UNSHARED.load(Ordering::Acquire).as_ref() }
}

fn world() -> Option<&'static World> {
    get().ok().map(|library| &library.world)
}

/// Initializes, with the state for several threads if they make calls at once.
pub(crate) fn set(library: Library, shared: bool) -> CResult<&'static Library> {
    let library = Box::into_raw(Box::new(library));
    // SAFETY: nothing frees it before `take`.
    let shown = unsafe { &*library };
    if shared {
        let threads = Threads::new(&shown.world).inspect_err(|_| {
            // SAFETY: it was made above, and nothing refers to it any more.
            drop(unsafe { Box::from_raw(library) });
        })?;
        // Nobody else has set it.
        let _ = shown.threads.set(threads);
    } else {
        UNSHARED.store(library, Ordering::Release);
    }
    LIBRARY.store(library, Ordering::Release);
    failure::find_world_by(world);
    if shown.uses_lanes {
        bindings::drive_in_waits(&shown.world, progress);
    }
    Ok(shown)
}

/// The progress that waits make beside that on their own contexts.
fn progress() {
    if let Ok(library) = get() {
        library.progress();
    }
}

/// Ends the library's life: nothing of it is used any more.
pub(crate) fn take() -> Option<Box<Library>> {
    UNSHARED.store(null_mut(), Ordering::Release);
    let library = LIBRARY.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: `set` made it of a box, and it cannot be found any more.
    (!library.is_null()).then(|| unsafe { Box::from_raw(library) })
}

impl Library {
    pub(crate) fn new(world: World, level: c_int, is_each_alone: bool) -> Self {
        Library {
            addresses: bindings::addresses(&world),
            contexts: Table::new(CONTEXTS),
            teams: team_table(&world),
            active_sets: ActiveSets::default(),
            level,
            is_each_alone,
            initializer: Thread::current_and_watched(),
            uses_lanes: bindings::uses_lanes(&world),
            threads: OnceLock::new(),
            world,
        }
    }

    /// The state for calls of several threads at once, if there may be such.
    pub(crate) fn threads(&self) -> Option<&Threads> {
        self.threads.get()
    }

    /// Ends what several threads needed.
    pub(crate) fn end_threads(&mut self) -> CResult {
        self.threads.take().map_or(Ok(()), Threads::end)
    }

    /// Whether this thread has initialized, or one that has ended, and so is in no call.
    pub(crate) fn is_initializer_here_or_ended(&self) -> bool {
        self.initializer == Thread::current() || self.initializer.has_ended()
    }

    /// Completes what was issued on the default context, where that is not the world's own.
    pub(crate) fn quiet_default(&self) -> CResult {
        match self.threads() {
            None => Ok(()),
            Some(threads) => Ok(threads.default.lock().quiet()?),
        }
    }

    /// The same on all contexts that this thread may use, of which other threads destroy none meanwhile.
    pub(crate) fn quiet_all(&self) -> CResult {
        self.quiet_default()?;
        let several = self.threads().is_some();
        Ok(self.contexts.try_each(|entry| entry.quiet(several))?)
    }

    /// Makes progress on the contexts that this thread may use: all of them, while one waits. It waits for no lock: the thread
    /// that holds the contexts, or one, may be in a wait that does this.
    fn progress(&self) {
        let threads = self.threads();
        let several = threads.is_some();
        self.contexts.each_if_free(|entry| entry.progress(several));
        if let Some(threads) = threads {
            threads.progress(&self.world);
        }
    }

    /// Makes a call that concerns all PEs.
    #[inline]
    pub(crate) fn with_world<R>(&'static self, act: impl FnOnce(&'static World) -> R) -> R {
        let _guard = self.threads().map(Threads::begin_world_call);
        act(&self.world)
    }

    /// Makes a call that may wait, on a context that no other thread uses meanwhile.
    #[inline]
    pub(crate) fn with_own_context<R>(
        &'static self,
        act: impl FnOnce(&Context<'static>) -> R,
    ) -> CResult<R> {
        match self.threads() {
            None => Ok(act(&self.world)),
            Some(threads) => threads.with_own_context(&self.world, act),
        }
    }

    /// [`with_own_context`](Self::with_own_context) for a call that ends the job if it fails; by then this thread holds nothing
    /// that others wait for.
    #[inline(always)]
    pub(crate) fn with_own_context_or_abort(
        &'static self,
        call: &'static str,
        act: impl FnOnce(&Context<'static>) -> CResult,
    ) {
        match self.threads() {
            None => or_abort_job(call, act(&self.world)),
            Some(threads) => or_abort_job(
                call,
                threads
                    .with_own_context(&self.world, act)
                    .and_then(|result| result),
            ),
        }
    }

    /// Waits until `poll` gives something.
    #[inline]
    pub(crate) fn wait<R>(
        &self,
        call: &'static str,
        what: &dyn Fn() -> String,
        poll: impl FnMut() -> Option<R>,
    ) -> CResult<R> {
        Ok(match self.threads() {
            None => bindings::wait_for(&*self.world, call, what, poll),
            Some(threads) => bindings::wait_for(&threads.default, call, what, poll),
        }?)
    }

    /// Makes progress on operations in flight, then polls once.
    #[inline]
    pub(crate) fn poll_once<R>(&self, poll: impl FnOnce() -> R) -> CResult<R> {
        Ok(match self.threads() {
            None => bindings::poll_once(&*self.world, poll),
            Some(threads) => bindings::poll_once(&threads.default, poll),
        }?)
    }

    /// A team, by its handle.
    #[inline]
    pub(crate) fn team(&self, team: Team) -> CResult<&TeamEntry> {
        self.teams
            .get(team.0)
            .ok_or_else(|| Failure::argument("team", "this is no team, or was destroyed"))
    }
}
