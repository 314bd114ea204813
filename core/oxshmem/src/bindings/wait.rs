//! Waits and tests of words that the caller reads itself.

use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::reason::{WaitReason, WaitsOn};
use oxshmem_engine::progress::wait::wait;

use crate::call_waiter::CallWaiter;
use crate::context::Context;
use crate::context::threads::SharedContext;
use crate::error::Result;
use oxshmem_engine::progress::wait::Waiter;

/// The context of a wait.
#[derive(Debug)]
pub enum WaitContext<'a, 'w> {
    /// A context that this thread uses.
    Own(&'a Context<'w>),
    /// A context that threads share. Its lock is not held meanwhile.
    Shared(&'a SharedContext<'w>),
}

impl<'a, 'w> From<&'a Context<'w>> for WaitContext<'a, 'w> {
    fn from(context: &'a Context<'w>) -> Self {
        WaitContext::Own(context)
    }
}

impl<'a, 'w> From<&'a SharedContext<'w>> for WaitContext<'a, 'w> {
    fn from(context: &'a SharedContext<'w>) -> Self {
        WaitContext::Shared(context)
    }
}

/// Waits until `poll` gives something.
///
/// `poll` loads words of this PE's own symmetric memory with `Acquire`: the wait of
/// [`wait_until`](Context::wait_until) for words that it cannot name. `what` describes what is awaited, when a report asks.
#[inline]
pub fn wait_for<'a, 'w: 'a, R>(
    context: impl Into<WaitContext<'a, 'w>>,
    call: &'static str,
    what: &dyn Fn() -> String,
    poll: impl FnMut() -> Option<R>,
) -> Result<R> {
    match context.into() {
        WaitContext::Own(context) => wait_on(context.waiter(), call, what, poll),
        WaitContext::Shared(context) => wait_on(context.waiter(), call, what, poll),
    }
}

fn wait_on<R>(
    waiter: &impl Waiter,
    call: &'static str,
    what: &dyn Fn() -> String,
    poll: impl FnMut() -> Option<R>,
) -> Result<R> {
    let describe = || (WaitedFor::Any, what());
    let reason = WaitReason {
        call,
        needs: WaitsOn::AnyPeer,
        describe: &describe,
    };
    let found = wait(waiter, &reason, None, poll)?;
    waiter.engine().make_gpu_data_visible()?;
    Ok(found)
}

/// Makes progress on operations in flight, then polls once, as [`test`](Context::test) does.
#[inline]
pub fn poll_once<'a, 'w: 'a, R>(
    context: impl Into<WaitContext<'a, 'w>>,
    poll: impl FnOnce() -> R,
) -> Result<R> {
    match context.into() {
        WaitContext::Own(context) => poll_once_on(context.waiter(), poll),
        WaitContext::Shared(context) => poll_once_on(context.waiter(), poll),
    }
}

fn poll_once_on<R>(waiter: &impl Waiter, poll: impl FnOnce() -> R) -> Result<R> {
    waiter.engine().yield_point();
    waiter.progress();
    waiter.engine().run_progress_hook("poll_once")?;
    let found = poll();
    waiter.engine().make_gpu_data_visible()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use crate::bindings::wait::{poll_once, wait_for};
    use crate::context::options::ContextOptions;
    use crate::testing::spmd;
    use crate::wait_until::Cmp;

    #[test]
    fn waits_and_tests_drive_what_the_program_has_them_drive() {
        static DRIVEN: AtomicUsize = AtomicUsize::new(0);
        spmd(1, |world| {
            let word = world.alloc_zeroed::<u64>(1)?;
            world.drive_in_waits(|| {
                DRIVEN.fetch_add(1, Ordering::Relaxed);
            });
            let shared = world.create_context(ContextOptions::NONE)?.share();
            let seen = || DRIVEN.load(Ordering::Relaxed);
            let mut before = seen();
            let mut grown = || seen() > std::mem::replace(&mut before, seen());
            // Each ends as soon as it has driven, or fails after long.
            let limit = Instant::now() + Duration::from_secs(60);
            let start = seen();
            let poll = || (seen() > start).then_some(true);
            let poll = || poll().or_else(|| (Instant::now() > limit).then_some(false));
            assert!(wait_for(&**world, "test", &|| "to be driven".into(), poll)?);
            let start = seen();
            let poll = || (seen() > start).then_some(true);
            let poll = || poll().or_else(|| (Instant::now() > limit).then_some(false));
            assert!(wait_for(&shared, "test", &|| "to be driven".into(), poll)?);
            assert!(grown());
            poll_once(&**world, || ())?;
            assert!(grown());
            world.test(word, Cmp::Eq, 1)?;
            assert!(grown());
            shared.test_any(word, None, Cmp::Eq, 1)?;
            assert!(grown());
            shared.signal_fetch(word)?;
            assert!(grown());
            shared.destroy()?;
            world.free(word)
        })
        .unwrap();
    }
}
