//! The state of the process: the job that it is a PE of, and its GPU once that is open.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::{Done, Failure};
use crate::job::Job;
use crate::pe::Pe;

/// The job, from the first init on.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

/// The job, for one thread at a time.
pub(crate) fn job() -> MutexGuard<'static, Option<Job>> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
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
