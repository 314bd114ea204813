//! The one PE that this process is.

use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use bytemuck::Pod;
use oxshmem::{Addresses, Context, Sym, World};

use crate::contexts::CtxEntry;
use crate::failure::{self, Done, Failure, or_end};
use crate::handles::{Ctx, Table, Team};
use crate::teams::TeamEntry;

/// This PE, while the library is initialized.
pub(crate) struct Library {
    pub addresses: Addresses,
    /// Before the teams, and these before the world, to which they belong.
    pub contexts: Table<CtxEntry>,
    pub teams: Table<TeamEntry>,
    /// The teams of active sets, by their arguments.
    pub active_sets: Mutex<Vec<([i32; 3], &'static oxshmem::Team<'static>)>>,
    /// For `World::team_among`.
    pub mailbox: Sym<u64>,
    /// The thread level.
    pub level: i32,
    /// Another number for each wait that begins anywhere.
    pub starts: AtomicUsize,
    pub world: World,
}

static LIBRARY: AtomicPtr<Library> = AtomicPtr::new(null_mut());

// SAFETY: a world, and what belongs to it, moves between threads; up to SHMEM_THREAD_SERIALIZED, which is the most
// that is provided, the program sees to it that one thread at a time is in a call.
unsafe impl Sync for Library {}

/// The library, if it is initialized.
#[inline(always)]
pub(crate) fn get() -> Done<&'static Library> {
    // SAFETY: `set` was given it for good, until `take`, after which no call may be made; the pointer is never
    // freed while a call runs, since calls come one at a time.
    unsafe { LIBRARY.load(Ordering::Acquire).as_ref() }.ok_or(Failure::NotInitialized)
}

/// Initializes.
pub(crate) fn set(library: Library) -> &'static Library {
    let library = Box::leak(Box::new(library));
    LIBRARY.store(library, Ordering::Release);
    library
}

/// Ends the library's life: nothing of it is used any more.
pub(crate) fn take() -> Option<Box<Library>> {
    let library = LIBRARY.swap(null_mut(), Ordering::AcqRel);
    // SAFETY: `set` made it of a box, and it is not to be found any more.
    (!library.is_null()).then(|| unsafe { Box::from_raw(library) })
}

/// A PE's number as the library takes it: one below 0 is none.
#[inline(always)]
pub(crate) fn number(pe: i32) -> usize {
    pe as isize as usize
}

/// A context, by its handle.
#[inline(always)]
pub(crate) fn context(ctx: Ctx) -> Done<(&'static Library, &'static Context<'static>)> {
    let library = get()?;
    match ctx {
        Ctx::DEFAULT => Ok((library, &library.world)),
        _ => library.context(ctx).map(|context| (library, context)),
    }
}

/// [`context`], or the job's end. As all that calls on the fast path are made of: what ends is out of the way.
#[inline(always)]
pub(crate) fn context_or_end(
    call: &'static str,
    ctx: Ctx,
) -> (&'static Library, &'static Context<'static>) {
    match context(ctx) {
        Ok(found) => found,
        Err(failure) => failure::end(call, failure),
    }
}

impl Library {
    /// [`object`](Self::object), or the job's end.
    #[inline(always)]
    pub(crate) fn object_or_end<T: Pod>(
        &self,
        call: &'static str,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Sym<T> {
        match self.addresses.object(address, len) {
            Some(object) => object,
            None => self.block_or_end(call, name, address, len),
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

    fn context(&'static self, ctx: Ctx) -> Done<&'static Context<'static>> {
        match self.contexts.get(ctx.0) {
            Some(entry) => Ok(entry.context(self)),
            None => Err(Failure::argument(
                "ctx",
                "this is no context, or was destroyed",
            )),
        }
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

    /// The same, which lies in one live block.
    #[cold]
    #[inline(never)]
    pub(crate) fn block_of<T: Pod>(
        &self,
        name: &'static str,
        address: *const T,
        len: usize,
    ) -> Done<Sym<T>> {
        let object = match len {
            0 => self.world.object_at(name, std::ptr::null(), 0),
            _ => self.world.object_at(name, address, len),
        };
        object.map_err(|error| match error {
            oxshmem::Error::Argument { what, .. } => Failure::Argument { name, what },
            error => Failure::argument(name, error.to_string()),
        })
    }
}
