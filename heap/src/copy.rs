//! The copy primitive: the only code by which host bytes enter or leave symmetric memory.
//!
//! [`copy`], [`load`], [`store`] and [`fill_zero`] may run while another PE, a NIC or another thread
//! reads or writes the same bytes. Each naturally aligned word of 1, 2, 4 or 8 bytes inside the
//! destination range is written whole and exactly once, so that a peer which waits on such a word
//! sees either its old value or its new one. "Aligned" is judged at the destination; a source word
//! is read whole where it is as aligned as the destination word it goes to. Bytes outside the
//! destination range are never written, bytes outside the source range never read.
//!
//! On x86-64 a copy of 2, 4 or 8 bytes whose destination lies within one cache line is one load and one store, wherever
//! they begin: programs have words that are not aligned, and wait for them. Whether others see such a store whole is up
//! to the processor: within a cache line on Intel's, within 8 aligned bytes on AMD's (a Zen 4 tears what crosses 32).
//!
//! # Order
//!
//! All accesses are relaxed: within one call no order is promised between words. Towards earlier and
//! later stores and fences a copy's stores behave as ordinary stores do: non-temporal ones, which
//! by themselves may pass both, are fenced on either side.
//!
//! # Formal status
//!
//! A single aligned word goes through a Rust atomic, for which a race is defined. Rust has no
//! operation that copies many words with per-word atomicity, so longer copies are assembly: the
//! compiler sees an opaque call, may assume nothing about when the bytes change, and no Rust-level
//! data race exists in this crate. The result of concurrent accesses is then defined by the machine. On
//! x86-64, scalar accesses of up to 8 aligned bytes are atomic by the architecture; those within a cache
//! line by Intel's manual, and by AMD's only within 8 aligned bytes. The manuals do not promise that
//! wider vector accesses and `rep movsq` are made of whole words of 8 bytes; we rely on it, and the
//! tests check it, with concurrent readers and writers, on the machine that they run on. Other
//! architectures use a plain loop of relaxed atomics: slower, and defined by Rust's memory model alone.
//!
//! Nothing here spins, allocates, locks or makes a system call.

use std::mem::{MaybeUninit, align_of, size_of};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use bytemuck::Pod;

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

#[cfg(any(miri, not(target_arch = "x86_64")))]
use portable as bulk;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86_64 as bulk;

#[cfg(test)]
mod tests;

/// The copy strategies that this machine can run, by name, for benchmarks and tests. The last word
/// on each is [`copy`]'s contract; which of them `copy` uses at which length is its own affair.
#[doc(hidden)]
pub mod strategies {
    /// A strategy: destination, source, length in bytes.
    pub type Routine = unsafe extern "C" fn(*mut u8, *const u8, usize);

    /// All that this machine can run.
    #[must_use]
    pub fn all() -> Vec<(&'static str, Routine)> {
        super::bulk::strategies()
    }
}

/// Copies `len` bytes, which must not overlap, with the promises of the [module](self).
///
/// # Safety
///
/// `src` is readable and `dst` writable for `len` bytes during the call. The two ranges do not
/// overlap. No Rust reference to either range exists that forbids the access (`&mut` to the source,
/// `&` or `&mut` to the destination, other than to atomics). Other threads and processes may access
/// both ranges meanwhile, by this module, by atomics, or by assembly.
#[inline]
pub unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    if len > 8 {
        // SAFETY: the contract is passed on.
        return unsafe { bulk::copy(dst, src, len) };
    }
    // SAFETY: as above.
    unsafe { copy_word(dst, src, len) }
}

/// [`copy`] of one chunk of `total` bytes that this PE and others copy at about the same time. Where they are
/// more than caches hold, the copy bypasses those.
///
/// # Safety
///
/// As [`copy`].
#[inline]
pub unsafe fn copy_chunk(dst: *mut u8, src: *const u8, len: usize, total: usize) {
    // SAFETY: the contract is passed on.
    unsafe {
        if len > 8 {
            bulk::copy_chunk(dst, src, len, total);
        } else {
            copy_word(dst, src, len);
        }
    }
}

/// [`copy`] of up to 8 bytes.
///
/// # Safety
///
/// As [`copy`].
#[inline]
unsafe fn copy_word(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the contract is passed on.
    unsafe {
        if !copy_whole_word(dst, src, len) {
            bulk::copy_short(dst, src, len);
        }
    }
}

/// [`copy`] of one word of 1, 2, 4 or 8 bytes that is aligned on both sides. Gives false for anything else, and copies
/// nothing.
///
/// # Safety
///
/// As [`copy`].
#[inline(always)]
#[must_use]
pub unsafe fn copy_whole_word(dst: *mut u8, src: *const u8, len: usize) -> bool {
    let bits = dst.addr() | src.addr();
    match len {
        // SAFETY: in range by the contract, and both pointers are aligned by the guard.
        8 if bits.is_multiple_of(8) => unsafe {
            word64(dst).store(word64(src).load(Relaxed), Relaxed);
        },
        // SAFETY: as above.
        4 if bits.is_multiple_of(4) => unsafe {
            word32(dst).store(word32(src).load(Relaxed), Relaxed);
        },
        // SAFETY: as above.
        2 if bits.is_multiple_of(2) => unsafe {
            word16(dst).store(word16(src).load(Relaxed), Relaxed);
        },
        // SAFETY: as above; a byte is always aligned.
        1 => unsafe { word8(dst).store(word8(src).load(Relaxed), Relaxed) },
        _ => return false,
    }
    true
}

/// Reads a value, by one relaxed atomic access where its size is 1, 2, 4 or 8 and `src` is aligned
/// to that size; else as [`copy`] does.
///
/// # Safety
///
/// `src` is aligned to `align_of::<T>()` and readable for `size_of::<T>()` bytes, and [`copy`]'s
/// conditions on a source hold.
#[inline]
#[must_use]
pub unsafe fn load<T: Pod>(src: *const T) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let aligned = is_whole_word(src);
    let bytes = src.cast::<u8>();
    // SAFETY: `src` is readable for T's size by the contract and aligned to it by the guard;
    // `value` is ours, and written unaligned.
    unsafe {
        match size_of::<T>() {
            8 if aligned => value
                .as_mut_ptr()
                .cast::<u64>()
                .write_unaligned(word64(bytes).load(Relaxed)),
            4 if aligned => value
                .as_mut_ptr()
                .cast::<u32>()
                .write_unaligned(word32(bytes).load(Relaxed)),
            2 if aligned => value
                .as_mut_ptr()
                .cast::<u16>()
                .write_unaligned(word16(bytes).load(Relaxed)),
            1 => value
                .as_mut_ptr()
                .cast::<u8>()
                .write(word8(bytes).load(Relaxed)),
            size => bulk::copy(value.as_mut_ptr().cast(), bytes, size),
        }
    }
    // SAFETY: all of its bytes were written, and any bytes are a valid Pod value.
    unsafe { value.assume_init() }
}

/// Writes a value, by one relaxed atomic access where its size is 1, 2, 4 or 8 and `dst` is aligned
/// to that size; else as [`copy`] does.
///
/// # Safety
///
/// `dst` is aligned to `align_of::<T>()` and writable for `size_of::<T>()` bytes, and [`copy`]'s
/// conditions on a destination hold.
#[inline]
pub unsafe fn store<T: Pod>(dst: *mut T, value: T) {
    let aligned = is_whole_word(dst);
    let bytes = dst.cast::<u8>();
    let from = &raw const value;
    // SAFETY: `dst` is writable for T's size by the contract and aligned to it by the guard;
    // `value` is ours, initialised (Pod has no padding), and read unaligned.
    unsafe {
        match size_of::<T>() {
            8 if aligned => word64(bytes).store(from.cast::<u64>().read_unaligned(), Relaxed),
            4 if aligned => word32(bytes).store(from.cast::<u32>().read_unaligned(), Relaxed),
            2 if aligned => word16(bytes).store(from.cast::<u16>().read_unaligned(), Relaxed),
            1 => word8(bytes).store(from.cast::<u8>().read(), Relaxed),
            size => bulk::copy(bytes, from.cast(), size),
        }
    }
}

/// Prefetches the cache line of `at` for a store. A hint: it accesses nothing, any address is allowed, and without such
/// an instruction it does nothing.
#[inline(always)]
pub fn prefetch_write(at: *const u8) {
    bulk::prefetch_write(at);
}

/// Prefetches the cache line of `at` for a load, as [`prefetch_write`] does for a store.
#[inline(always)]
pub fn prefetch_read(at: *const u8) {
    bulk::prefetch_read(at);
}

/// Zeroes `len` bytes, each aligned word whole and once, as [`copy`] would.
///
/// # Safety
///
/// [`copy`]'s conditions on a destination.
pub unsafe fn fill_zero(dst: *mut u8, len: usize) {
    // SAFETY: the contract is passed on.
    unsafe { bulk::fill_zero(dst, len) }
}

/// Whether a value that is aligned for its type lies at a multiple of its size. For most types the
/// compiler knows.
#[inline]
fn is_whole_word<T>(at: *const T) -> bool {
    align_of::<T>() >= size_of::<T>() || at.addr().is_multiple_of(size_of::<T>())
}

/// The word at `at`, for one access.
///
/// # Safety
///
/// `at` is aligned to 8 and valid for the access made through the result; no plain access races.
#[inline]
unsafe fn word64<'a>(at: *const u8) -> &'a AtomicU64 {
    // SAFETY: by the caller's contract.
    unsafe { &*at.cast::<AtomicU64>() }
}

/// As [`word64`], for 4 bytes.
///
/// # Safety
///
/// `at` is aligned to 4; else as [`word64`].
#[inline]
unsafe fn word32<'a>(at: *const u8) -> &'a AtomicU32 {
    // SAFETY: by the caller's contract.
    unsafe { &*at.cast::<AtomicU32>() }
}

/// As [`word64`], for 2 bytes.
///
/// # Safety
///
/// `at` is aligned to 2; else as [`word64`].
#[inline]
unsafe fn word16<'a>(at: *const u8) -> &'a AtomicU16 {
    // SAFETY: by the caller's contract.
    unsafe { &*at.cast::<AtomicU16>() }
}

/// As [`word64`], for 1 byte.
///
/// # Safety
///
/// As [`word64`].
#[inline]
unsafe fn word8<'a>(at: *const u8) -> &'a AtomicU8 {
    // SAFETY: by the caller's contract.
    unsafe { &*at.cast::<AtomicU8>() }
}
