//! The counting of a context's operations, on the slow branch.

use bytemuck::Pod;
use oxshmem_engine::route::path::Path;
use oxshmem_transport::MemoryKind;

use super::counters::{FIRST_TRANSPORT, Kind, OWN_MEMORY, STAGED, Stats};
use crate::context::Context;
use crate::sym::Sym;

impl Context<'_> {
    /// Counts an operation of the program's towards a PE (its number in the world), if statistics are wanted.
    #[inline]
    pub(crate) fn count<T: Pod>(&self, kind: Kind, on: Sym<T>, bytes: usize, pe: usize) {
        if let Some(stats) = &self.pe.stats {
            let memory = self.kind_of(on).unwrap_or(MemoryKind::Host);
            self.count_in(stats, kind, (memory, on.is_nic()), bytes, pe);
        }
    }

    // Outlined: otherwise compilers would have the fast branch prepare for it.
    #[cold]
    #[inline(never)]
    fn count_in(
        &self,
        stats: &Stats,
        kind: Kind,
        (memory, is_nic): (MemoryKind, bool),
        bytes: usize,
        pe: usize,
    ) {
        let paths = self.worker.engine.routes.paths_to(pe);
        let path = match kind {
            Kind::Put | Kind::Get | Kind::PutSignal => paths.copies(memory),
            Kind::Atomic if is_nic => paths.nic,
            Kind::Atomic => paths.atomics(memory),
        };
        let path = match (path, path.transport()) {
            (Path::Staged, _) => STAGED,
            _ if pe == self.worker.engine.me => OWN_MEMORY,
            (_, Some(transport)) => FIRST_TRANSPORT + transport,
            // The call is about to fail.
            _ => return,
        };
        stats.count(path, kind, bytes);
    }
}
