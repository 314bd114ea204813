//! Operations whose private side is raw memory, for bindings to other languages; the safe ones of slices are made
//! of the strided ones here.
//!
//! They follow the same rules, with one more: the memory may be what other PEs write meanwhile, as no slice may.

use bytemuck::Pod;
use oxshmem_transport::{AtomicOp, Width};

use crate::check::Access;
use crate::lane::{AccessPath, LocalBuffer, Signal};
use crate::mapped::HostMemory;
use crate::order::{FenceSite, OpKind};
use crate::place::placed;
use crate::stats::Kind;
use crate::wait::{WaitReason, WaitsOn, wait};
use crate::wait_until::Waiter;
use crate::{AtomicValue, Context, Error, Result, SharedContext, SignalOp, Sym};

/// Where the blocks of a strided transfer lie, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// From the start of one block to that of the next in the symmetric object; at least `block`, and 1.
    pub far: usize,
    /// The same in private memory.
    pub near: usize,
    /// Elements of a block.
    pub block: usize,
    /// Number of blocks.
    pub count: usize,
}

impl Blocks {
    /// Elements that the blocks span at a stride, or none if that overflows.
    fn span(self, stride: usize) -> Option<usize> {
        match self.count {
            n if n == 0 || self.block == 0 => Some(0),
            n => stride.checked_mul(n - 1)?.checked_add(self.block),
        }
    }

    /// Elements that they span in the symmetric object; as many as there can be if that overflows.
    #[must_use]
    pub fn far_span(self) -> usize {
        self.span(self.far).unwrap_or(usize::MAX)
    }

    /// Refuses strides below the block's size, and a span that leaves the object.
    pub(crate) fn check<T: Pod>(self, call: &'static str, far: Sym<T>) -> Result<()> {
        let least = self.block.max(1);
        if self.far < least || self.near < least {
            return Err(Error::Argument {
                call,
                what: format!(
                    "strides {} and {} must be at least the block's {least} elements",
                    self.far, self.near
                ),
            });
        }
        match self.span(self.far) {
            Some(end) if end <= far.len() => Ok(()),
            end => Err(Error::OutOfRange {
                call,
                start: 0,
                end: end.unwrap_or(usize::MAX),
                len: far.len(),
            }),
        }
    }

    /// Refuses a span of private memory that is longer than any memory.
    fn check_length<T>(self, call: &'static str) -> Result<()> {
        self.check_near(call, isize::MAX as usize / size_of::<T>().max(1))
    }

    /// Refuses a span that leaves `len` elements of private memory.
    pub(crate) fn check_near(self, call: &'static str, len: usize) -> Result<()> {
        match self.span(self.near) {
            Some(needed) if needed <= len => Ok(()),
            needed => Err(Error::BufferTooSmall {
                call,
                len,
                needed: needed.unwrap_or(usize::MAX),
            }),
        }
    }

    /// Whether there is nothing to copy, however many blocks there are.
    fn is_nothing<T>(self) -> bool {
        self.block == 0 || size_of::<T>() == 0
    }
}

impl Context<'_> {
    /// [`put`](Self::put) of as many elements as `dst` has.
    ///
    /// # Safety
    ///
    /// `source` is readable for as many elements, and is `dst`'s own place or apart from it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn put_raw<T: Pod>(&self, dst: Sym<T>, source: *const T, pe: usize) -> Result<()> {
        if let Some(span) = self.peers.span(dst, pe) {
            // SAFETY: the caller's promise.
            unsafe { span.copy_from_raw(source.cast(), dst.bytes()) };
            self.peers.note_store(pe);
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.put_raw_slow("put", dst, source, dst.len(), pe, false) }
    }

    /// [`get`](Self::get) of as many elements as `src` has.
    ///
    /// # Safety
    ///
    /// `destination` is writable for as many elements, and is `src`'s own place or apart from it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn get_raw<T: Pod>(
        &self,
        destination: *mut T,
        src: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        if let Some(span) = self.peers.span(src, pe) {
            // SAFETY: the caller's promise.
            unsafe { span.copy_to_raw(destination.cast(), src.bytes()) };
            self.order_read(span);
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.get_raw_slow("get", destination, src, src.len(), pe, false) }
    }

    /// [`put_raw`](Self::put_raw) where it is the store of one aligned word by this CPU; else nothing is done, and it is
    /// false.
    ///
    /// # Safety
    ///
    /// As [`put_raw`](Self::put_raw).
    #[inline(always)]
    #[must_use]
    pub unsafe fn put_raw_here<T: Pod>(&self, dst: Sym<T>, source: *const T, pe: usize) -> bool {
        let gated = self.peers.clean_store_span(dst, pe);
        let Some(span) = gated.or_else(|| self.peers.span(dst, pe)) else {
            return false;
        };
        // SAFETY: the caller's promise.
        let is_word = unsafe { span.copy_word_from_raw(source.cast(), dst.bytes()) };
        if is_word && gated.is_none() {
            self.peers.mark_dirty(pe);
        }
        is_word
    }

    /// [`get_raw`](Self::get_raw) where it is the load of one aligned word by this CPU; else nothing is done, and it is
    /// false.
    ///
    /// # Safety
    ///
    /// As [`get_raw`](Self::get_raw).
    #[inline(always)]
    #[must_use]
    pub unsafe fn get_raw_here<T: Pod>(&self, destination: *mut T, src: Sym<T>, pe: usize) -> bool {
        let Some(span) = self.peers.span(src, pe) else {
            return false;
        };
        // SAFETY: the caller's promise.
        let is_word = unsafe { span.copy_word_to_raw(destination.cast(), src.bytes()) };
        self.order_read(span);
        is_word
    }

    /// Puts `len` elements by any path, or says why not.
    ///
    /// # Safety
    ///
    /// As [`put_nbi`](Self::put_nbi) if it is `nonblocking`, else `source` is readable during the call.
    #[cold]
    #[track_caller]
    pub(crate) unsafe fn put_raw_slow<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        source: *const T,
        len: usize,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        placed(|| {
            let pe = self.check(call, dst, len, pe)?;
            self.guard(call, Access::Put, dst, len, pe, true)?;
            let bytes = len * size_of::<T>();
            self.count(Kind::Put, dst, bytes, pe);
            // SAFETY: the caller's promise.
            unsafe { self.put_raw_by_path(call, dst, source.cast(), bytes, pe, nonblocking) }
        })
    }

    /// Gets `len` elements by any path, or says why not.
    ///
    /// # Safety
    ///
    /// As [`get_nbi`](Self::get_nbi) if it is `nonblocking`, else `destination` is writable during the call.
    #[cold]
    #[track_caller]
    pub(crate) unsafe fn get_raw_slow<T: Pod>(
        &self,
        call: &'static str,
        destination: *mut T,
        src: Sym<T>,
        len: usize,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        placed(|| {
            let pe = self.check(call, src, len, pe)?;
            self.guard(call, Access::Get, src, len, pe, nonblocking)?;
            let bytes = len * size_of::<T>();
            self.count(Kind::Get, src, bytes, pe);
            // SAFETY: the caller's promise.
            unsafe { self.get_raw_by_path(call, destination.cast(), bytes, src, pe, nonblocking) }
        })
    }

    /// Puts bytes to a PE, by its number in the world; the caller has checked all.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes; as of [`put_raw_slow`](Self::put_raw_slow).
    pub(crate) unsafe fn put_raw_by_path<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        source: *const u8,
        len: usize,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        match self.path(call, OpKind::Put, dst, pe)? {
            AccessPath::Mapped(place) => {
                // SAFETY: the caller's promise.
                unsafe { place.copy_from_raw(source, len) };
                self.peers.mark_dirty_any();
                Ok(())
            }
            // SAFETY: the caller's promise.
            AccessPath::Lane(via, far) => unsafe {
                match nonblocking {
                    true => self.lane_put_nbi(call, via, far, LocalBuffer::at(source, len)),
                    false => self.lane_put(call, via, far, LocalBuffer::at(source, len)),
                }
            },
            // A nonblocking one may block.
            // SAFETY: the caller's promise.
            AccessPath::Staged(far) => unsafe { self.staged_put(call, far, source, len) },
        }
    }

    /// Gets bytes from a PE, by its number in the world; the caller has checked all.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes; as of [`get_raw_slow`](Self::get_raw_slow).
    pub(crate) unsafe fn get_raw_by_path<T: Pod>(
        &self,
        call: &'static str,
        destination: *mut u8,
        len: usize,
        src: Sym<T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        match self.path(call, OpKind::Put, src, pe)? {
            AccessPath::Mapped(place) => {
                // SAFETY: the caller's promise.
                unsafe { place.copy_to_raw(destination, len) };
                if !nonblocking {
                    self.order_read_slow(place);
                }
                Ok(())
            }
            // SAFETY: the caller's promise.
            AccessPath::Lane(via, far) => unsafe {
                match nonblocking {
                    true => self.lane_get_nbi(call, via, far, LocalBuffer::at(destination, len)),
                    false => self.lane_get(call, via, far, LocalBuffer::at(destination, len)),
                }
            },
            // SAFETY: the caller's promise.
            AccessPath::Staged(far) => unsafe { self.staged_get(call, far, destination, len) },
        }
    }

    /// [`ibput`](Self::ibput).
    ///
    /// # Safety
    ///
    /// `source` is readable where blocks of it lie.
    pub unsafe fn put_blocks_raw<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        source: *const T,
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        let in_world = self.check(call, dst, 0, pe)?;
        blocks.check(call, dst)?;
        if blocks.is_nothing::<T>() {
            return Ok(());
        }
        blocks.check_length::<T>(call)?;
        let Blocks {
            far, near, block, ..
        } = blocks;
        let span = self.peers.span(dst, pe);
        for i in 0..blocks.count {
            let from = source.wrapping_add(i * near);
            match span {
                Some(span) => {
                    let (at, bytes) = (i * far * size_of::<T>(), block * size_of::<T>());
                    // SAFETY: the caller's promise.
                    unsafe { span.part(at, bytes).copy_from_raw(from.cast(), bytes) };
                }
                None => {
                    let to = dst.range(i * far..i * far + block)?;
                    self.point();
                    self.guard(call, Access::Put, to, block, in_world, true)?;
                    self.count(Kind::Put, to, to.bytes(), in_world);
                    // SAFETY: the caller's promise.
                    unsafe {
                        let (from, bytes) = (from.cast(), to.bytes());
                        self.put_raw_by_path(call, to, from, bytes, in_world, false)?;
                    }
                }
            }
        }
        if span.is_some() {
            self.peers.note_store(pe);
        }
        Ok(())
    }

    /// [`ibget`](Self::ibget).
    ///
    /// # Safety
    ///
    /// `destination` is writable where blocks of it lie.
    pub unsafe fn get_blocks_raw<T: Pod>(
        &self,
        call: &'static str,
        destination: *mut T,
        src: Sym<T>,
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        let in_world = self.check(call, src, 0, pe)?;
        blocks.check(call, src)?;
        if blocks.is_nothing::<T>() {
            return Ok(());
        }
        blocks.check_length::<T>(call)?;
        let Some(span) = self.peers.span(src, pe) else {
            // SAFETY: the caller's promise.
            return unsafe { self.get_blocks_slow(call, destination, src, blocks, in_world) };
        };
        for i in 0..blocks.count {
            let (at, bytes) = (
                i * blocks.far * size_of::<T>(),
                blocks.block * size_of::<T>(),
            );
            let into = destination.wrapping_add(i * blocks.near);
            // SAFETY: the caller's promise.
            unsafe { span.part(at, bytes).copy_to_raw(into.cast(), bytes) };
        }
        self.order_read(span);
        Ok(())
    }

    /// [`put_signal`](Self::put_signal) of as many elements as `dst` has; with `nonblocking`, completed by the
    /// next quiet.
    ///
    /// # Safety
    ///
    /// `source` is readable for as many elements; of a nonblocking call unchanged until a quiet has
    /// returned, or if that fails until the world is dropped.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "OpenSHMEM's put_signal has these"
    )]
    #[track_caller]
    pub unsafe fn put_signal_raw<T: Pod>(
        &self,
        dst: Sym<T>,
        source: *const T,
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        if !signal.is_empty()
            && let Some(span) = self.peers.span(dst, pe)
            && let Some(word) = self.peers.word(signal, pe)
        {
            // SAFETY: the caller's promise.
            unsafe { span.copy_from_raw(source.cast(), dst.bytes()) };
            match op {
                SignalOp::Set => word.store_word(Width::W64, value, FenceSite::Signal),
                SignalOp::Add => {
                    word.rmw_word(Width::W64, AtomicOp::Add, (value, 0), FenceSite::Signal);
                }
            }
            self.peers.note_store(pe);
            return Ok(());
        }
        let word = signal;
        let signal = Signal { word, op, value };
        // SAFETY: the caller's promise.
        unsafe { self.put_signal_slow(dst, source, signal, pe, nonblocking) }
    }

    /// A fetching atomic whose result arrives by the next quiet: `operand` is what it adds or writes, `compare` what
    /// a compare-and-swap compares with.
    ///
    /// # Safety
    ///
    /// `result` is writable, and not accessed, until a quiet has returned; if that quiet fails,
    /// until the world is dropped.
    #[track_caller]
    pub unsafe fn atomic_nbi<T: AtomicValue>(
        &self,
        op: AtomicOp,
        result: *mut T,
        on: Sym<T>,
        (operand, compare): (T, T),
        pe: usize,
    ) -> Result<()> {
        let operands = (operand.bits(), compare.bits());
        // SAFETY: the caller's promise.
        unsafe { self.rmw_nbi("atomic_nbi", op, result, on, operands, pe) }
    }
}

/// The calls of everyone who waits.
macro_rules! calls {
    () => {
        /// Waits until `look` gives something, which looks at words of this PE's own symmetric memory and loads them
        /// with `Acquire`: the wait of [`wait_until`](Self::wait_until) for words that it cannot name. `what` says
        /// for what, when someone asks.
        pub fn wait_for<R>(
            &self,
            call: &'static str,
            what: &dyn Fn() -> String,
            look: impl FnMut() -> Option<R>,
        ) -> Result<R> {
            let tell = || ($crate::hang::WaitedFor::Any, what());
            let reason = WaitReason {
                call,
                needs: WaitsOn::AnyPeer,
                describe: &tell,
            };
            let found = wait(self, &reason, None, look)?;
            self.shared().see_gpu_data()?;
            Ok(found)
        }

        /// Drives what is under way, then looks once, as [`test`](Self::test) does.
        pub fn look_once<R>(&self, look: impl FnOnce() -> R) -> Result<R> {
            self.shared().point();
            Waiter::progress(self);
            self.shared().run_progress_hook("look_once")?;
            let found = look();
            self.shared().see_gpu_data()?;
            Ok(found)
        }
    };
}

impl Context<'_> {
    calls!();
}

impl SharedContext<'_> {
    calls!();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use crate::testing::spmd;
    use crate::{Blocks, Cmp, ContextOptions};

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
            let look = || (seen() > start).then_some(true);
            let look = || look().or_else(|| (Instant::now() > limit).then_some(false));
            assert!(world.wait_for("test", &|| "to be driven".into(), look)?);
            let start = seen();
            let look = || (seen() > start).then_some(true);
            let look = || look().or_else(|| (Instant::now() > limit).then_some(false));
            assert!(shared.wait_for("test", &|| "to be driven".into(), look)?);
            assert!(grown());
            world.look_once(|| ())?;
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

    #[test]
    fn m16_blocks_that_span_more_than_there_is_memory_are_refused() {
        spmd(1, |world| {
            let x = world.alloc::<u64>(4)?;
            let mut mine = [0u64; 1];
            let blocks = |near, count| Blocks {
                far: 1,
                near,
                block: 1,
                count,
            };
            // One block is where the first is, whatever comes after it.
            for (near, count, is_right) in [
                (usize::MAX, 1, true),
                (usize::MAX, 3, false),
                (usize::MAX / 8, 3, false),
            ] {
                let blocks = blocks(near, count);
                // SAFETY: one element, or none where it is refused, which the array has.
                let put = unsafe { world.put_blocks_raw("test", x, mine.as_ptr(), blocks, 0) };
                // SAFETY: as above.
                let got = unsafe { world.get_blocks_raw("test", mine.as_mut_ptr(), x, blocks, 0) };
                assert_eq!(
                    (put.is_ok(), got.is_ok()),
                    (is_right, is_right),
                    "{blocks:?}"
                );
            }
            world.free(x)
        })
        .unwrap();
    }
}
