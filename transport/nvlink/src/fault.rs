//! The driver's errors as a transport's.

use std::io;

use oxshmem_transport::Error;

use crate::NAME;

/// A call of the driver that failed, with what it was for.
#[cold]
pub(crate) fn driver(what: &str, error: &oxshmem_cuda::Error) -> Error {
    told(what, error.to_string())
}

/// As [`driver`], of a failure that is known in words only.
#[cold]
pub(crate) fn told(what: &str, why: String) -> Error {
    Error::Os {
        transport: NAME,
        call: what.to_owned(),
        source: io::Error::other(why),
    }
}

/// That this does not work here.
#[cold]
pub(crate) fn unavailable(error: &oxshmem_cuda::Error) -> Error {
    Error::Unavailable {
        transport: NAME,
        why: error.to_string(),
    }
}
