//! Calls by which programs that are built for the race detector tell it of their hosts.

use std::ffi::c_int;

use crate::driver::is_forked;
use crate::race::{self, Completes, HostCall, Operand, Place};

/// The bit of a call that completes nonblocking ones, above those of its addresses; a fence's bit is the next.
const QUIET: u32 = 1 << 6;
const FENCE: u32 = 1 << 7;

/// This process's host calls a library by which others may hear of what it knows, with these arguments. `about` has a bit for each that is an
/// address, and those above. `meeting` is the number of a meeting of all processes, from 1 on, or 0. Gives which of the addresses
/// are of GPU memory.
///
/// # Safety
///
/// Six words can be read there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn softcuda_host_calls(
    arguments: *const [usize; 6],
    about: u32,
    meeting: u64,
) -> u32 {
    race::host_calls(&HostCall {
        // SAFETY: so many words can be read there (`# Safety`).
        arguments: unsafe { *arguments },
        addresses: about & (QUIET - 1),
        completes: match about {
            quiet if quiet & QUIET != 0 => Some(Completes::Quiet),
            fence if fence & FENCE != 0 => Some(Completes::Fence),
            _ => None,
        },
        meeting,
    })
}

/// The call is over. If `heard` is not 0, the host has heard of what others know: by a barrier, a wait for a word, and their kin.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn softcuda_host_returns(heard: c_int, meeting: u64) {
    race::host_returns(heard != 0, meeting);
}

/// The host makes a nonblocking call for bytes of GPU memory. `kind` is the operand's number, and 8 more if it is written.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn softcuda_host_operand(at: usize, len: usize, kind: u32) {
    race::host_operand(at, len, Operand::of(kind & 7), kind & 8 != 0);
}

/// Code of the host accesses memory, at a place in the program.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn softcuda_host_access(at: usize, len: usize, writes: c_int, pc: usize) {
    // In a forked child a lock may be held by a thread that is not there.
    if !is_forked() {
        race::host_accesses(Place { at, len, pc }, writes != 0);
    }
}
