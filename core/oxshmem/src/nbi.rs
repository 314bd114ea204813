//! Nonblocking operations, within a scope that completes them.
//!
//! As `std::thread::scope` does for threads, [`Context::scope`] lends out buffers until the end of
//! the scope, where a quiet returns them: no source can change and no destination be read before
//! (M37): the borrow checker sees to that. It cannot for a symmetric object as the local side of
//! [`Scope::put_from_nbi`] and [`Scope::get_into_nbi`]: there the program has to.
//!
//! ```compile_fail
//! # oxshmem::testing::spmd(1, |world| {
//! # let x = world.alloc::<u64>(1)?;
//! let mut buffer = [0];
//! world.scope(|s| {
//!     s.get_nbi(&mut buffer, x, 0)?;
//!     assert_eq!(buffer, [0]); // read before it has arrived: does not compile
//!     Ok(())
//! })
//! # });
//! ```

use std::marker::PhantomData;

use bytemuck::Pod;
use oxshmem_transport::AtomicOp;

use crate::atomics::Word;
use crate::atomics::all_atomics;
use crate::atomics::{AtomicBits, AtomicInt, AtomicValue};
use crate::context::Context;
use crate::error::Result;
use crate::place::placed;
use crate::signal::first_elements;
use crate::stats::counters::Kind;
use crate::sym::{ObjectStart, Sym};
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::order::conflict::{Access, Type};
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_engine::report;
use oxshmem_transport::SignalOp;
use oxshmem_transport::{AtomicRequest, Operands};

/// Nonblocking operations issued within one [`Context::scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    context: &'scope Context<'scope>,
    /// Invariant in both, as `std::thread::Scope`.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Completes the operations of a scope, also when it unwinds: out of its closure, or out of its own end.
struct Completion<'w>(&'w Context<'w>);

impl Drop for Completion<'_> {
    fn drop(&mut self) {
        // Reached by unwinding only: `scope` forgets it otherwise. A second panic ends the process.
        self.0.complete_scope().unwrap_or_else(|error| {
            report::warn(&format!("a scope that panicked was not completed: {error}"));
        });
    }
}

impl Context<'_> {
    /// Runs `f`, in which nonblocking operations may borrow buffers, then completes them all: when
    /// it returns they have been performed (M19) and the buffers may be used again.
    ///
    /// If they cannot be completed (a peer is lost, a deadline passes), the lanes concerned are
    /// closed first, so that nothing accesses the buffers afterwards.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let x = world.alloc::<u64>(4)?;
    ///         let (mine, mut theirs) = ([world.my_pe() as u64; 4], [0; 4]);
    ///         let peer = 1 - world.my_pe();
    ///         world.scope(|s| s.put_nbi(x, &mine, peer))?;
    ///         world.barrier_all()?;
    ///         world.scope(|s| s.get_nbi(&mut theirs, x, peer))?;
    ///         assert_eq!(theirs, mine);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let completion = Completion(self);
        let done = f(&Scope {
            context: self,
            scope: PhantomData,
            env: PhantomData,
        });
        let completed = self.complete_scope();
        std::mem::forget(completion);
        completed?;
        done
    }

    #[track_caller]
    fn complete_scope(&self) -> Result<()> {
        placed(|| {
            let completed = self
                .quiet()
                .inspect_err(|error| self.worker.abandon_lanes(error, None));
            #[cfg(feature = "cuda")]
            self.slices_back(&completed);
            completed
        })
    }

    /// Puts `len` elements without waiting for anything; completed by the next
    /// [`quiet`](Self::quiet). [`scope`](Self::scope) is the safe form.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` elements, and unchanged, until a quiet has returned; if that
    /// quiet fails, until the world is dropped. So does a [`Registered`](crate::Registered) that it is in.
    #[doc(alias(
        "shmem_put_nbi",
        "shmem_putmem_nbi",
        "nvshmem_put_nbi",
        "nvshmem_putmem_nbi"
    ))]
    #[doc(alias = "MPI_Rput")]
    #[inline]
    #[track_caller]
    pub unsafe fn put_nbi<T: Pod>(
        &self,
        dst: Sym<T>,
        source: *const T,
        len: usize,
        pe: usize,
    ) -> Result<()> {
        if len <= dst.len()
            && let Some(span) = self.worker.peers.span(dst, pe)
        {
            // SAFETY: the caller promises `len` readable elements.
            unsafe { span.copy_from_raw(source.cast(), len * size_of::<T>()) };
            self.worker.peers.note_store(pe);
            return Ok(());
        }
        // SAFETY: the caller promises a readable source until a quiet has returned.
        unsafe { self.put_nbi_outlined(dst.start(), dst.len(), source, len, pe) }
    }

    /// Gets `len` elements without waiting for anything; completed by the next
    /// [`quiet`](Self::quiet). [`scope`](Self::scope) is the safe form.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` elements, and not accessed, until a quiet has returned;
    /// if that quiet fails, until the world is dropped. So does a [`Registered`](crate::Registered) that
    /// it is in.
    #[doc(alias(
        "shmem_get_nbi",
        "shmem_getmem_nbi",
        "nvshmem_get_nbi",
        "nvshmem_getmem_nbi"
    ))]
    #[doc(alias = "MPI_Rget")]
    #[inline]
    #[track_caller]
    pub unsafe fn get_nbi<T: Pod>(
        &self,
        destination: *mut T,
        src: Sym<T>,
        len: usize,
        pe: usize,
    ) -> Result<()> {
        if len <= src.len()
            && let Some(span) = self.worker.peers.span(src, pe)
        {
            // SAFETY: the caller promises `len` writable elements.
            unsafe { span.copy_to_raw(destination.cast(), len * size_of::<T>()) };
            return Ok(());
        }
        // SAFETY: the caller promises a writable destination until a quiet has returned.
        unsafe { self.get_nbi_outlined(destination, src.start(), src.len(), len, pe) }
    }

    /// The part of a put_nbi beyond the fast path, out of line, and with the object in parts: so the fast path keeps it in
    /// registers.
    ///
    /// # Safety
    ///
    /// As of [`put_nbi`](Self::put_nbi).
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn put_nbi_outlined<T: Pod>(
        &self,
        dst: ObjectStart,
        room: usize,
        source: *const T,
        len: usize,
        pe: usize,
    ) -> Result<()> {
        let dst = Sym::starting_at(dst, room);
        // SAFETY: the caller's promise.
        unsafe {
            self.in_call("put_nbi")
                .put_raw_slow(dst, source, len, pe, true)
        }
    }

    /// The part of a get_nbi beyond the fast path, as [`put_nbi_outlined`](Self::put_nbi_outlined).
    ///
    /// # Safety
    ///
    /// As of [`get_nbi`](Self::get_nbi).
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn get_nbi_outlined<T: Pod>(
        &self,
        destination: *mut T,
        src: ObjectStart,
        room: usize,
        len: usize,
        pe: usize,
    ) -> Result<()> {
        let src = Sym::starting_at(src, room);
        // SAFETY: the caller's promise.
        unsafe {
            self.in_call("get_nbi")
                .get_raw_slow(destination, src, len, pe, true)
        }
    }

    /// Issues a fetching atomic whose result arrives by the next quiet.
    ///
    /// # Safety
    ///
    /// `result` is writable, and not accessed, until a quiet has returned; if that quiet fails,
    /// until the world is dropped.
    #[track_caller]
    pub(crate) unsafe fn rmw_nbi<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        result: *mut T,
        on: Sym<T>,
        operands: Operands,
        pe: usize,
    ) -> Result<()> {
        // SAFETY: the caller promises a writable result until a quiet has returned.
        placed(|| unsafe {
            self.in_call(call)
                .rmw_nbi_inner(op, result, on, operands, pe)
        })
    }

    /// # Safety
    ///
    /// As of [`rmw_nbi`](Self::rmw_nbi).
    unsafe fn rmw_nbi_inner<T: Word>(
        &self,
        op: AtomicOp,
        result: *mut T,
        on: Sym<T>,
        operands: Operands,
        pe: usize,
    ) -> Result<()> {
        if self.worker.peers.word(on, pe).is_some() {
            let old = self.rmw(self.call(), op, on, operands.operand, operands.compare, pe)?;
            // SAFETY: the caller promises it to be writable.
            unsafe { result.write(T::of_bits(old)) };
            return Ok(());
        }
        let pe = self.check(on, 1, pe)?;
        self.guard(Access::Atomic(Type(T::NAME)), on, 1, pe, true)?;
        self.count(Kind::Atomic, on, size_of::<T>(), pe);
        let request = AtomicRequest::new(op, T::WIDTH, operands);
        match self.worker.access_path(OpKind::Atomic, on, pe)? {
            AccessPath::Mapped(word) => {
                let old = word.rmw_word(request, FenceSite::Nothing);
                self.worker.peers.mark_dirty_any();
                // SAFETY: the caller promises it to be writable.
                unsafe { result.write(T::of_bits(old)) };
                Ok(())
            }
            // The lane writes the 4 or 8 bytes of the type.
            // SAFETY: the caller promises a writable result until a quiet has returned.
            AccessPath::Lane(endpoint, remote) => unsafe {
                Ok(self
                    .worker
                    .lane_amo_nbi(endpoint, remote, request, result.cast())?)
            },
            AccessPath::Staged(remote) => {
                let old = self.worker.staged_atomic(remote, request)?;
                // SAFETY: the caller promises it to be writable.
                unsafe { result.write(T::of_bits(old)) };
                Ok(())
            }
        }
    }
}

macro_rules! nonblocking {
    (
        fetching {$(
            $(#[$doc:meta])+
            $alias:literal $name:ident, $nbi_alias:literal $nbi:ident:
                $bound:ident, $word:ident, ($($argument:ident),*), $op:ident, $operand:expr, $compare:expr;
        )*}
        giving_nothing {$($others:tt)*}
    ) => {$(
        #[doc = concat!(
            "[`Context::", stringify!($name), "`] whose value is in `result` by the end of the scope."
        )]
        #[doc(alias = $nbi_alias)]
        #[track_caller]
        pub fn $nbi<T: $bound>(
            &'scope self, result: &'env mut T, $word: Sym<T>, $($argument: T,)* pe: usize,
        ) -> Result<()> {
            let operands = Operands { operand: $operand, compare: $compare };
            self.rmw_nbi(stringify!($nbi), AtomicOp::$op, result, $word, operands, pe)
        }
    )*};
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn context(&self) -> &'scope Context<'scope> {
        self.context
    }

    /// Puts `source` at the start of `dst` on PE `pe`, by the end of the scope.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let x = world.alloc::<u64>(4)?;
    ///         let (some, others) = ([1, 2], [3, 4]);
    ///         let peer = 1 - world.my_pe();
    ///         world.scope(|s| {
    ///             s.put_nbi(x, &some, peer)?;
    ///             s.put_nbi(x.range(2..)?, &others, peer)
    ///         })?; // both have been performed
    ///         assert_eq!(world.g(x.at(3)?, peer)?, 4);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_putmem_nbi",
        "shmem_put_nbi",
        "nvshmem_put_nbi",
        "nvshmem_putmem_nbi"
    ))]
    #[doc(alias = "MPI_Rput")]
    #[inline]
    #[track_caller]
    pub fn put_nbi<T: Pod>(&'scope self, dst: Sym<T>, source: &'env [T], pe: usize) -> Result<()> {
        // SAFETY: 'env outlives the scope, whose quiet completes the put or closes its lane.
        unsafe { self.context.put_nbi(dst, source.as_ptr(), source.len(), pe) }
    }

    /// Gets the start of `src` on PE `pe` into `destination`, by the end of the scope.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let x = world.alloc::<u64>(1)?;
    ///         world.write(x, &[10 * world.my_pe() as u64])?;
    ///         world.barrier_all()?;
    ///         let mut all = [[0]; 3];
    ///         world.scope(|s| {
    ///             let mut pes = all.iter_mut().enumerate();
    ///             pes.try_for_each(|(pe, into)| s.get_nbi(into, x, pe))
    ///         })?; // all three have arrived
    ///         assert_eq!(all, [[0], [10], [20]]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_getmem_nbi",
        "shmem_get_nbi",
        "nvshmem_get_nbi",
        "nvshmem_getmem_nbi"
    ))]
    #[doc(alias = "MPI_Rget")]
    #[inline]
    #[track_caller]
    pub fn get_nbi<T: Pod>(
        &'scope self,
        destination: &'env mut [T],
        src: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        // SAFETY: 'env outlives the scope, whose quiet completes the get or closes its lane, and
        // the exclusive borrow keeps everyone else away.
        unsafe {
            self.context
                .get_nbi(destination.as_mut_ptr(), src, destination.len(), pe)
        }
    }

    /// [`Context::put_signal`], complete by the end of the scope.
    ///
    /// ```
    /// use oxshmem::{Cmp, Result, SignalOp, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let data = world.alloc::<u64>(100)?;
    ///         let ready = world.alloc_zeroed::<u64>(1)?;
    ///         let (mine, peer) = ([7; 100], 1 - world.my_pe());
    ///         world.scope(|s| {
    ///             s.put_signal_nbi(data, &mine, ready, 1, SignalOp::Set, peer)
    ///         })?;
    ///         world.signal_wait_until(ready, Cmp::Eq, 1)?;
    ///         assert_eq!(world.g(data.at(99)?, world.my_pe())?, 7);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_putmem_signal_nbi",
        "shmem_put_signal_nbi",
        "nvshmem_put_signal_nbi"
    ))]
    #[doc(alias = "nvshmem_putmem_signal_nbi")]
    #[track_caller]
    pub fn put_signal_nbi<T: Pod>(
        &'scope self,
        dst: Sym<T>,
        source: &'env [T],
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> Result<()> {
        let dst = first_elements("put_signal_nbi", dst, source.len())?;
        // SAFETY: 'env outlives the scope, whose quiet completes the put or closes its lane.
        unsafe {
            self.context
                .put_signal_raw(dst, source.as_ptr(), signal, value, op, pe, true)
        }
    }

    all_atomics!(nonblocking);

    #[track_caller]
    fn rmw_nbi<T: Word>(
        &'scope self,
        call: &'static str,
        op: AtomicOp,
        result: &'env mut T,
        on: Sym<T>,
        operands: Operands,
        pe: usize,
    ) -> Result<()> {
        // SAFETY: 'env outlives the scope, whose quiet completes the operation or closes its lane,
        // and the exclusive borrow keeps everyone else away.
        unsafe { self.context.rmw_nbi(call, op, result, on, operands, pe) }
    }
}
