//! The two paths of a call on a context: inlined where no lock is needed, and all the rest apart.

use crate::entries::CtxEntry;
use crate::failure::{self, Failure, or_abort_job};
use crate::handles::Ctx;
use crate::library::{self, Library};

use oxshmem::Context;

/// A PE's number as the library takes it: a negative one is none.
#[inline(always)]
pub(crate) fn pe_index(pe: i32) -> usize {
    pe as isize as usize
}

/// A context that this thread can use without a lock.
#[inline(always)]
pub(crate) fn unlocked(ctx: Ctx) -> Option<(&'static Library, &'static Context<'static>)> {
    match ctx {
        Ctx::DEFAULT => {
            let library = library::unshared()?;
            Some((library, &library.world))
        }
        _ => {
            let library = library::get().ok()?;
            Some((library, library.contexts.get(ctx.0)?.own()?))
        }
    }
}

/// The slow path of a call, out of line: so that neither room for a message nor its arguments burden the fast path.
#[inline(never)]
pub(crate) fn outlined<R>(path: impl FnOnce() -> R) -> R {
    path()
}

/// A path that is seldom taken, out of line.
#[cold]
#[inline(never)]
pub(crate) fn cold<R>(path: impl FnOnce() -> R) -> R {
    path()
}

/// Calls `act` with a context that threads share, when no other uses it; if there is no such context the job ends.
#[cold]
#[inline(never)]
pub(crate) fn locked<R>(
    call: &'static str,
    ctx: Ctx,
    act: impl FnOnce(&'static Library, &Context<'static>) -> R,
) -> R {
    let library = or_abort_job(call, library::get());
    let shared = match ctx {
        Ctx::DEFAULT => library.threads().map(|threads| &threads.default),
        _ => library.contexts.get(ctx.0).and_then(CtxEntry::shared),
    };
    match shared {
        Some(shared) => act(library, &shared.lock()),
        None => failure::abort_job(
            call,
            Failure::argument("ctx", "this is no context, or was destroyed"),
        ),
    }
}

/// The value of a call on a context; the job ends where the call fails, or there is no such context. The fast path contains
/// neither the use of a lock nor the handling of a failure. A call that fails holds no lock any more.
macro_rules! with_context {
    ($call:expr, $ctx:expr, |$library:ident, $context:ident| $body:expr) => {
        match $crate::call::unlocked($ctx) {
            Some(($library, $context)) => $crate::failure::or_abort_job($call, $body),
            // By value, so that what is given need not lie in memory before.
            None => $crate::failure::or_abort_job(
                $call,
                $crate::call::locked($call, $ctx, move |$library, $context| $body),
            ),
        }
    };
}
pub(crate) use with_context;

/// The value of a call by the fast path: where the context needs no lock, the object is easily found, and `$fast` gives
/// something. Else finds the object and makes the whole call, [`outlined`] and by [`with_context!`].
macro_rules! fast_path {
    ($call:expr, $ctx:expr, |$library:ident, $context:ident, $object:ident| {
        $easily:expr => $fast:expr,
        $found:expr => $body:expr,
    }) => {
        if let Some(($library, $context)) = $crate::call::unlocked($ctx)
            && let Some($object) = $easily
            && let Some(given) = $fast
        {
            given
        } else {
            $crate::call::outlined(move || {
                $crate::call::with_context!($call, $ctx, |$library, $context| {
                    let $object = $found;
                    $body
                })
            })
        }
    };
}
pub(crate) use fast_path;
