//! Copies by the host, order and completion.

use crate::failure::{Done, Failure, or_end_job, status};
use crate::host_call::{Until, on_own_stream};
use crate::state::with_job;
use crate::streams;
use crate::types::Element;

/// Makes a call on the library's stream, or ends the job.
macro_rules! on_own {
    ($call:ident, $until:ident, $work:expr) => {
        or_end_job($call, on_own_stream($call, Until::$until, $work))
    };
}

pub(crate) unsafe fn put<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    pe: i32,
) {
    // SAFETY: the caller's promise.
    on_own!(call, Done, |own, stream| unsafe {
        streams::queue_put(own, call, (dest, source, n), (pe, false), stream)
    });
}

pub(crate) unsafe fn put_nbi<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    pe: i32,
) {
    // SAFETY: the caller's promise.
    on_own!(call, Queued, |own, stream| unsafe {
        streams::queue_put(own, call, (dest, source, n), (pe, true), stream)
    });
}

pub(crate) unsafe fn get<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    pe: i32,
) {
    // SAFETY: the caller's promise.
    on_own!(call, Done, |own, stream| unsafe {
        streams::queue_get(own, call, (dest, source, n), (pe, false), stream)
    });
}

pub(crate) unsafe fn get_nbi<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    pe: i32,
) {
    // SAFETY: the caller's promise.
    on_own!(call, Queued, |own, stream| unsafe {
        streams::queue_get(own, call, (dest, source, n), (pe, true), stream)
    });
}

pub(crate) unsafe fn iput<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
    pe: i32,
) {
    // SAFETY: the caller's promise.
    on_own!(call, Done, |own, stream| unsafe {
        streams::queue_iput(own, call, (dest, source), (dst, sst), n, pe, stream)
    });
}

pub(crate) unsafe fn iget<T: Element>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
    pe: i32,
) {
    // SAFETY: the caller's promise.
    on_own!(call, Done, |own, stream| unsafe {
        streams::queue_iget(own, call, (dest, source), (dst, sst), n, pe, stream)
    });
}

pub(crate) unsafe fn p<T: Element>(call: &'static str, dest: *mut T, value: T, pe: i32) {
    on_own!(call, Queued, |own, stream| streams::queue_p(
        own, dest, value, pe, stream
    ));
}

pub(crate) unsafe fn g<T: Element>(call: &'static str, source: *const T, pe: i32) -> T {
    on_own!(call, Queued, |own, stream| streams::value_of(
        own, source, pe, stream
    ))
}

pub(crate) unsafe fn signal_fetch(call: &'static str, sig_addr: *mut u64) -> u64 {
    on_own!(call, Queued, |own, stream| {
        let me = own.world.my_pe() as i32;
        streams::value_of(own, sig_addr.cast_const(), me, stream)
    })
}

pub(crate) unsafe fn signal_counted_reset(call: &'static str, signal_addr: *mut u64) {
    on_own!(call, Done, |own, stream| {
        let me = own.world.my_pe() as i32;
        streams::queue_p(own, signal_addr, 0, me, stream)
    });
}

/// Completes what the host has begun, if it can have begun anything.
fn complete() -> Done {
    with_job(|job| job.opened().map_or(Ok(()), |pe| pe.quiet()))
}

/// Order is completion here: the host's calls wait for the GPU anyway.
pub(crate) unsafe fn fence(call: &'static str) {
    or_end_job(call, complete());
}

pub(crate) unsafe fn quiet(call: &'static str) {
    or_end_job(call, complete());
}

pub(crate) unsafe fn flush(call: &'static str) {
    or_end_job(call, complete());
}

/// The number of the queue pair that stands for the default way.
const DEFAULT_QP: i32 = 1;

/// All queue pairs are the default way: each handle is its number.
pub(crate) unsafe fn qp_create(
    call: &'static str,
    num_qps: i32,
    out_qp_array: *mut *mut i32,
) -> i32 {
    let make = || {
        let count = usize::try_from(num_qps)
            .ok()
            .filter(|_| !out_qp_array.is_null());
        let Some(count) = count else {
            return Err(Failure::argument(
                "give a number of queue pairs that is not below 0, and a place for the array of handles",
            ));
        };
        // SAFETY: an allocation of C's, which the program may free.
        let array = unsafe { libc::calloc(count.max(1), size_of::<i32>()) }.cast::<i32>();
        if array.is_null() {
            return Err(Failure::argument("there is no memory for so many handles"));
        }
        for i in 0..count {
            // SAFETY: the array has `count` places.
            unsafe { array.add(i).write(DEFAULT_QP) };
        }
        // SAFETY: the caller gives a place for a pointer.
        unsafe { out_qp_array.write(array) };
        Ok(())
    };
    status(call, make())
}
