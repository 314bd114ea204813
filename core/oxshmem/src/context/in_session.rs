//! Sessions of a context: their begin and end.

use super::Context;
use super::session::Session;

impl Context<'_> {
    /// Begins a session. If one is open, its options are joined with the new ones, and `total_ops` is replaced if given.
    ///
    /// In a session, atomics that fetch nothing are posted in batches where that is faster. A batch is sent
    /// when it has as many operations as the lane takes, and by a quiet on this context, a wait that has to
    /// wait, or the session's end. A fence orders it, and need not send it.
    #[doc(alias = "shmem_ctx_session_start")]
    pub fn session_start(&self, session: Session) {
        let open = self.state.session.get().unwrap_or_default();
        let joined = Session {
            batch: session.batch || open.batch,
            total_ops: session.total_ops.or(open.total_ops),
        };
        self.state.session.set(Some(joined));
        self.worker.state.batches.set(joined.may_batch());
    }

    /// Ends the session, if one has begun.
    #[doc(alias = "shmem_ctx_session_stop")]
    pub fn session_stop(&self) {
        if self.state.session.take().is_some() {
            self.worker.state.batches.set(false);
            // A batch that finds no free slots now is left to the next wait.
            self.worker.progress();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::context::session::Session;
    use crate::testing::spmd;

    #[test]
    fn a_session_within_one_changes_what_it_names_alone() {
        let done = spmd(1, |world| {
            world.session_start(Session::default().total_ops(1));
            world.session_start(Session::default().batch());
            assert!(!world.worker.state.batches.get());
            world.session_start(Session::default());
            assert!(!world.worker.state.batches.get());
            world.session_start(Session::default().total_ops(9));
            assert!(world.worker.state.batches.get());
            world.session_stop();
            world.session_start(Session::default().total_ops(9));
            assert!(!world.worker.state.batches.get());
            Ok(())
        });
        done.unwrap();
    }
}
