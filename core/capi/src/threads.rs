//! What calls need that several threads make at once (`SHMEM_THREAD_MULTIPLE`).
//!
//! The world's own context is then that of calls which concern all PEs, such as barriers and allocation, which come
//! one at a time. The default context is another, which threads share by a lock that they have for one operation each.
//! Who waits has no lock: words are looked at without one, and a collective call, or one for a lock, goes by a context
//! that is nobody else's until it returns.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::without_provenance;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use oxshmem::{Context, ContextOptions, SharedContext};

use crate::failure::Done;
use crate::library::Library;

/// A thread. Rust's own number of it is no longer to be had while a process exits, and the system's are given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread(u64);

impl Thread {
    pub(crate) fn current() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static OWN: Cell<u64> = const { Cell::new(0) };
        }
        if OWN.get() == 0 {
            OWN.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        Thread(OWN.get())
    }

    /// The same, and its [end](Self::has_ended) is noted. One thread at a time is watched: the last.
    pub(crate) fn current_and_watched() -> Self {
        /// What the C library calls `ended` with at a thread's end; none if it has no more of these.
        static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
        let thread = Thread::current();
        WATCHED.store(thread.0, Ordering::Relaxed);
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: a place for a key. The library stays for as long as it is in use.
            let status = unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) };
            (status == 0).then_some(key)
        });
        if let Some(key) = key {
            // A number, not null. Where it cannot be kept the thread is taken for alive.
            let number = without_provenance::<c_void>(thread.0 as usize);
            // SAFETY: the key was made.
            unsafe { libc::pthread_setspecific(*key, number) };
        }
        thread
    }

    /// Whether this one, which was watched last, has ended. By `pthread_exit` the main thread ends, too, though the
    /// system still has its number.
    pub(crate) fn has_ended(self) -> bool {
        // Acquire: what the thread did is seen.
        WATCHED.load(Ordering::Acquire) != self.0
    }
}

/// The number of the thread that is watched, until it ends.
static WATCHED: AtomicU64 = AtomicU64::new(0);

/// A thread ends that was watched once.
unsafe extern "C" fn ended(number: *mut c_void) {
    let number = number.addr() as u64;
    // Release: goes with `has_ended`. Of one that is watched no more nobody wants to know.
    let _ = WATCHED.compare_exchange(number, 0, Ordering::Release, Ordering::Relaxed);
}

/// What there is of that, at this level alone.
pub(crate) struct Threads {
    /// The default context.
    pub default: SharedContext<'static>,
    /// Contexts that no call uses.
    spare: Mutex<Vec<Context<'static>>>,
    /// Who makes a call that concerns all PEs.
    turn: Mutex<()>,
    /// The locks that threads of this PE have or want.
    wanted: Mutex<Vec<Wanted>>,
}

/// A lock, which belongs to a PE: this PE's threads take turns, in the order in which they came.
struct Wanted {
    address: usize,
    /// The number of the next thread that comes, and of the one whose turn it is.
    next: u64,
    now: u64,
    /// The thread that has it.
    holder: Option<Thread>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    pub(crate) fn new(library: &'static Library) -> Done<Self> {
        Ok(Threads {
            default: library.world.create_context(ContextOptions::NONE)?.share(),
            spare: Mutex::default(),
            turn: Mutex::default(),
            wanted: Mutex::default(),
        })
    }

    /// Until the guard is dropped, this thread alone is in a call that concerns all PEs.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Does something on a context that is nobody else's meanwhile.
    pub(crate) fn apart<R>(
        &self,
        library: &'static Library,
        act: impl FnOnce(&Context<'static>) -> R,
    ) -> Done<R> {
        let spare = lock(&self.spare).pop();
        let context = match spare {
            Some(context) => context,
            None => library.world.create_context(ContextOptions::NONE)?,
        };
        let done = act(&context);
        lock(&self.spare).push(context);
        Ok(done)
    }

    /// Drives the contexts of calls that are not under way, and the default one.
    pub(crate) fn drive(&self, library: &Library) {
        self.default.progress();
        if let Ok(spare) = self.spare.try_lock() {
            spare.iter().for_each(Context::progress);
        }
        if let Ok(_turn) = self.turn.try_lock() {
            library.world.progress();
        }
    }

    /// Ends the contexts, when no thread is in a call any more.
    pub(crate) fn end(self) -> Done {
        let spare = self.spare.into_inner();
        for context in spare.unwrap_or_else(PoisonError::into_inner) {
            context.destroy()?;
        }
        Ok(self.default.destroy()?)
    }

    /// Waits until it is this thread's turn for a lock among those of its PE.
    pub(crate) fn queue(&self, library: &Library, call: &'static str, address: usize) -> Done {
        let me = Thread::current();
        let number = {
            let mut wanted = lock(&self.wanted);
            let Some(of) = wanted.iter_mut().find(|of| of.address == address) else {
                wanted.push(Wanted::by(me, address));
                return Ok(());
            };
            if of.holder == Some(me) {
                // It would wait for itself, of which the library tells.
                return Ok(());
            }
            of.next += 1;
            of.next - 1
        };
        let what =
            || format!("the lock at {address:#x}, which other threads of this PE have before");
        library.wait(call, &what, || {
            let mut wanted = lock(&self.wanted);
            let of = wanted.iter_mut().find(|of| of.address == address);
            let of = of.filter(|of| of.now == number)?;
            of.holder = Some(me);
            Some(())
        })
    }

    /// Makes it this thread's turn for a lock if no thread of its PE has or wants it.
    pub(crate) fn queue_alone(&self, address: usize) -> bool {
        let mut wanted = lock(&self.wanted);
        let free = !wanted.iter().any(|of| of.address == address);
        if free {
            wanted.push(Wanted::by(Thread::current(), address));
        }
        free
    }

    /// Gives the turn for a lock to this PE's next thread.
    pub(crate) fn next(&self, address: usize) {
        let mut wanted = lock(&self.wanted);
        if let Some(of) = wanted.iter_mut().find(|of| of.address == address) {
            of.now += 1;
            of.holder = None;
        }
        wanted.retain(|of| of.now < of.next);
    }
}

impl Wanted {
    fn by(thread: Thread, address: usize) -> Self {
        Wanted {
            address,
            next: 1,
            now: 0,
            holder: Some(thread),
        }
    }
}
