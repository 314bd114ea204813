//! The choice of the access path to a symmetric object at a PE: this PE's CPU, a lane, or staging.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::MemoryKind;

use crate::error::{Error, Result};
use crate::lane::endpoint::Endpoint;
use crate::lane::remote::{AtomicsBy, RemoteTarget};
use crate::memory::simulated::HostSpan;
use crate::memory::target::Target;
use crate::order::op_set::OpKind;
use crate::route::path::Path;
use crate::route::table::refusals;
use crate::worker::Worker;

/// An object at a PE as the slow branch reaches it.
#[derive(Debug)]
pub enum AccessPath<'w> {
    /// By this PE's CPU.
    Mapped(HostSpan<'w>),
    /// By a lane of this transport.
    Lane(&'w Endpoint, RemoteTarget),
    /// Through host memory, by the PE's process: GPU memory only.
    Staged(RemoteTarget),
}

impl Worker {
    /// The access path of the slow branch to an object at a PE, by its number in the world. The caller has
    /// checked both.
    pub fn access_path(
        &self,
        op: OpKind,
        target: impl Into<Target>,
        pe: usize,
    ) -> Result<AccessPath<'_>> {
        let target = target.into();
        // Pairs with the Release in Liveness::mark_lost: a null base implies that the flag is visible.
        fence(Ordering::Acquire);
        if self.engine.liveness.is_lost(pe) {
            return Err(Error::PeerLost {
                call: self.call(),
                pe,
            });
        }
        let Some(kind) = target.kind_in(self.tag) else {
            return Err(Error::Foreign { call: self.call() });
        };
        let paths = self.engine.routes.paths_to(pe);
        let nic = op == OpKind::Atomic && target.is_nic();
        let path = match op {
            OpKind::Put => paths.copies(kind),
            _ if nic => paths.nic,
            _ => paths.atomics(kind),
        };
        let own = pe == self.engine.me && path != Path::None;
        if kind == MemoryKind::Host && !nic && (own || path.is_mapped()) {
            let simulation = self.engine.simulation.as_ref();
            let (offset, bytes) = (target.offset(), target.len());
            if let Some(span) = simulation.and_then(|s| s.at(op, pe, offset, bytes)) {
                return Ok(AccessPath::Mapped(HostSpan::Simulated(span)));
            }
            let span = match op {
                OpKind::Put => self.peers.span_of(target, pe),
                _ => self.peers.word_of(target, pe),
            };
            if let Some(span) = span {
                return Ok(AccessPath::Mapped(HostSpan::Mapped(span)));
            }
            // A PE's own memory needs no transport: accesses by lanes are coherent with its CPU.
            if own {
                return Ok(AccessPath::Mapped(self.own(target)));
            }
        }
        let remote = RemoteTarget {
            pe,
            kind,
            offset: target.offset(),
            atomics: match path {
                _ if nic => AtomicsBy::Nic,
                Path::Message(_) => AtomicsBy::TargetCpu,
                _ => AtomicsBy::Transport,
            },
        };
        if path == Path::Staged {
            return Ok(AccessPath::Staged(remote));
        }
        let transport = path.transport();
        match transport.and_then(|index| self.state.lanes.endpoints.get(index)) {
            Some(endpoint) => Ok(AccessPath::Lane(endpoint, remote)),
            None => Err(self.unreachable(op, kind, pe)),
        }
    }

    /// The error of an object that no path leads to.
    #[cold]
    fn unreachable(&self, op: OpKind, kind: MemoryKind, pe: usize) -> Error {
        Error::Unreachable {
            call: self.call(),
            from: self.engine.me,
            pe,
            why: match (kind, op) {
                (MemoryKind::Host, OpKind::Put) => {
                    let route = self.engine.routes.get(pe);
                    route.as_ref().map(refusals).unwrap_or_default()
                }
                (kind, OpKind::Put) => {
                    let explained = self.engine.routes.explain(pe);
                    let route = explained.and_then(|explained| explained.gpu);
                    let why = route.as_ref().map(refusals).unwrap_or_default();
                    format!("no transport here carries {kind} memory to it: {why}")
                }
                (kind, _) => {
                    format!("no transport here performs atomics on its {kind} memory as a CPU does")
                }
            },
        }
    }
}
