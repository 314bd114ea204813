//! Failures of calls: their messages, their codes, and the end of the job.

use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;

use oxshmem::Error;

use crate::numbers;

/// NVSHMEM's codes.
pub(crate) mod code {
    pub(crate) const SUCCESS: i32 = 0;
    pub(crate) const INVALID_VALUE: i32 = 1;
    pub(crate) const OUT_OF_MEMORY: i32 = 2;
    pub(crate) const NOT_SUPPORTED: i32 = 3;
    pub(crate) const GPU_NOT_SELECTED: i32 = 5;
    pub(crate) const INTERNAL: i32 = 7;
}

/// The reason why a call cannot be done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error.
    Core(Error),
    /// The program has not called an init, or has finalized.
    NotInitialized,
    /// An argument that makes no sense, in words.
    Argument(String),
    /// A call that is not there, in words: why, and the way out.
    NotSupported(String),
    /// The start did not succeed, in words.
    Start(String),
}

/// The result of a call.
pub(crate) type Done<R = ()> = Result<R, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Core(error)
    }
}

impl From<oxshmem::cuda::Error> for Failure {
    fn from(error: oxshmem::cuda::Error) -> Self {
        Failure::Start(error.to_string())
    }
}

impl From<oxshmem_bootstrap::Error> for Failure {
    fn from(error: oxshmem_bootstrap::Error) -> Self {
        Failure::Start(error.to_string())
    }
}

impl Failure {
    pub(crate) fn argument(what: impl Into<String>) -> Self {
        Failure::Argument(what.into())
    }

    fn code(&self) -> i32 {
        match self {
            Failure::Core(Error::OutOfMemory { .. }) => code::OUT_OF_MEMORY,
            Failure::Core(
                Error::Argument { .. } | Error::NoSuchPe { .. } | Error::OutOfRange { .. },
            )
            | Failure::Argument(_) => code::INVALID_VALUE,
            Failure::NotSupported(_) => code::NOT_SUPPORTED,
            Failure::Core(_) | Failure::Start(_) | Failure::NotInitialized => code::INTERNAL,
        }
    }

    fn words(&self) -> String {
        match self {
            Failure::Core(error) => error.to_string(),
            Failure::NotInitialized => {
                "oxshmem is not initialized; call nvshmem_init or nvshmemx_init_attr first, and nothing after the last nvshmem_finalize"
                    .into()
            }
            Failure::Argument(words) | Failure::NotSupported(words) | Failure::Start(words) => {
                words.clone()
            }
        }
    }
}

/// Prints a message on stderr. An error there is ignored: nobody could read of it.
#[cold]
pub(crate) fn print(message: &str) {
    let _ = std::io::stderr().write_all(format!("oxshmem: {message}\n").as_bytes());
}

/// Reports a call that failed.
#[cold]
pub(crate) fn report(call: &str, failure: &Failure) {
    let words = failure.words();
    // The library's own errors begin with the call's name.
    let again = words
        .strip_prefix(call)
        .and_then(|rest| rest.strip_prefix(": "));
    let words = again.unwrap_or(&words);
    match numbers::my_pe() {
        Some(me) => print(&format!("PE {me}: {call}: {words}")),
        None => print(&format!("{call}: {words}")),
    }
}

/// The status of a call: 0, or after a message one of the codes.
pub(crate) fn status(call: &'static str, done: Done) -> i32 {
    match done {
        Ok(()) => code::SUCCESS,
        Err(failure) => {
            report(call, &failure);
            failure.code()
        }
    }
}

/// The value of a call that returns no status, or the job's end.
pub(crate) fn or_end_job<R>(call: &'static str, done: Done<R>) -> R {
    match done {
        Ok(value) => value,
        Err(failure) => {
            report(call, &failure);
            end_job(1)
        }
    }
}

/// The function that ends the job of this process, if it is a PE: set by the module that keeps the job.
static ABORT: OnceLock<fn(c_int)> = OnceLock::new();

/// Has failures end the job by a function from here on. It takes no lock that a call holds.
pub(crate) fn abort_by(abort: fn(c_int)) {
    // The same function each time.
    let _ = ABORT.set(abort);
}

/// Ends the job with a status: every PE, whatever it is doing.
#[cold]
pub(crate) fn end_job(status: c_int) -> ! {
    if let Some(abort) = ABORT.get() {
        abort(status);
    }
    // SAFETY: ends the process. Without a launcher nobody else does; and no exit handler may wait for other PEs.
    unsafe { libc::_exit(status) }
}
