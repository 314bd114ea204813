//! Broadcast: eager where members load each other's memory, else through scratch memory, or from object to object.

use crate::args::share;
use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::Result;
use crate::hierarchy::HostGroups;
use crate::select::{CollectiveAlgorithm, CollectiveKind};
use crate::transfer::TransferPiece;

/// The arguments of a broadcast.
#[derive(Clone, Copy, Debug)]
pub struct Broadcast {
    /// The destination, on every member.
    pub dst: Elements<u8>,
    /// The source, the root's.
    pub src: Elements<u8>,
    /// The root's rank in the team.
    pub root: usize,
    /// Whether the root's own destination is written, too.
    pub to_root: bool,
}

impl CollectiveCall<'_> {
    /// Copies the root's source to every member's destination.
    #[inline]
    pub fn broadcast(&mut self, args: Broadcast, valid: Result<()>) -> Result<()> {
        match self.algorithm(CollectiveKind::Broadcast, args.src) {
            CollectiveAlgorithm::Eager if self.team.mapped => self.broadcast_eager(args, valid),
            CollectiveAlgorithm::Eager => self.broadcast_by_scratch(args, valid),
            CollectiveAlgorithm::Direct => self.broadcast_direct(args, valid),
        }
    }

    #[inline]
    fn broadcast_eager(&mut self, args: Broadcast, valid: Result<()>) -> Result<()> {
        let Broadcast {
            dst,
            src,
            root,
            to_root,
        } = args;
        let (transfer, root_pe) = (self.transfer(), self.pe(root));
        if valid.is_err() {
            return self.arrive(valid);
        }
        let slot = self.eager_slot(root, src.bytes())?;
        if root != self.team.members.me() {
            let pe = self.consume(slot, root)?;
            return transfer.copy_from(dst, slot.payload, pe);
        }
        let copied = transfer.copy_from(slot.payload, src, root_pe);
        if copied.is_err() {
            return self.arrive(copied);
        }
        self.publish(slot)?;
        if to_root {
            transfer.copy_from(dst, src, root_pe)
        } else {
            Ok(())
        }
    }

    fn broadcast_by_scratch(&mut self, args: Broadcast, valid: Result<()>) -> Result<()> {
        let Broadcast {
            dst,
            src,
            root,
            to_root,
        } = args;
        let (transfer, root_pe) = (self.transfer(), self.pe(root));
        let is_root = root == self.team.members.me();
        let payload = self.scratch()?.range(..src.bytes())?;
        let copied = valid.and_then(|()| {
            if is_root {
                transfer.copy_from(payload, src, root_pe)
            } else {
                Ok(())
            }
        });
        self.arrive(copied)?;
        if !is_root {
            transfer.copy_from(dst, payload, root_pe)
        } else if to_root {
            transfer.copy_from(dst, src, root_pe)
        } else {
            Ok(())
        }
    }

    fn broadcast_direct(&mut self, args: Broadcast, valid: Result<()>) -> Result<()> {
        let Broadcast {
            dst,
            src,
            root,
            to_root,
        } = args;
        // Everyone's destination is ready and the root's source written.
        self.arrive(valid)?;
        let root_is_idle = !to_root || dst.is_where(src);
        let copied = match &self.team.hosts {
            Some(hosts) => self.broadcast_by_host(hosts, args)?,
            None if root_is_idle && self.team.mapped && self.are_on_host(dst, src) => {
                self.broadcast_shared(dst, src, root)
            }
            None if to_root || root != self.team.members.me() => {
                self.transfer().copy_from(dst, src, self.pe(root))
            }
            None => Ok(()),
        };
        // Everyone has read: the root's source may be reused.
        self.arrive(copied)
    }

    /// The copies of a broadcast over several hosts: once to each host, and there to its other members. The inner
    /// result is that of the last copy.
    fn broadcast_by_host(&mut self, hosts: &HostGroups, args: Broadcast) -> Result<Result<()>> {
        let Broadcast {
            dst,
            src,
            root,
            to_root,
        } = args;
        let (transfer, me) = (self.transfer(), self.team.members.me());
        let leader = if hosts.is_local(root) {
            me
        } else {
            hosts.leader_for(root)
        };
        let fetched = if leader == me && (to_root || root != me) {
            transfer.copy_from(dst, src, self.pe(root))
        } else {
            Ok(())
        };
        self.arrive(fetched)?;
        Ok(if leader == me {
            Ok(())
        } else {
            transfer.copy_from(dst, dst, self.pe(leader))
        })
    }

    /// The copies of a broadcast among members that load and store each other's memory, whose root has no copy to make
    /// for itself: it writes its share of every other member's destination.
    fn broadcast_shared(&self, dst: Elements<u8>, src: Elements<u8>, root: usize) -> Result<()> {
        let (members, transfer) = (&self.team.members, self.transfer());
        let of_root = share::<u8>(src.len(), root, members.len());
        if members.me() == root {
            let (dst, source) = (dst.range(of_root.clone())?, src.range(of_root)?);
            let whole = src.len().saturating_mul(self.team.members_on_host());
            return self
                .ring_order()
                .skip(1)
                .try_for_each(|rank| transfer.copy_to(dst, source, members.pe(rank), whole));
        }
        let pieces = [0..of_root.start, of_root.end..src.len()].map(|part| {
            Ok(TransferPiece {
                from: src.range(part.clone())?,
                into: part,
                pe: members.pe(root),
            })
        });
        transfer.copy_pieces(self.destination(dst), pieces.into_iter())
    }
}
