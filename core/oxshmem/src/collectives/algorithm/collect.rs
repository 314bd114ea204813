//! Collect and fcollect: concatenation of the members' sources in every member's destination.

use bytemuck::Pod;
use oxshmem_engine::memory::mapped::HostMemory;

use crate::collectives::algorithm::exchange::Part;
use crate::collectives::args::check_apart;
use crate::collectives::call::CollectiveCall;
use crate::collectives::hierarchy::HostGroups;
use crate::collectives::select::{CollectiveAlgorithm, CollectiveKind, Payload};
use crate::collectives::transfer::{Prefetched, TransferPiece};
use crate::error::{Error, Result};
use crate::sym::Sym;

/// Bytes of a member's header before its data: its number of elements, and their offset.
const HEADER: usize = 2 * size_of::<u64>();

impl CollectiveCall<'_> {
    /// Copies every member's source, one behind the other, to every member's destination.
    pub(crate) fn fcollect<T: Pod>(
        &mut self,
        dst: Sym<T>,
        src: Sym<T>,
        valid: Result<()>,
    ) -> Result<()> {
        let (algorithm, block) = (self.algorithm(CollectiveKind::Fcollect, src), src.bytes());
        let team = self.team;
        match (&team.hosts, algorithm) {
            (Some(hosts), CollectiveAlgorithm::Direct) => {
                self.arrive(valid)?;
                self.fcollect_by_host(hosts, dst.cast()?, src.cast()?)
            }
            _ => self.gather_parts(algorithm, dst, src, valid, |rank, from| {
                Ok(Part {
                    into: rank * block..(rank + 1) * block,
                    from,
                })
            }),
        }
    }

    /// The rest of an [`fcollect`](Self::fcollect) when all are here: the data of another host come once to this one, by
    /// one of its members.
    fn fcollect_by_host(&mut self, hosts: &HostGroups, dst: Sym<u8>, src: Sym<u8>) -> Result<()> {
        let (team, transfer) = (self.team, self.transfer());
        let me = team.members.me();
        let into = self.destination(dst);
        let block_of = |rank: usize| rank * src.len()..(rank + 1) * src.len();
        let leader = |rank: usize| {
            if hosts.is_local(rank) {
                me
            } else {
                hosts.leader_for(rank)
            }
        };
        let first = self.ring_order().filter(|rank| leader(*rank) == me);
        let pieces = first.map(|rank| {
            Ok(TransferPiece {
                into: block_of(rank),
                from: src,
                pe: team.members.pe(rank),
            })
        });
        let copied = transfer.copy_pieces(into, pieces);
        self.arrive(copied)?;
        let others = self.ring_order().filter(|rank| leader(*rank) != me);
        let pieces = others.map(|rank| {
            Ok(TransferPiece {
                into: block_of(rank),
                from: dst.range(block_of(rank))?,
                pe: team.members.pe(leader(rank)),
            })
        });
        let copied = transfer.copy_pieces(into, pieces);
        self.arrive(copied)
    }

    /// Copies every member's source, of any length and anywhere, one behind the other, to the beginning of every member's
    /// destination. Gives how many elements there are in all.
    pub(crate) fn collect<T: Pod>(
        &mut self,
        dst: Sym<T>,
        src: Sym<T>,
        valid: Result<()>,
    ) -> Result<usize> {
        let scratch = self.scratch()?;
        let headed = valid.and_then(|()| self.write_collect_header(src, scratch));
        self.arrive(headed)?;
        let parts = self.read_collect_headers(src, scratch);
        // A member that could not read another's header does not know whether there is another arrival.
        let parts = parts.inspect_err(|error| self.abort(error))?;
        let dst = self.check_collected(dst, &parts)?;
        let on_gpu = src.is_on_gpu();
        let direct =
            |part: &Sym<T>| !self.fits_behind_header(part.bytes(), on_gpu) && !part.is_empty();
        let mut end = 0;
        let pieces = parts.iter().enumerate().map(|(rank, part)| {
            let start = end;
            end += part.bytes();
            Ok(TransferPiece {
                into: start..end,
                from: if direct(part) {
                    part.cast()?
                } else {
                    scratch.range(HEADER..HEADER + part.bytes())?
                },
                pe: self.pe(rank),
            })
        });
        let into = self.destination(dst.cast()?);
        let copied = self.transfer().copy_pieces(into, pieces);
        if parts.iter().any(direct) {
            self.arrive(copied)?;
        } else {
            copied?;
        }
        Ok(dst.len())
    }

    /// Whether a member's data go with its header, in the first arrival, which is needed for the lengths anyway.
    fn fits_behind_header(&self, bytes: usize, on_gpu: bool) -> bool {
        let bytes = HEADER + bytes;
        let payload = Payload { bytes, on_gpu };
        self.algorithm_of(CollectiveKind::Collect, payload) == CollectiveAlgorithm::Eager
    }

    /// Writes this member's header, and its data where they fit.
    fn write_collect_header<T: Pod>(&self, src: Sym<T>, scratch: Sym<u8>) -> Result<()> {
        let own = self.context.own(scratch);
        own.copy_from(&(src.len() as u64).to_ne_bytes());
        own.part(8, 8).copy_from(&src.offset().to_ne_bytes());
        if !self.fits_behind_header(src.bytes(), src.is_on_gpu()) {
            return Ok(());
        }
        let payload = scratch.range(HEADER..HEADER + src.bytes())?;
        let me = self.context.my_pe();
        self.transfer().copy_from(payload, src.cast()?, me)
    }

    /// Checks that the destination has room for all parts and lies apart from them. Gives its beginning, for them.
    fn check_collected<T: Pod>(&self, dst: Sym<T>, parts: &[Sym<T>]) -> Result<Sym<T>> {
        let call = self.name();
        // Of elements without a size there may be more than there are numbers.
        let all = parts
            .iter()
            .fold(0_usize, |all, part| all.saturating_add(part.len()));
        if all > dst.len() || (all == usize::MAX && parts.len() > 1) {
            // The same on every member.
            return Err(Error::OutOfRange {
                call,
                start: 0,
                end: all,
                len: dst.len(),
            });
        }
        let dst = dst.range(..all)?;
        // All know where each part is: where one is in the way, all fail.
        for (rank, part) in parts.iter().enumerate() {
            check_apart(call, dst, *part).map_err(|error| match self.pe(rank) {
                pe if pe == self.context.my_pe() => error,
                pe => Error::FailedElsewhere {
                    call,
                    pe,
                    why: error.to_string(),
                },
            })?;
        }
        Ok(dst)
    }

    /// The parts that the members' headers describe.
    fn read_collect_headers<T: Pod>(&self, src: Sym<T>, scratch: Sym<u8>) -> Result<Vec<Sym<T>>> {
        let (context, call, transfer) = (self.context, self.name(), self.transfer());
        let (members, me) = (self.team.members.len(), self.team.members.me());
        let header = scratch.range(..HEADER)?;
        let limit = if src.is_on_gpu() {
            context.gpu_heap_limit() as u64
        } else {
            context.worker.engine.own_len() as u64
        };
        let mut prefetched = Prefetched::new();
        (0..members)
            .map(|rank| {
                if rank == me {
                    return Ok(src);
                }
                let pe = self.pe(rank);
                let rest = (rank..members).map(|rank| self.pe(rank));
                let mut bytes = [0_u8; HEADER];
                transfer.get_next(&mut bytes, header, (pe, rest), &mut prefetched)?;
                let (words, _) = bytes.as_chunks::<8>();
                let [len, offset] =
                    [0, 1].map(|i| words.get(i).map_or(0, |w| u64::from_ne_bytes(*w)));
                let bytes = len.checked_mul(size_of::<T>() as u64);
                let end = bytes.and_then(|bytes| bytes.checked_add(offset));
                let aligned = offset.is_multiple_of(align_of::<T>() as u64);
                if end.is_some_and(|end| end <= limit && aligned) {
                    return Ok(Sym::new(src.tag(), src.generation(), offset, len as usize));
                }
                Err(Error::FailedElsewhere {
                    call,
                    pe,
                    why: format!("it tells of {len} elements at {offset}, which cannot be"),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use oxshmem_example_tiny_transport::Tiny;
    use oxshmem_transport::Op;

    use crate::error::Result;
    use crate::sym::Sym;
    use crate::team::Team;
    use crate::testing::spmd_with;
    use crate::tests::lanes::{Fate, LIMIT, watched};
    use crate::world::World;

    const PES: usize = 4;

    /// Checks that PE 0 has all gets of so many bytes in flight, one for each other PE, before it waits for the first.
    fn are_in_flight_together(bytes: usize, call: fn(&Team<'_>, Sym<u64>, Sym<u64>) -> Result<()>) {
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
        are_in_flight_together(super::HEADER, |team, dst, src| {
            let all = team.collect(dst, src.range(..team.my_pe() % 2)?)?;
            assert_eq!(all, PES / 2);
            Ok(())
        });
    }

    #[test]
    fn blocks_that_were_packed_come_together_by_lanes() {
        are_in_flight_together(24, |team, dst, src| team.alltoalls(dst, src, 1, 1, 3));
    }
}
