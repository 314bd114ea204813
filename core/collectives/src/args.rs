//! Arguments of collective calls: checks, words for messages, and shares of the work.

use std::ops::Range;

use bytemuck::Pod;

use crate::elements::Elements;
use crate::error::{Error, Result};

/// Checks that two objects do not overlap.
pub fn check_apart<T: Pod>(call: &'static str, dst: Elements<T>, src: Elements<T>) -> Result<()> {
    let (d, s) = (dst.offset(), src.offset());
    let apart = d + dst.bytes() as u64 <= s || s + src.bytes() as u64 <= d;
    if apart || dst.is_empty() || src.is_empty() || dst.tag() != src.tag() {
        return Ok(());
    }
    Err(Error::Argument {
        call,
        what: "destination and source overlap; use two objects".into(),
    })
}

/// An object in words.
pub fn describe<T: Pod>(sym: Elements<T>) -> String {
    format!(
        "{} bytes at {}{} (allocation {})",
        sym.bytes(),
        sym.offset(),
        memory_suffix(sym),
        sym.generation()
    )
}

/// An object's kind of memory in words, empty for host memory.
pub fn memory_suffix<T: Pod>(sym: Elements<T>) -> &'static str {
    if sym.is_on_gpu() {
        " in GPU memory"
    } else {
        ""
    }
}

/// The share of `len` elements that member `rank` works on, in whole cache lines where possible.
pub(crate) fn share<T>(len: usize, rank: usize, members: usize) -> Range<usize> {
    share_of(size_of::<T>(), len, rank, members)
}

/// [`share`] of elements of `size` bytes.
pub(crate) fn share_of(size: usize, len: usize, rank: usize, members: usize) -> Range<usize> {
    let line = (64 / size.max(1)).max(1);
    let lines = len.div_ceil(line) as u128;
    let bound = |rank: usize| {
        let at = (lines * rank as u128 / members.max(1) as u128) as usize;
        (at * line).min(len)
    };
    bound(rank)..bound(rank + 1)
}

#[cfg(test)]
mod tests {
    use crate::args::share;

    #[test]
    fn shares_are_all_elements_once_and_in_whole_lines() {
        for len in [0, 1, 7, 8, 9, 100, 1 << 20] {
            for members in [1, 2, 3, 7, 64] {
                let mut end = 0;
                for rank in 0..members {
                    let share = share::<u64>(len, rank, members);
                    assert_eq!(share.start, end);
                    assert!(share.start.is_multiple_of(8) || share.start == len);
                    end = share.end;
                }
                assert_eq!(end, len);
            }
        }
    }
}
