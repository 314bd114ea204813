//! Sessions: hints of a program about the operations that it will issue.

/// The operations of a session (OpenSHMEM `shmem_ctx_session_config_t` and options). A hint: it changes neither order
/// nor completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub(super) batch: bool,
    /// None if the program gave no number.
    pub(super) total_ops: Option<usize>,
}

impl Session {
    /// Many small operations follow each other: those to one PE may be posted to a NIC together, which takes
    /// less of its time, and be sent a little later.
    #[doc(alias = "SHMEM_CTX_SESSION_BATCH")]
    #[must_use]
    pub fn batch(self) -> Self {
        Session {
            batch: true,
            ..self
        }
    }

    /// The approximate number of operations.
    #[doc(alias = "SHMEM_CTX_SESSION_TOTAL_OPS")]
    #[must_use]
    pub fn total_ops(self, total_ops: usize) -> Self {
        Session {
            total_ops: Some(total_ops),
            ..self
        }
    }

    /// Whether it pays to post operations in batches.
    pub(crate) fn may_batch(self) -> bool {
        self.batch && self.total_ops.is_none_or(|total| total > 1)
    }
}
