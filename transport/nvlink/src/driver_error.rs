//! Errors of the CUDA driver as errors of the transport.

use std::io;

use oxshmem_transport::Error;

use crate::limits::NAME;

/// The error of a driver call that failed; `what` is its purpose.
#[cold]
pub(crate) fn driver_error(what: &str, error: &oxshmem_cuda::Error) -> Error {
    error_of(what, error.to_string())
}

/// As [`driver_error`], for a failure that is known in words only.
#[cold]
pub(crate) fn error_of(what: &str, why: String) -> Error {
    Error::Os {
        transport: NAME,
        call: what.to_owned(),
        source: io::Error::other(why),
    }
}

/// The error where the driver does not work on this machine.
#[cold]
pub(crate) fn unavailable(error: &oxshmem_cuda::Error) -> Error {
    Error::Unavailable {
        transport: NAME,
        why: error.to_string(),
    }
}
