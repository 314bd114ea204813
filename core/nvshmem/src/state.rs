//! The state of the process: the job that it is a PE of, and its GPU once that is open.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use oxshmem_bootstrap::Bootstrap;

use crate::failure::{self, Done, Failure};
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
    refuse_child()?;
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

/// The process that is the PE, once it has initialized; its children are none.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Notes that this process is the PE. Gives whether it is the first time.
pub(crate) fn note_process() -> bool {
    PROCESS.swap(std::process::id(), Ordering::Relaxed) == 0
}

/// Whether this process has initialized.
pub(crate) fn is_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// Refuses the calls of a child that a PE has forked.
pub(crate) fn refuse_child() -> Done {
    match PROCESS.load(Ordering::Relaxed) == 0 || is_process() {
        true => Ok(()),
        false => Err(Failure::argument(
            "this process was forked by a PE, and is none itself: make the calls in the PE, or start the program anew (exec)",
        )),
    }
}

/// The way to end the job. It keeps no bootstrap: a PE that drops its world is lost to the others.
static BOOTSTRAP: Mutex<Option<Weak<dyn Bootstrap>>> = Mutex::new(None);

/// Has failures end the job of a bootstrap.
pub(crate) fn abort_by(bootstrap: &Arc<dyn Bootstrap>) {
    *BOOTSTRAP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(bootstrap));
    failure::abort_by(abort);
}

/// Ends the job, if this process is a PE, whatever other threads do.
fn abort(status: i32) {
    let bootstrap = BOOTSTRAP.lock().unwrap_or_else(PoisonError::into_inner);
    let bootstrap = bootstrap
        .as_ref()
        .filter(|_| is_process())
        .and_then(Weak::upgrade);
    if let Some(bootstrap) = bootstrap {
        let why = format!("PE {} ended the job with status {status}", bootstrap.rank());
        bootstrap.abort(status, &why);
    }
}

/// The job for the end of the process. None where a thread stays in a call.
pub(crate) fn job_at_exit(patience: Duration) -> Option<MutexGuard<'static, Option<Job>>> {
    let end = Instant::now() + patience;
    loop {
        match JOB.try_lock() {
            Ok(job) => return Some(job),
            Err(TryLockError::Poisoned(job)) => return Some(job.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
