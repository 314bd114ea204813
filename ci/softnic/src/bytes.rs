//! Copies between memory that programs use meanwhile and buffers of the NIC. Aligned words of 8, 4 and 2
//! bytes are read and written whole, written from low to high addresses.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// The steps of a copy of `len` bytes at `addr`: offset and size of each, of aligned words where they fit.
fn steps(addr: usize, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == len {
            return None;
        }
        let (here, left) = (addr + at, len - at);
        let size = [8, 4, 2, 1]
            .into_iter()
            .find(|size| here.is_multiple_of(*size) && left >= *size)
            .unwrap_or(1);
        at += size;
        Some((at - size, size))
    })
}

/// Writes `from` to memory.
///
/// # Safety
///
/// `to` is valid for writes of as many bytes, which others access as atomics or not at all.
pub(crate) unsafe fn place(to: *mut u8, from: &[u8]) {
    // Release, of each word: a NIC's write of 16 aligned bytes is seen whole by whoever sees its end, and so are data
    // that were placed earlier.
    for (at, size) in steps(to.addr(), from.len()) {
        let part = &from[at..at + size];
        // SAFETY: inside the caller's range, aligned to its size by `steps`.
        unsafe {
            let here = to.add(at);
            match *part {
                [a, b, c, d, e, f, g, h] => {
                    let word = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
                    AtomicU64::from_ptr(here.cast()).store(word, Ordering::Release);
                }
                [a, b, c, d] => {
                    let word = u32::from_ne_bytes([a, b, c, d]);
                    AtomicU32::from_ptr(here.cast()).store(word, Ordering::Release);
                }
                [a, b] => {
                    let word = u16::from_ne_bytes([a, b]);
                    AtomicU16::from_ptr(here.cast()).store(word, Ordering::Release);
                }
                _ => AtomicU8::from_ptr(here).store(part[0], Ordering::Release),
            }
        }
    }
}

/// Appends `len` bytes of memory to `into`.
///
/// # Safety
///
/// `from` is valid for reads of as many bytes, which others access as atomics or not at all. Read-only memory is fine.
pub(crate) unsafe fn gather(from: *const u8, len: usize, into: &mut Vec<u8>) {
    into.reserve(len);
    for (at, size) in steps(from.addr(), len) {
        // SAFETY: inside the caller's range, aligned to its size by `steps`. Volatile: another agent writes it.
        unsafe {
            let here = from.add(at);
            match size {
                8 => into.extend(here.cast::<u64>().read_volatile().to_ne_bytes()),
                4 => into.extend(here.cast::<u32>().read_volatile().to_ne_bytes()),
                2 => into.extend(here.cast::<u16>().read_volatile().to_ne_bytes()),
                _ => into.push(here.read_volatile()),
            }
        }
    }
    // Acquire: what is read later is not older than this.
    fence(Ordering::Acquire);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_at_every_start_and_length() {
        let source: Vec<u8> = (1..=64).collect();
        for start in 0..9 {
            for len in 0..48 {
                let mut memory = [0u8; 64];
                // SAFETY: inside the array.
                unsafe { place(memory.as_mut_ptr().add(start), &source[..len]) };
                assert_eq!(memory[start..start + len], source[..len]);
                assert!(memory[start + len..].iter().all(|byte| *byte == 0));
                let mut back = Vec::new();
                // SAFETY: inside the array.
                unsafe { gather(memory.as_ptr().add(start), len, &mut back) };
                assert_eq!(back, source[..len]);
            }
        }
    }
}
