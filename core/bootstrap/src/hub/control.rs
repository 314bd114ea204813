//! The state that a rendezvous' owner and its thread share, and the thread's words to the user.
//!
//! Each side sets fields under one lock and wakes the other by an event descriptor. The thread never waits for the owner.

use std::sync::{Condvar, Mutex, MutexGuard};

use crate::error::Result;
use crate::lock::unpoisoned;
use crate::log;
use crate::waits::WaitSnapshot;
use crate::wake::Wake;

/// An abort: a rank's word that ends the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortNotice {
    /// The rank that aborted.
    pub rank: u32,
    /// The status it gave.
    pub status: i32,
    /// The reason it gave.
    pub why: String,
}

impl AbortNotice {
    /// The notice in words, which call that rank `whom`.
    pub(crate) fn words(&self, whom: &str) -> String {
        let AbortNotice { rank, status, why } = self;
        // With status 0 nothing has failed.
        let did = if *status == 0 { "ended" } else { "aborted" };
        format!("{whom} {rank} {did} the job with status {status}: {why}")
    }

    /// Writes it to stderr, if that takes it at once.
    pub(super) fn say_at_once(&self) -> bool {
        log::say_at_once(&self.words("rank"))
    }
}

/// The thread's own ways to speak to the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Diagnostics {
    /// Reports an abort before any rank hears of it; gives whether it did.
    pub(super) report_abort: fn(&AbortNotice) -> bool,
    /// Writes a warning without waiting for its reader. Without it warnings are the owner's to write.
    pub(super) warn: Option<fn(&str)>,
}

/// Requests of the owner, and news of the thread.
#[derive(Debug, Default)]
pub(super) struct ControlState {
    /// Owner: end now.
    pub(super) stop: bool,
    /// Owner: ask all PEs for their waits.
    pub(super) ask: bool,
    /// Owner: these ranks' processes have ended.
    pub(super) ended: Vec<u32>,
    /// Thread: a rank ended the job.
    pub(super) abort: Option<AbortNotice>,
    /// Thread: the abort was reported before any rank heard of it.
    pub(super) abort_reported: bool,
    /// Thread: the ranks whose connections, or processes before they had one, ended without a goodbye and before an abort, first to
    /// last.
    pub(super) lost: Vec<u32>,
    /// Thread: all PEs' waits, for which the owner has asked.
    pub(super) snapshot: Option<WaitSnapshot>,
    /// Thread: how many ranks are connected and have not left.
    pub(super) present: usize,
    /// Thread: bytes that wait to be sent.
    pub(super) backlog: usize,
    /// Thread: warnings for the user.
    pub(super) warnings: Vec<String>,
}

/// The shared state, and the means to wake each side.
#[derive(Debug)]
pub(super) struct Control {
    state: Mutex<ControlState>,
    diagnostics: Diagnostics,
    /// Signalled when `present` or `backlog` change.
    pub(super) changed: Condvar,
    /// Wakes the hub's thread.
    pub(super) wake: Wake,
    /// Wakes the owner, if it waits in `poll`.
    pub(super) owner: Wake,
}

impl Control {
    pub(super) fn new(diagnostics: Diagnostics) -> Result<Control> {
        Ok(Control {
            state: Mutex::default(),
            diagnostics,
            changed: Condvar::new(),
            wake: Wake::new()?,
            owner: Wake::new()?,
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ControlState> {
        unpoisoned(self.state.lock())
    }

    /// Thread: warns the user, without waiting for anyone.
    pub(super) fn warn(&self, warning: String) {
        match self.diagnostics.warn {
            Some(warn) => warn(&warning),
            None => {
                self.lock().warnings.push(warning);
                self.owner.signal();
            }
        }
    }

    /// Thread: reports an abort before any rank hears of it; gives whether it did.
    pub(super) fn report_abort(&self, notice: &AbortNotice) -> bool {
        (self.diagnostics.report_abort)(notice)
    }
}
