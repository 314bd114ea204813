//! State for calls of several threads at once (`SHMEM_THREAD_MULTIPLE`).
//!
//! The world's own context then serves the calls that concern all PEs, such as barriers and allocation, which come
//! one at a time. The default context is another, which threads share by a lock that they hold for one operation each.
//! A thread that waits holds no lock: words are polled without one, and a collective call, or one for a lock, uses a context
//! that belongs to nobody else until it returns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem::{Context, ContextOptions, SharedContext, World, bindings};

use crate::failure::CResult;
use crate::thread::Thread;

/// The state at this level alone.
pub(crate) struct Threads {
    /// The default context.
    pub default: SharedContext<'static>,
    /// Contexts that no call uses.
    spare: Mutex<Vec<Context<'static>>>,
    /// Held by the thread that makes a call that concerns all PEs.
    world_call: Mutex<()>,
    /// The locks that threads of this PE hold or want.
    lock_queues: Mutex<Vec<LockQueue>>,
}

/// The threads of this PE at one lock. The lock belongs to a PE, so these take turns in the order in which they came (a
/// ticket lock).
struct LockQueue {
    address: usize,
    /// The ticket of the next thread that comes.
    next_ticket: u64,
    /// The ticket of the thread whose turn it is.
    now_serving: u64,
    /// The thread whose turn it is.
    holder: Option<Thread>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    pub(crate) fn new(world: &'static World) -> CResult<Self> {
        Ok(Threads {
            default: world.create_context(ContextOptions::NONE)?.share(),
            spare: Mutex::default(),
            world_call: Mutex::default(),
            lock_queues: Mutex::default(),
        })
    }

    /// Until the guard is dropped, this thread alone is in a call that concerns all PEs.
    pub(crate) fn begin_world_call(&self) -> MutexGuard<'_, ()> {
        lock(&self.world_call)
    }

    /// Calls `act` with a context that belongs to nobody else meanwhile.
    pub(crate) fn with_own_context<R>(
        &self,
        world: &'static World,
        act: impl FnOnce(&Context<'static>) -> R,
    ) -> CResult<R> {
        let spare = lock(&self.spare).pop();
        let context = match spare {
            Some(context) => context,
            None => world.create_context(ContextOptions::NONE)?,
        };
        let result = act(&context);
        lock(&self.spare).push(context);
        Ok(result)
    }

    /// Makes progress on the contexts that no call uses, and on the default one.
    pub(crate) fn progress(&self, world: &World) {
        self.default.progress();
        if let Ok(spare) = self.spare.try_lock() {
            spare.iter().for_each(Context::progress);
        }
        if let Ok(_guard) = self.world_call.try_lock() {
            world.progress();
        }
    }

    /// Destroys the contexts, when no thread is in a call any more.
    pub(crate) fn end(self) -> CResult {
        let spare = self.spare.into_inner();
        for context in spare.unwrap_or_else(PoisonError::into_inner) {
            context.destroy()?;
        }
        Ok(self.default.destroy()?)
    }

    /// Waits until it is this thread's turn for a lock among those of its PE.
    pub(crate) fn acquire_turn(&self, call: &'static str, address: usize) -> CResult {
        let me = Thread::current();
        let ticket = {
            let mut queues = lock(&self.lock_queues);
            let Some(queue) = queues.iter_mut().find(|queue| queue.address == address) else {
                queues.push(LockQueue::held_by(me, address));
                return Ok(());
            };
            if queue.holder == Some(me) {
                // It would wait for itself, which the library reports.
                return Ok(());
            }
            queue.next_ticket += 1;
            queue.next_ticket - 1
        };
        let what =
            || format!("the lock at {address:#x}, which other threads of this PE have before");
        Ok(bindings::wait_for(&self.default, call, &what, || {
            let mut queues = lock(&self.lock_queues);
            let queue = queues.iter_mut().find(|queue| queue.address == address);
            let queue = queue.filter(|queue| queue.now_serving == ticket)?;
            queue.holder = Some(me);
            Some(())
        })?)
    }

    /// Makes it this thread's turn for a lock if no thread of its PE holds or wants it.
    pub(crate) fn try_acquire_turn(&self, address: usize) -> bool {
        let mut queues = lock(&self.lock_queues);
        let free = !queues.iter().any(|queue| queue.address == address);
        if free {
            queues.push(LockQueue::held_by(Thread::current(), address));
        }
        free
    }

    /// Passes the turn for a lock to this PE's next thread.
    pub(crate) fn release_turn(&self, address: usize) {
        let mut queues = lock(&self.lock_queues);
        if let Some(queue) = queues.iter_mut().find(|queue| queue.address == address) {
            queue.now_serving += 1;
            queue.holder = None;
        }
        queues.retain(|queue| queue.now_serving < queue.next_ticket);
    }
}

impl LockQueue {
    fn held_by(thread: Thread, address: usize) -> Self {
        LockQueue {
            address,
            next_ticket: 1,
            now_serving: 0,
            holder: Some(thread),
        }
    }
}
