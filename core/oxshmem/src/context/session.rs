//! Sessions: a program says what it is about to issue.

use super::Context;

/// What comes in a session (OpenSHMEM `shmem_ctx_session_config_t` and options). A hint: it changes no order
/// and no completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    batch: bool,
    total_ops: usize,
}

impl Default for Session {
    fn default() -> Self {
        Session {
            batch: false,
            total_ops: usize::MAX,
        }
    }
}

impl Session {
    /// Many small operations follow each other: what goes to one PE may be handed to a NIC together, which takes
    /// less of its time, and be on its way a little later.
    #[doc(alias = "SHMEM_CTX_SESSION_BATCH")]
    #[must_use]
    pub fn batch(self) -> Self {
        Session {
            batch: true,
            ..self
        }
    }

    /// There will be about so many operations.
    #[doc(alias = "SHMEM_CTX_SESSION_TOTAL_OPS")]
    #[must_use]
    pub fn total_ops(self, total_ops: usize) -> Self {
        Session { total_ops, ..self }
    }

    /// Whether it pays to gather operations.
    pub(super) fn gathers(self) -> bool {
        self.batch && self.total_ops > 1
    }
}

impl Context<'_> {
    /// Begins a session. In one that has begun, its options join those that it has.
    ///
    /// By it, atomics that fetch nothing are gathered where lanes gain by that. What was gathered is on its way
    /// when as many have come together as the lane takes, and after a quiet on this context, a wait that has to
    /// wait, or the session's end. A fence orders it, and need not send it.
    #[doc(alias = "shmem_ctx_session_start")]
    pub fn session_start(&self, session: Session) {
        let now = self.state.session.get();
        let batch = session.batch || now.is_some_and(|open| open.batch);
        self.state.session.set(Some(Session { batch, ..session }));
    }

    /// Ends the session, if one has begun.
    #[doc(alias = "shmem_ctx_session_stop")]
    pub fn session_stop(&self) {
        if self.state.session.take().is_some() {
            // What was gathered and finds no room now is the next wait's.
            self.progress();
        }
    }

    /// Whether small operations may be gathered.
    pub(crate) fn gathers(&self) -> bool {
        self.state.session.get().is_some_and(Session::gathers)
    }
}
