//! The identity of a memory file on this machine.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::call::Outcome;
use crate::code::Code;

/// Device and inode number of a file.
pub(crate) fn identity(file: BorrowedFd<'_>) -> Outcome<(u64, u64)> {
    // SAFETY: all zeroes is a valid `stat`.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, and a place for the answer.
    match unsafe { libc::fstat(file.as_raw_fd(), &raw mut stat) } {
        0 => Ok((stat.st_dev, stat.st_ino)),
        _ => Err(Code::OPERATING_SYSTEM),
    }
}
