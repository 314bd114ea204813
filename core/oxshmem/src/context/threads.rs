//! One context for many threads.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use oxshmem_engine::engine::Engine;
use oxshmem_engine::progress::reason::WaitsOn;
use oxshmem_engine::trace::timeline::Track;

use crate::call_waiter::{CallWaiter, next_random};
use crate::context::Context;
use crate::context::options::ContextOptions;
use crate::error::Result;
use crate::pe_state::PeState;
use oxshmem_engine::progress::wait::Waiter;

/// A context that any number of threads use at once (OpenSHMEM's contexts without options). Made by
/// [`Context::share`].
///
/// [`lock`](Self::lock) gives a thread the context for as long as it keeps what it gets: for one call, or for
/// some that belong together. A fence or quiet concerns the earlier operations of all threads on it. Waits and tests of
/// this PE's own words are calls of this type itself: they neither take nor wait for the lock, so that a thread that waits does
/// not prevent others from issuing the operations that it waits for. (Those of counted puts take it once as many have arrived.)
///
/// ```
/// use oxshmem::{Cmp, ContextOptions, Result, testing::spmd};
///
/// fn main() -> Result<()> {
///     spmd(2, |world| {
///         let flags = world.alloc_zeroed::<u64>(4)?;
///         let context = world.create_context(ContextOptions::NONE)?.share();
///         std::thread::scope(|threads| {
///             for i in 0..4 {
///                 let context = &context;
///                 threads.spawn(move || -> Result<()> {
///                     let flag = flags.at(i)?;
///                     let peer = 1 - context.lock().my_pe();
///                     context.lock().set(flag, 1, peer)?;
///                     context.wait_until(flag, Cmp::Eq, 1) // no lock is held
///                 });
///             }
///         });
///         context.destroy()
///     })?;
///     Ok(())
/// }
/// ```
pub struct SharedContext<'w> {
    shared: SharedWaiter<'w>,
    tag: u32,
    /// The state of a random sequence, for searches that begin anywhere.
    random: AtomicU64,
}

/// A shared context as a wait uses it.
pub(crate) struct SharedWaiter<'w> {
    context: Mutex<Context<'w>>,
    /// The part of it that waits need, which does not change.
    pe: Arc<PeState>,
}

/// A shared context, which one thread holds exclusively until this is dropped.
///
/// Do not wait for other PEs' updates with it (`context.lock().wait_until(..)`): all other threads would wait for
/// its lock meanwhile. [`SharedContext`] has those calls. While a thread holds the context and makes no call,
/// its lanes make no progress: hold it for calls, not for computation between them.
pub struct LockedContext<'a, 'w>(MutexGuard<'a, Context<'w>>);

/// The distance from one state of [`SharedContext::random`] to the next.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

impl fmt::Debug for SharedContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedContext").finish_non_exhaustive()
    }
}

impl fmt::Debug for LockedContext<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockedContext").field(&*self.0).finish()
    }
}

impl<'w> Deref for LockedContext<'_, 'w> {
    type Target = Context<'w>;
    #[inline]
    fn deref(&self) -> &Context<'w> {
        &self.0
    }
}

impl<'w> Context<'w> {
    /// The same context, for many threads.
    #[must_use]
    pub fn share(self) -> SharedContext<'w> {
        SharedContext {
            tag: self.worker.tag,
            random: AtomicU64::new(self.random()),
            shared: SharedWaiter {
                pe: Arc::clone(&self.pe),
                context: Mutex::new(self),
            },
        }
    }
}

impl<'w> SharedContext<'w> {
    /// The context, when no other thread holds it. A thread must not lock it twice.
    #[inline]
    #[must_use]
    pub fn lock(&self) -> LockedContext<'_, 'w> {
        // A call leaves the context valid, whatever panics in the thread that holds it.
        LockedContext(
            self.shared
                .context
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// [`Context::progress`], unless a thread holds the context: its calls make progress.
    pub fn progress(&self) {
        self.shared.progress();
    }

    /// Makes a context for one thread, as [`Context::create_context`].
    ///
    /// # Errors
    ///
    /// Those of that call.
    pub fn create_context(&self, options: ContextOptions) -> Result<Context<'_>> {
        let context = self.lock();
        context.context_of(context.members.as_ref(), options)
    }

    /// [`Context::destroy`], when no thread uses the context any more.
    pub fn destroy(self) -> Result<()> {
        let context = self.shared.context.into_inner();
        context.unwrap_or_else(PoisonError::into_inner).destroy()
    }
}

impl Waiter for SharedWaiter<'_> {
    fn engine(&self) -> &Engine {
        &self.pe.engine
    }

    fn progress(&self) {
        match self.context.try_lock() {
            Ok(context) => context.progress(),
            Err(TryLockError::Poisoned(context)) => context.into_inner().progress(),
            // The thread that holds it makes progress by its calls.
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// A shared context makes no collective calls.
    fn stranded(&self, _: &'static str, _: WaitsOn<'_>) -> Option<oxshmem_engine::error::Error> {
        None
    }

    fn track(&self) -> Option<Track> {
        None
    }
}

impl<'w> CallWaiter for SharedContext<'w> {
    type Waiter = SharedWaiter<'w>;

    fn waiter(&self) -> &SharedWaiter<'w> {
        &self.shared
    }

    fn pe(&self) -> &PeState {
        &self.shared.pe
    }

    fn tag(&self) -> u32 {
        self.tag
    }

    fn random(&self) -> u64 {
        let state = self.random.fetch_add(STRIDE, Ordering::Relaxed);
        next_random(state | 1) >> 32
    }
}
