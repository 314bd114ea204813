//! The state of the process: the job that it is a PE of, and its GPU once that is open.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::{Done, Failure};
use crate::job::Job;
use crate::pe::Pe;

/// The job, from the first init on.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

/// This PE's number and the number of PEs, while the library is initialized; below 0 else. Calls that ask for them wait for nobody.
static NUMBERS: [AtomicI32; 2] = [AtomicI32::new(-1), AtomicI32::new(-1)];

/// The job, for one thread at a time.
pub(crate) fn job() -> MutexGuard<'static, Option<Job>> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the numbers that [`my_pe`] and [`n_pes`] give.
pub(crate) fn set_numbers(me: i32, n: i32) {
    for (number, value) in NUMBERS.iter().zip([me, n]) {
        number.store(value, Ordering::Relaxed);
    }
}

fn number(which: usize) -> Option<i32> {
    Some(NUMBERS[which].load(Ordering::Relaxed)).filter(|number| *number >= 0)
}

/// This PE's number, while the library is initialized.
pub(crate) fn my_pe() -> Option<i32> {
    number(0)
}

/// The number of PEs, while the library is initialized.
pub(crate) fn n_pes() -> Option<i32> {
    number(1)
}

/// Does something with the job, if the library is initialized. The GPU may not be open yet.
pub(crate) fn with_job<R>(act: impl FnOnce(&mut Job) -> Done<R>) -> Done<R> {
    let mut job = job();
    let job = job.as_mut().filter(|job| job.is_initialized());
    act(job.ok_or(Failure::NotInitialized)?)
}

/// Does something with the PE and its GPU, which the first call opens: that one is collective.
pub(crate) fn with_pe<R>(call: &'static str, act: impl FnOnce(&mut Pe) -> Done<R>) -> Done<R> {
    with_job(|job| {
        let pe = job.open_gpu(call)?;
        pe.prepare_new_images(call)?;
        act(pe)
    })
}

/// Ends the job, if this process is a PE. A thread that is in a call keeps the state: then the process alone ends.
pub(crate) fn abort(status: i32) {
    if let Ok(job) = JOB.try_lock()
        && let Some(job) = &*job
    {
        job.abort(status);
    }
}
