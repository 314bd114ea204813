//! [`copy`](super::copy) for architectures without an assembly routine: a loop of relaxed atomics.

use std::sync::atomic::Ordering::Relaxed;

use super::{word8, word16, word32, word64};

/// See [`super::copy_chunk`].
///
/// # Safety
///
/// As [`super::copy`].
#[cfg(any(miri, not(target_arch = "x86_64")))]
pub unsafe fn copy_chunk(dst: *mut u8, src: *const u8, len: usize, _total: usize) {
    // SAFETY: the contract is passed on.
    unsafe { copy(dst, src, len) }
}

/// [`copy`] of up to 8 bytes that are no aligned word.
///
/// # Safety
///
/// As [`super::copy`].
#[cfg(any(miri, not(target_arch = "x86_64")))]
pub unsafe fn copy_short(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the contract is passed on.
    unsafe { copy(dst, src, len) }
}

/// See [`super::prefetch_write`]: nothing here.
#[cfg(any(miri, not(target_arch = "x86_64")))]
pub fn prefetch_write(_: *const u8) {}

/// See [`super::prefetch_read`]: nothing here.
#[cfg(any(miri, not(target_arch = "x86_64")))]
pub fn prefetch_read(_: *const u8) {}

/// See [`super::copy`].
///
/// # Safety
///
/// As [`super::copy`].
pub unsafe extern "C" fn copy(mut dst: *mut u8, mut src: *const u8, mut len: usize) {
    while len > 0 {
        let size = block(dst, len);
        // SAFETY: `size` <= `len`, so both blocks are in range; `dst` is aligned to `size`.
        unsafe {
            let bytes = read(src, size, size.min(alignment(src)));
            write(dst, bytes, size);
            dst = dst.add(size);
            src = src.add(size);
        }
        len -= size;
    }
}

/// See [`super::fill_zero`].
///
/// # Safety
///
/// As [`super::fill_zero`].
pub unsafe fn fill_zero(mut dst: *mut u8, mut len: usize) {
    while len > 0 {
        let size = block(dst, len);
        // SAFETY: `size` <= `len`, and `dst` is aligned to `size`.
        unsafe {
            write(dst, [0; 8], size);
            dst = dst.add(size);
        }
        len -= size;
    }
}

/// The strategies of this architecture.
#[cfg(any(miri, not(target_arch = "x86_64")))]
pub fn strategies() -> Vec<(&'static str, super::strategies::Routine)> {
    vec![("portable", copy)]
}

/// The largest power of two up to 8 that fits `len` and divides the address.
fn block(at: *const u8, len: usize) -> usize {
    let fits = 1 << len.min(8).ilog2();
    fits.min(alignment(at))
}

/// The largest power of two up to 8 that divides the address.
fn alignment(at: *const u8) -> usize {
    1 << at.addr().trailing_zeros().min(3)
}

/// Reads `size` bytes as words of `word` bytes, in memory order.
///
/// # Safety
///
/// `src` is readable for `size` bytes and aligned to `word`, which divides `size`; both are powers
/// of two up to 8.
unsafe fn read(src: *const u8, size: usize, word: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    for at in (0..size).step_by(word) {
        // SAFETY: within `size` and aligned to `word` by the contract.
        unsafe {
            let from = src.add(at);
            match word {
                8 => bytes = word64(from).load(Relaxed).to_ne_bytes(),
                4 => bytes[at..at + 4].copy_from_slice(&word32(from).load(Relaxed).to_ne_bytes()),
                2 => bytes[at..at + 2].copy_from_slice(&word16(from).load(Relaxed).to_ne_bytes()),
                _ => bytes[at] = word8(from).load(Relaxed),
            }
        }
    }
    bytes
}

/// Writes the first `size` of `bytes` as one word.
///
/// # Safety
///
/// `dst` is writable for `size` bytes and aligned to it; a power of two up to 8.
unsafe fn write(dst: *mut u8, bytes: [u8; 8], size: usize) {
    let [a, b, c, d, ..] = bytes;
    // SAFETY: by the contract.
    unsafe {
        match size {
            8 => word64(dst).store(u64::from_ne_bytes(bytes), Relaxed),
            4 => word32(dst).store(u32::from_ne_bytes([a, b, c, d]), Relaxed),
            2 => word16(dst).store(u16::from_ne_bytes([a, b]), Relaxed),
            _ => word8(dst).store(a, Relaxed),
        }
    }
}
