//! The one PE that this process is.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use bytemuck::Pod;
use oxshmem::{Addresses, Context, Sym, World};

use crate::active_sets::Sets;
use crate::contexts::CtxEntry;
use crate::failure::{self, Done, Failure, or_end};
use crate::handles::{CONTEXTS, Ctx, Table, Team};
use crate::inline;
use crate::teams::{self, TeamEntry};
use crate::threads::{Thread, Threads};

/// This PE, while the library is initialized.
pub(crate) struct Library {
    pub addresses: Addresses,
    /// Before the teams, and these before the world, to which they belong.
    pub contexts: Table<CtxEntry>,
    pub teams: Table<TeamEntry>,
    /// The teams of active sets, by their arguments.
    pub active_sets: Sets,
    /// The thread level.
    pub level: c_int,
    /// Whether on each PE one thread at a time makes calls.
    pub is_each_alone: bool,
    /// Who has initialized.
    maker: Thread,
    /// Whether there is something to drive.
    pub uses_lanes: bool,
    /// Where several threads make calls at once. Before the world, too.
    threads: OnceLock<Threads>,
    pub world: World,
}

static LIBRARY: AtomicPtr<Library> = AtomicPtr::new(null_mut());

/// The same where one thread at a time makes calls: what needs no lock finds it here.
static ALONE: AtomicPtr<Library> = AtomicPtr::new(null_mut());

// SAFETY: a world, and what belongs to it, moves between threads. Below SHMEM_THREAD_MULTIPLE the program sees to it that
// one thread at a time is in a call. At that level the world is used in turns (`alone`), but for what only reads what
// stays as it is: numbers, addresses, objects, and the making of contexts. Contexts are used by who has them
// (`contexts`, `threads`), and teams have no context of their own.
unsafe impl Sync for Library {}

/// The library, if it is initialized.
#[inline(always)]
pub(crate) fn get() -> Done<&'static Library> {
    // SAFETY: `set` was given it for good, until `take`, after which no call may be made; the pointer is never
    // freed while a call runs: who finalizes does so when no other thread is in a call.
    unsafe { LIBRARY.load(Ordering::Acquire).as_ref() }.ok_or(Failure::NotInitialized)
}

/// Initializes, with what several threads need if they make calls at once.
pub(crate) fn set(library: Library, shared: bool) -> Done<&'static Library> {
    let library = Box::into_raw(Box::new(library));
    // SAFETY: nothing frees it before `take`.
    let shown = unsafe { &*library };
    if shared {
        let threads = Threads::new(shown).inspect_err(|_| {
            // SAFETY: it was made above, and nothing refers to it any more.
            drop(unsafe { Box::from_raw(library) });
        })?;
        // Nobody else has set it.
        let _ = shown.threads.set(threads);
    } else {
        ALONE.store(library, Ordering::Release);
        inline::allow(shown);
    }
    LIBRARY.store(library, Ordering::Release);
    if shown.uses_lanes {
        shown.world.drive_in_waits(drive);
    }
    Ok(shown)
}

/// What waits do beside driving their own contexts.
fn drive() {
    if let Ok(library) = get() {
        library.drive();
    }
}

/// Ends the library's life: nothing of it is used any more.
pub(crate) fn take() -> Option<Box<Library>> {
    inline::forbid();
    ALONE.store(null_mut(), Ordering::Release);
    let library = LIBRARY.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: `set` made it of a box, and it is not to be found any more.
    (!library.is_null()).then(|| unsafe { Box::from_raw(library) })
}

/// A PE's number as the library takes it: one below 0 is none.
#[inline(always)]
pub(crate) fn number(pe: i32) -> usize {
    pe as isize as usize
}

/// A context that this thread can use as it is.
#[inline(always)]
pub(crate) fn unlocked(ctx: Ctx) -> Option<(&'static Library, &'static Context<'static>)> {
    match ctx {
        Ctx::DEFAULT => {
            // SAFETY: as in `get`.
            let library = unsafe { ALONE.load(Ordering::Acquire).as_ref() }?;
            Some((library, &library.world))
        }
        _ => {
            let library = get().ok()?;
            Some((library, library.contexts.get(ctx.0)?.own()?))
        }
    }
}

/// Does all that there is to a call which is more than an instruction or two, apart: so that the straight way has neither
/// a message's room nor its arguments in its way.
#[inline(never)]
pub(crate) fn apart<R>(all: impl FnOnce() -> R) -> R {
    all()
}

/// Does what is seldom to be done, apart from what mostly is.
#[cold]
#[inline(never)]
pub(crate) fn seldom<R>(all: impl FnOnce() -> R) -> R {
    all()
}

/// Does something on a context that threads share, when no other uses it; if there is no such context the job ends.
#[cold]
#[inline(never)]
pub(crate) fn locked<R>(
    call: &'static str,
    ctx: Ctx,
    act: impl FnOnce(&'static Library, &Context<'static>) -> R,
) -> R {
    let library = or_end(call, get());
    let shared = match ctx {
        Ctx::DEFAULT => library.threads().map(|threads| &threads.default),
        _ => library.contexts.get(ctx.0).and_then(CtxEntry::shared),
    };
    match shared {
        Some(shared) => act(library, &shared.lock()),
        None => failure::end(
            call,
            Failure::argument("ctx", "this is no context, or was destroyed"),
        ),
    }
}

/// Gives what something on a context gives, or ends the job where that fails, or there is no such context. On the fast path
/// what a lock is needed for is out of the way, and so is what fails. Who fails has no lock any more.
macro_rules! on {
    ($call:expr, $ctx:expr, |$library:ident, $context:ident| $body:expr) => {
        match $crate::library::unlocked($ctx) {
            Some(($library, $context)) => $crate::failure::given_or_end($call, $body),
            // By value, so that what is given need not lie in memory before.
            None => $crate::failure::given_or_end(
                $call,
                $crate::library::locked($call, $ctx, move |$library, $context| $body),
            ),
        }
    };
}
pub(crate) use on;

/// Gives what a call gives the straight way: where the context needs no lock, the object is easily found, and what is done
/// with it gives something. Else finds the object and does all that there is to the call, [`apart`] and by [`on!`].
macro_rules! straight {
    ($call:expr, $ctx:expr, |$library:ident, $context:ident, $object:ident| {
        $easily:expr => $straight:expr,
        $found:expr => $body:expr,
    }) => {
        if let Some(($library, $context)) = $crate::library::unlocked($ctx)
            && let Some($object) = $easily
            && let Some(given) = $straight
        {
            given
        } else {
            $crate::library::apart(move || {
                $crate::library::on!($call, $ctx, |$library, $context| {
                    let $object = $found;
                    $body
                })
            })
        }
    };
}
pub(crate) use straight;

impl Library {
    pub(crate) fn new(world: World, level: c_int, is_each_alone: bool) -> Self {
        Library {
            addresses: world.addresses(),
            contexts: Table::new(CONTEXTS),
            teams: teams::table(&world),
            active_sets: Sets::new(),
            level,
            is_each_alone,
            maker: Thread::current_and_watched(),
            uses_lanes: world.uses_lanes(),
            threads: OnceLock::new(),
            world,
        }
    }

    /// An object that may be one word, if it is easily found.
    #[inline(always)]
    pub(crate) fn word_of<T: Pod>(&self, address: *const T, len: usize) -> Option<Sym<T>> {
        let most = size_of::<u64>() / size_of::<T>().max(1);
        match len <= most {
            true => self.addresses.object(address, len),
            false => None,
        }
    }

    /// A word for atomics, or the job's end.
    #[inline(always)]
    pub(crate) fn word_or_end<T: Pod>(
        &self,
        call: &'static str,
        name: &'static str,
        address: *const T,
    ) -> Sym<T> {
        match self.addresses.word(address) {
            Some(word) => word,
            None => self.block_or_end(call, name, address, 1),
        }
    }

    #[cold]
    #[inline(never)]
    fn block_or_end<T: Pod>(
        &self,
        call: &'static str,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Sym<T> {
        or_end(call, self.block_of(name, address, len))
    }

    /// What calls need that several threads make at once, if they may.
    pub(crate) fn threads(&self) -> Option<&Threads> {
        self.threads.get()
    }

    /// Has what was issued on the default context be complete, where that is not the world's own.
    pub(crate) fn complete(&self) -> Done {
        match self.threads() {
            None => Ok(()),
            Some(threads) => Ok(threads.default.lock().quiet()?),
        }
    }

    /// The same of all contexts that this thread may use, of which other threads end none meanwhile.
    pub(crate) fn complete_all(&self) -> Done {
        self.complete()?;
        let several = self.threads().is_some();
        Ok(self.contexts.try_each(|entry| entry.complete(several))?)
    }

    /// Whether this thread has initialized, or one that is no more, and so in no call.
    pub(crate) fn is_of_this_thread_or_one_that_ended(&self) -> bool {
        self.maker == Thread::current() || self.maker.has_ended()
    }

    /// Does what concerns all PEs.
    #[inline]
    pub(crate) fn alone<R>(&'static self, act: impl FnOnce(&'static World) -> R) -> R {
        let _turn = self.threads().map(Threads::turn);
        act(&self.world)
    }

    /// Does what may wait, on a context that no other thread uses meanwhile.
    #[inline]
    pub(crate) fn apart<R>(&'static self, act: impl FnOnce(&Context<'static>) -> R) -> Done<R> {
        match self.threads() {
            None => Ok(act(&self.world)),
            Some(threads) => threads.apart(self, act),
        }
    }

    /// [`apart`](Self::apart) of what ends the job if it fails; by then this thread has nothing that others wait for.
    #[inline(always)]
    pub(crate) fn apart_or_end(
        &'static self,
        call: &'static str,
        act: impl FnOnce(&Context<'static>) -> Done,
    ) {
        match self.threads() {
            None => or_end(call, act(&self.world)),
            Some(threads) => or_end(call, threads.apart(self, act).and_then(|done| done)),
        }
    }

    /// Waits until `look` gives something.
    #[inline]
    pub(crate) fn wait<R>(
        &self,
        call: &'static str,
        what: &dyn Fn() -> String,
        look: impl FnMut() -> Option<R>,
    ) -> Done<R> {
        Ok(match self.threads() {
            None => self.world.wait_for(call, what, look),
            Some(threads) => threads.default.wait_for(call, what, look),
        }?)
    }

    /// Drives what is under way, then looks once.
    #[inline]
    pub(crate) fn look_once<R>(&self, look: impl FnOnce() -> R) -> Done<R> {
        Ok(match self.threads() {
            None => self.world.look_once(look),
            Some(threads) => threads.default.look_once(look),
        }?)
    }

    /// Drives what was issued on contexts that this thread may use: all do while one waits. It waits for no lock: who has
    /// the contexts, or one, may be in a wait that does this.
    fn drive(&self) {
        let threads = self.threads();
        let several = threads.is_some();
        self.contexts.each_if_free(|entry| entry.drive(several));
        if let Some(threads) = threads {
            threads.drive(self);
        }
    }

    /// Ends what several threads needed.
    pub(crate) fn end_threads(&mut self) -> Done {
        self.threads.take().map_or(Ok(()), Threads::end)
    }

    /// A team, by its handle.
    #[inline]
    pub(crate) fn team(&self, team: Team) -> Done<&TeamEntry> {
        self.teams
            .get(team.0)
            .ok_or_else(|| Failure::argument("team", "this is no team, or was destroyed"))
    }

    /// The symmetric object of `len` elements at an address.
    #[inline(always)]
    pub(crate) fn object<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Done<Sym<T>> {
        match self.addresses.object(address, len) {
            Some(object) => Ok(object),
            None => self.block_of(name, address, len),
        }
    }

    /// A word for atomics.
    #[inline(always)]
    pub(crate) fn word<T: Pod>(&self, name: &'static str, address: *const T) -> Done<Sym<T>> {
        match self.addresses.word(address) {
            Some(word) => Ok(word),
            None => self.block_of(name, address, 1),
        }
    }

    /// The bytes of an object that is not easily found: for puts and gets, whose place need be aligned only where checks are
    /// on (M38).
    pub(crate) fn bytes<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Done<Sym<u8>> {
        match self.takes_bytes_at(address) {
            true => {
                let bytes = len.saturating_mul(size_of::<T>());
                self.block_of(name, address.cast::<u8>(), bytes)
            }
            false => self.block_of(name, address, len).map(Sym::to_bytes),
        }
    }

    /// Whether a place has no elements but bytes, which puts and gets copy.
    pub(crate) fn takes_bytes_at<T>(&self, address: *const T) -> bool {
        !address.is_aligned() && !self.world.is_checked()
    }

    /// An object, which lies in one live block.
    #[cold]
    #[inline(never)]
    pub(crate) fn block_of<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Done<Sym<T>> {
        if len > 0 && address.is_null() {
            return Err(Failure::null(name));
        }
        let object = match len {
            0 => self.world.object_at(name, std::ptr::null(), 0),
            _ => self.world.object_at(name, address, len),
        };
        object.map_err(|error| Failure::of(name, error))
    }
}

/// Refuses null for `len` elements of the program's own memory. Puts and gets look where checks are on: else this would cost
/// an instruction.
pub(crate) fn given<T>(name: &'static str, address: *const T, len: usize) -> Done {
    match address.is_null() && len > 0 {
        true => Err(Failure::argument(
            name,
            "this is null; give the address of as many elements as the call says",
        )),
        false => Ok(()),
    }
}
