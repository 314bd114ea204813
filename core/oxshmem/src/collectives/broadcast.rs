//! Calls that give members each other's data as it is: broadcast, and all to all.

use bytemuck::Pod;

use super::select::{CollectiveAlgorithm, CollectiveKind};
use super::transfer::TransferPiece;
use super::{digest_of, place, share};
use crate::place::placed;
use crate::sync_area::CallSignature;
use crate::team::Team;
use crate::{Error, Result, Sym};

const BROADCAST: &str = "broadcast";

impl Team<'_> {
    /// Copies `src` of PE `root` of this team to `dst` of every member, the root included. Both have the
    /// same length; they are the same object or do not overlap.
    ///
    /// On return `dst` is updated here and `src` may be reused; other members may still be under way. Where all
    /// members load each other's memory and the data are few, a root waits for the others in one call of
    /// some tens only: nothing follows from its return about where they are, and where arguments differ (M36)
    /// a member may get the error from its next call of the team instead. If that does not come within 5 s, the members that
    /// know return, and the team's collective calls are over. Roots that differ so that each member waits for another are
    /// found after 5 s.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (from, to) = (world.alloc::<u64>(2)?, world.alloc::<u64>(2)?);
    ///         if world.my_pe() == 1 {
    ///             world.write(from, &[5, 6])?;
    ///         }
    ///         world.team().broadcast(to, from, 1)?;
    ///         assert_eq!(world.g(to.at(1)?, world.my_pe())?, 6);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As of every collective call: arguments that make no sense fail on every member, those that differ
    /// are told to all (M36), and a member that is lost or gives up ends it for all. After an error that only this PE may
    /// have, the loss of one or a time limit, the root may still be writing `dst`.
    #[doc(alias("shmem_broadcastmem", "shmem_broadcast", "nvshmem_broadcast"))]
    #[doc(alias("nvshmem_broadcastmem", "MPI_Bcast"))]
    #[track_caller]
    pub fn broadcast<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.spread(dst, src, root, true)
    }

    /// [`broadcast`](Self::broadcast) that leaves the root's own `dst` as it is: that of OpenSHMEM's active sets.
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias = "shmem_broadcast64")]
    #[track_caller]
    pub fn broadcast_to_others<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.spread(dst, src, root, false)
    }

    #[inline]
    #[track_caller]
    fn spread<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize, to_root: bool) -> Result<()> {
        placed(|| self.spread_inner(dst, src, root, to_root))
    }

    #[inline]
    fn spread_inner<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        root: usize,
        to_root: bool,
    ) -> Result<()> {
        let mut valid = self.check_pair(BROADCAST, dst, src);
        if root >= self.n_pes() {
            valid = valid.and(Err(Error::NoSuchPe {
                call: BROADCAST,
                pe: root,
                size: self.n_pes(),
            }));
        }
        self.spread_bytes(dst.to_bytes(), src.to_bytes(), (root, to_root), valid)
    }

    /// One text for all types: what few bytes cost is the call's own work.
    fn spread_bytes(
        &self,
        dst: Sym<u8>,
        src: Sym<u8>,
        (root, to_root): (usize, bool),
        mut valid: Result<()>,
    ) -> Result<()> {
        const CALL: &str = BROADCAST;
        let (world, core) = (self.world, self.core());
        let words = || format!("broadcast({}, {}, root {root})", place(dst), place(src));
        let digest = const { CallSignature::of(CALL) }.and(root as u64);
        let digest = digest.and(to_root.into());
        let digest = digest_of(digest, [dst, src]);
        let mut turn = self.turn(CALL, digest, &words);
        let (from, is_root) = (turn.pe(root), root == self.my_pe());
        match self.way(CollectiveKind::Broadcast, src) {
            CollectiveAlgorithm::Eager if core.mapped => {
                if valid.is_err() {
                    return turn.arrive(valid);
                }
                let ahead = turn.eager_slot(root, src.bytes())?;
                if !is_root {
                    let at = turn.consume(ahead, root)?;
                    return world.copy_between(CALL, dst, ahead.given, at);
                }
                let copied = world.copy_between(CALL, ahead.given, src, from);
                if copied.is_err() {
                    return turn.arrive(copied);
                }
                turn.publish(ahead)?;
                match to_root {
                    true => world.copy_between(CALL, dst, src, from),
                    false => Ok(()),
                }
            }
            CollectiveAlgorithm::Eager => {
                let given = turn.scratch()?.range(..src.bytes())?;
                if is_root {
                    let give = || world.copy_between(CALL, given, src, from);
                    valid = valid.and_then(|()| give());
                }
                turn.arrive(valid)?;
                match is_root {
                    true if to_root => world.copy_between(CALL, dst, src, from),
                    true => Ok(()),
                    false => world.copy_between(CALL, dst, given, from),
                }
            }
            CollectiveAlgorithm::Direct => {
                // Everyone's destination is ready and the root's source written.
                turn.arrive(valid)?;
                let root_is_idle = !to_root || dst.is_where(src);
                let copied = match &core.hosts {
                    Some(hosts) => {
                        // Once to each host, from where its others have it.
                        let fetcher = match hosts.is_near(root) {
                            true => self.my_pe(),
                            false => hosts.leader_for(root),
                        };
                        let near = fetcher == self.my_pe();
                        let fetched = match near && (to_root || !is_root) {
                            true => world.copy_between(CALL, dst, src, from),
                            false => Ok(()),
                        };
                        turn.arrive(fetched)?;
                        match near {
                            true => Ok(()),
                            false => world.copy_between(CALL, dst, dst, turn.pe(fetcher)),
                        }
                    }
                    None if root_is_idle && core.mapped && self.on_host(dst, src) => {
                        self.spread_shared(dst, src, root)
                    }
                    None if to_root || !is_root => world.copy_between(CALL, dst, src, from),
                    None => Ok(()),
                };
                // Everyone has read: the root's source may be reused.
                turn.arrive(copied)
            }
        }
    }

    /// The copies of a broadcast whose root has none to make for itself, among members who load and store each other's
    /// memory: it writes its share of each other's destination.
    fn spread_shared(&self, dst: Sym<u8>, src: Sym<u8>, root: usize) -> Result<()> {
        let (world, core, near) = (self.world, self.core(), self.core().near());
        let of_root = share::<u8>(src.len(), root, self.n_pes());
        if self.my_pe() == root {
            let (dst, given) = (dst.range(of_root.clone())?, src.range(of_root)?);
            let whole = src.len().saturating_mul(near);
            return self.around().skip(1).try_for_each(|member| {
                let to = (core.members.pe(member), whole);
                world.copy_part_out(BROADCAST, dst, given, to)
            });
        }
        let pieces = [0..of_root.start, of_root.end..src.len()].map(|part| {
            Ok(TransferPiece {
                from: src.range(part.clone())?,
                into: part,
                pe: core.members.pe(root),
            })
        });
        world.copy_pieces(BROADCAST, (dst, near), pieces.into_iter())
    }

    /// Gives the `i`-th of as many equal blocks of `src` as there are members to member `i`, where it is
    /// the block of `dst` with this PE's number. Both have the same length, and do not overlap. `dst` is written from this
    /// PE's call on, others may not have begun theirs; where the call fails, some of it may have been.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (me, n) = (world.my_pe() as u64, world.n_pes());
    ///         let (from, to) = (world.alloc::<u64>(n)?, world.alloc::<u64>(n)?);
    ///         world.write(from, &[10 * me, 10 * me + 1, 10 * me + 2])?; // one for each PE
    ///         world.team().alltoall(to, from)?;
    ///         let mut seen = [0; 3];
    ///         world.read(&mut seen, to)?;
    ///         assert_eq!(seen, [me, 10 + me, 20 + me]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias(
        "shmem_alltoallmem",
        "shmem_alltoall",
        "nvshmem_alltoall",
        "nvshmem_alltoallmem"
    ))]
    #[doc(alias = "MPI_Alltoall")]
    #[track_caller]
    pub fn alltoall<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        placed(|| self.alltoall_inner(dst, src))
    }

    fn alltoall_inner<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        const CALL: &str = "alltoall";
        let world = self.world;
        let words = || format!("alltoall({}, {})", place(dst), place(src));
        let digest = digest_of(const { CallSignature::of(CALL) }, [dst, src]);
        let (members, me) = (self.n_pes(), self.my_pe());
        let each = src.len() / members;
        let valid = self
            .check_apart(CALL, dst, src)
            .and_then(|()| self.check_blocks(CALL, src, each))
            .and_then(|()| world.check_pair(CALL, dst, src));
        let mut turn = self.turn(CALL, digest, &words);
        let (way, block) = (
            self.way(CollectiveKind::Alltoall, src),
            each * size_of::<T>(),
        );
        self.take_of_each(&mut turn, way, (dst, src), valid, |from, given| {
            let mine = given.range(me * block..(me + 1) * block)?;
            Ok((from * block..(from + 1) * block, mine))
        })
    }
}
