//! Sessions: a program says what it is about to issue.

use super::Context;

/// What comes in a session (OpenSHMEM `shmem_ctx_session_config_t` and options). A hint: it changes no order
/// and no completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    batch: bool,
    /// None where nothing was said of it.
    total_ops: Option<usize>,
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
        Session {
            total_ops: Some(total_ops),
            ..self
        }
    }

    /// Whether it pays to gather operations.
    pub(super) fn gathers(self) -> bool {
        self.batch && self.total_ops.is_none_or(|total| total > 1)
    }
}

impl Context<'_> {
    /// Begins a session. In one that has begun, its options join those that it has, and how many operations come is changed
    /// where this says so.
    ///
    /// By it, atomics that fetch nothing are gathered where lanes gain by that. What was gathered is on its way
    /// when as many have come together as the lane takes, and after a quiet on this context, a wait that has to
    /// wait, or the session's end. A fence orders it, and need not send it.
    #[doc(alias = "shmem_ctx_session_start")]
    pub fn session_start(&self, session: Session) {
        let open = self.state.session.get().unwrap_or_default();
        self.state.session.set(Some(Session {
            batch: session.batch || open.batch,
            total_ops: session.total_ops.or(open.total_ops),
        }));
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

#[cfg(test)]
mod tests {
    use super::Session;
    use crate::testing::spmd;

    #[test]
    fn a_session_within_one_changes_what_it_names_alone() {
        let done = spmd(1, |world| {
            world.session_start(Session::default().total_ops(1));
            world.session_start(Session::default().batch());
            assert!(!world.gathers());
            world.session_start(Session::default());
            assert!(!world.gathers());
            world.session_start(Session::default().total_ops(9));
            assert!(world.gathers());
            world.session_stop();
            world.session_start(Session::default().total_ops(9));
            assert!(!world.gathers());
            Ok(())
        });
        done.unwrap();
    }
}
