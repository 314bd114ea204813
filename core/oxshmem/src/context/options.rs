//! Options of a context: the way that the program will use it.

use std::ops::BitOr;

/// The uses that a context is made for (OpenSHMEM's options of `shmem_ctx_create`), joined by `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextOptions(u32);

impl ContextOptions {
    /// Nothing special.
    pub const NONE: ContextOptions = ContextOptions(0);
    /// Used by the thread that made it alone. Changes nothing: a [`Context`](crate::Context) is always used
    /// by one thread at a time, which the compiler sees to, and takes no lock.
    #[doc(alias = "SHMEM_CTX_PRIVATE")]
    pub const PRIVATE: ContextOptions = ContextOptions(1);
    /// Used by several threads, one at a time. Changes nothing, as [`PRIVATE`](Self::PRIVATE).
    #[doc(alias = "SHMEM_CTX_SERIALIZED")]
    pub const SERIALIZED: ContextOptions = ContextOptions(2);
    /// Its fences and quiets need not order or complete this PE's stores, those through
    /// [`ptr`](crate::Context::ptr) and by [`write`](crate::Context::write) on other contexts: a quiet costs
    /// nothing where the context has issued nothing since the last one (M17, M19). The context's own operations
    /// are ordered and completed as ever.
    #[doc(alias = "SHMEM_CTX_NOSTORE")]
    pub const NOSTORE: ContextOptions = ContextOptions(4);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for ContextOptions {
    type Output = ContextOptions;
    fn bitor(self, other: Self) -> Self {
        ContextOptions(self.0 | other.0)
    }
}
