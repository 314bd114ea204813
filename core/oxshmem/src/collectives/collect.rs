//! Calls that put the members' objects one behind the other: collect and fcollect.

use bytemuck::Pod;

use super::select::{CollectiveAlgorithm, CollectiveKind, select};
use super::transfer::{Prefetched, TransferPiece};
use super::{check_apart, digest_of, on_what, place};
use crate::mapped::HostMemory;
use crate::place::placed;
use crate::sync_area::CallSignature;
use crate::team::{CollectiveCall, HostGroups, Team};
use crate::{Error, Result, Sym};

/// What a member tells of its part, before the part itself: its elements, and where they are.
const HEAD: usize = 2 * size_of::<u64>();

impl Team<'_> {
    /// Puts every member's `src`, one behind the other in the team's order, into `dst` of every member,
    /// which is as many times as long. They do not overlap. `dst` is written as that of an
    /// [`alltoall`](Self::alltoall).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let me = world.my_pe() as u64;
    ///         let (mine, all) = (world.alloc::<u64>(2)?, world.alloc::<u64>(6)?);
    ///         world.write(mine, &[me, 10 + me])?;
    ///         world.team().fcollect(all, mine)?;
    ///         let mut seen = [0; 6];
    ///         world.read(&mut seen, all)?;
    ///         assert_eq!(seen, [0, 10, 1, 11, 2, 12]);
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
        "shmem_fcollectmem",
        "shmem_fcollect",
        "nvshmem_fcollect",
        "nvshmem_fcollectmem"
    ))]
    #[doc(alias = "MPI_Allgather")]
    #[track_caller]
    pub fn fcollect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        placed(|| self.fcollect_inner(dst, src))
    }

    fn fcollect_inner<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        const CALL: &str = "fcollect";
        let core = self.core();
        let words = || format!("fcollect({}, {})", place(dst), place(src));
        let digest = digest_of(const { CallSignature::of(CALL) }, [dst, src]);
        let valid = self
            .check_apart(CALL, dst, src)
            .and_then(|()| self.check_blocks(CALL, dst, src.len()));
        let mut turn = self.turn(CALL, digest, &words);
        let (way, block) = (self.way(CollectiveKind::Fcollect, src), src.bytes());
        match (&core.hosts, way) {
            (Some(hosts), CollectiveAlgorithm::Direct) => {
                turn.arrive(valid)?;
                self.fcollect_by_host(&mut turn, hosts, dst.cast()?, src.cast()?)
            }
            _ => self.take_of_each(&mut turn, way, (dst, src), valid, |from, given| {
                Ok((from * block..(from + 1) * block, given))
            }),
        }
    }

    /// The rest of an [`fcollect`](Self::fcollect) when all are here: what another host has comes once to this one, by
    /// one of its members.
    fn fcollect_by_host(
        &self,
        turn: &mut CollectiveCall<'_>,
        hosts: &HostGroups,
        dst: Sym<u8>,
        src: Sym<u8>,
    ) -> Result<()> {
        let (world, call, me) = (self.world, turn.name(), self.my_pe());
        let into = (dst, self.core().near());
        let place_of = |from: usize| from * src.len()..(from + 1) * src.len();
        let fetcher = |from: usize| match hosts.is_near(from) {
            true => me,
            false => hosts.leader_for(from),
        };
        let first = self.around().filter(|from| fetcher(*from) == me);
        let pieces = first.map(|from| {
            Ok(TransferPiece {
                into: place_of(from),
                from: src,
                pe: turn.pe(from),
            })
        });
        let copied = world.copy_pieces(call, into, pieces);
        turn.arrive(copied)?;
        let others = self.around().filter(|from| fetcher(*from) != me);
        let pieces = others.map(|from| {
            Ok(TransferPiece {
                into: place_of(from),
                from: dst.range(place_of(from))?,
                pe: turn.pe(fetcher(from)),
            })
        });
        let copied = world.copy_pieces(call, into, pieces);
        turn.arrive(copied)
    }

    /// As [`fcollect`](Self::fcollect) of objects whose lengths may differ, 0 included, and which may be at
    /// different places. Gives how many elements of `dst`, which has room for them, there are now.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let me = world.my_pe();
    ///         let (mine, all) = (world.alloc::<u64>(2)?, world.alloc::<u64>(6)?);
    ///         world.write(mine, &[me as u64; 2])?;
    ///         // PE 0 gives nothing, PE 1 one number, PE 2 two.
    ///         let n = world.team().collect(all, mine.range(..me)?)?;
    ///         let mut seen = vec![0; n];
    ///         world.read(&mut seen, all)?;
    ///         assert_eq!(seen, [1, 2, 2]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast); where there are more elements than `dst` has room for.
    #[doc(alias("shmem_collectmem", "shmem_collect", "MPI_Allgatherv"))]
    #[track_caller]
    pub fn collect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        placed(|| self.gather(dst, src, self.check_apart("collect", dst, src)))
    }

    /// [`collect`](Self::collect) into the beginning of `dst`, of which `src` may be a later part: only what comes has
    /// to lie apart from it. For callers who know where their destination begins and not where it ends.
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect).
    #[track_caller]
    pub fn collect_into_rest<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        placed(|| {
            let live = self.world.check_live("collect", dst);
            self.gather(
                dst,
                src,
                live.and_then(|()| self.world.check_live("collect", src)),
            )
        })
    }

    fn gather<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, valid: Result<()>) -> Result<usize> {
        const CALL: &str = "collect";
        let (world, core) = (self.world, self.core());
        // What is given may differ, but for its kind of memory; what it is put into may not.
        let words = || {
            let (dst, given) = (place(dst), src.len());
            format!("collect({dst}, {given} elements{})", on_what(src))
        };
        let digest = digest_of(const { CallSignature::of(CALL) }, [dst]).and(size_of::<T>() as u64);
        let digest = digest.and(src.is_on_gpu().into());
        let mut turn = self.turn(CALL, digest, &words);
        let scratch = turn.scratch()?;
        // The first arrival is needed for the lengths anyway: what fits goes with them.
        let fits = |bytes: usize| {
            let way = select(
                world.shared.config.collectives,
                CollectiveKind::Collect,
                core,
                (HEAD + bytes, src.is_on_gpu()),
            );
            way == CollectiveAlgorithm::Eager
        };
        let told = valid.and_then(|()| {
            let own = world.own(scratch);
            own.copy_from(&(src.len() as u64).to_ne_bytes());
            own.part(8, 8).copy_from(&src.offset().to_ne_bytes());
            if !fits(src.bytes()) {
                return Ok(());
            }
            let given = scratch.range(HEAD..HEAD + src.bytes())?;
            world.copy_between(CALL, given, src.cast()?, world.my_pe())
        });
        turn.arrive(told)?;
        let parts = self.parts(CALL, &turn, src, scratch);
        // Who could not read what another told does not know whether there is another arrival.
        let parts = parts.inspect_err(|error| turn.abort(error))?;
        // Of elements without a size there may be more than there are numbers.
        let all = parts
            .iter()
            .fold(0_usize, |all, part| all.saturating_add(part.len()));
        if all > dst.len() || (all == usize::MAX && parts.len() > 1) {
            // The same on every member.
            return Err(Error::OutOfRange {
                call: CALL,
                start: 0,
                end: all,
                len: dst.len(),
            });
        }
        let dst = dst.range(..all)?;
        // All know where each part is: where one is in the way, all fail.
        for (from, part) in parts.iter().enumerate() {
            check_apart(CALL, dst, *part).map_err(|error| match turn.pe(from) {
                pe if pe == world.my_pe() => error,
                pe => Error::FailedElsewhere {
                    call: CALL,
                    pe,
                    why: error.to_string(),
                },
            })?;
        }
        let direct = |part: &Sym<T>| !fits(part.bytes()) && !part.is_empty();
        let mut end = 0;
        let pieces = parts.iter().enumerate().map(|(from, part)| {
            let start = end;
            end += part.bytes();
            Ok(TransferPiece {
                into: start..end,
                from: match direct(part) {
                    true => part.cast()?,
                    false => scratch.range(HEAD..HEAD + part.bytes())?,
                },
                pe: turn.pe(from),
            })
        });
        let copied = world.copy_pieces(CALL, (dst.cast()?, core.near()), pieces);
        match parts.iter().any(direct) {
            true => turn.arrive(copied)?,
            false => copied?,
        }
        Ok(all)
    }

    /// What each member gives to a collect: its elements and their place, as it told.
    fn parts<T: Pod>(
        &self,
        call: &'static str,
        turn: &CollectiveCall<'_>,
        src: Sym<T>,
        scratch: Sym<u8>,
    ) -> Result<Vec<Sym<T>>> {
        let world = self.world;
        let head = scratch.range(..HEAD)?;
        let limit = match src.is_on_gpu() {
            true => world.gpu_heap_limit() as u64,
            false => world.own_len() as u64,
        };
        let mut fetched = Prefetched::new();
        (0..self.n_pes())
            .map(|from| {
                if from == self.my_pe() {
                    return Ok(src);
                }
                let pe = turn.pe(from);
                let rest = (from..self.n_pes()).map(|from| turn.pe(from));
                let mut told = [0_u8; HEAD];
                world.pull_first(call, &mut told, head, (pe, rest), &mut fetched)?;
                let (words, _) = told.as_chunks::<8>();
                let [len, offset] =
                    [0, 1].map(|i| words.get(i).map_or(0, |w| u64::from_ne_bytes(*w)));
                let bytes = len.checked_mul(size_of::<T>() as u64);
                let end = bytes.and_then(|bytes| bytes.checked_add(offset));
                let aligned = offset.is_multiple_of(align_of::<T>() as u64);
                match end.is_some_and(|end| end <= limit && aligned) {
                    true => Ok(Sym::new(src.tag(), src.generation(), offset, len as usize)),
                    false => Err(Error::FailedElsewhere {
                        call,
                        pe,
                        why: format!("it tells of {len} elements at {offset}, which cannot be"),
                    }),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use oxshmem_example_tiny_transport::Tiny;
    use oxshmem_transport::Op;

    use crate::lane::tests::{Fate, LIMIT, watched};
    use crate::testing::spmd_with;
    use crate::{Result, Sym, Team, World};

    const PES: usize = 4;

    /// That PE 0 has all gets of so many bytes under way, one for each other PE, before it waits for the first.
    fn under_way_together(bytes: usize, call: fn(&Team<'_>, Sym<u64>, Sym<u64>) -> Result<()>) {
        let tiny = World::builder().transports(vec![Arc::new(Tiny::default())]);
        let ended = spmd_with(tiny.timeout(LIMIT), PES, |world| {
            let [dst, src] = [world.alloc(3 * PES)?, world.alloc(3 * PES)?];
            let begun = Arc::new(Mutex::new(Vec::new()));
            if world.my_pe() == 0 {
                let (asked, begun) = (watched(world), Arc::clone(&begun));
                let calls = Arc::clone(&asked);
                asked.decide(move |_, op| {
                    if matches!(op, Op::Get { into, .. } if into.len == bytes) {
                        begun.lock().unwrap().push(calls.calls());
                    }
                    Fate::Perform
                });
            }
            call(&world.team(), dst, src)?;
            if let [first, .., last] = begun.lock().unwrap()[..] {
                assert!(last - first < PES, "driven between them: {first} to {last}");
            }
            let count = begun.lock().unwrap().len();
            assert_eq!(count, if world.my_pe() == 0 { PES - 1 } else { 0 });
            Ok(())
        });
        ended.unwrap();
    }

    #[test]
    fn what_members_tell_of_their_parts_comes_together_by_lanes() {
        under_way_together(super::HEAD, |team, dst, src| {
            let all = team.collect(dst, src.range(..team.my_pe() % 2)?)?;
            assert_eq!(all, PES / 2);
            Ok(())
        });
    }

    #[test]
    fn blocks_that_were_packed_come_together_by_lanes() {
        under_way_together(24, |team, dst, src| team.alltoalls(dst, src, 1, 1, 3));
    }
}
