//! The fault that ends a job's collective calls.

use std::time::Duration;

use crate::error::Error;

/// The first thing that went wrong. It stays, and every later collective call fails with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Ranks that did not enter before the deadline.
    Missing { ranks: Vec<u32>, waited: Duration },
    /// A rank that left or died.
    Gone { rank: u32, orderly: bool },
    /// Ranks that called different things.
    Mismatch { what: String },
    /// The rendezvous ended.
    HubLost { why: String },
    /// A rank ended the job.
    Aborted { by: u32, status: i32, why: String },
}

impl Fault {
    /// The error with which `operation` fails.
    pub(crate) fn error(&self, operation: &'static str) -> Error {
        match self.clone() {
            Fault::Missing { ranks, waited } => Error::MissingRanks {
                operation,
                ranks,
                waited,
            },
            Fault::Gone { rank, orderly } => Error::PeerGone {
                operation,
                rank,
                orderly,
            },
            Fault::Mismatch { what } => Error::Mismatch { operation, what },
            Fault::HubLost { why } => Error::HubLost { operation, why },
            Fault::Aborted { by, status, why } => Error::Aborted {
                operation,
                by,
                status,
                why,
            },
        }
    }
}
