//! Collect and fcollect: concatenation of the members' sources in every member's destination.

use bytemuck::Pod;
use oxshmem_engine::memory::mapped::HostMemory;

use crate::algorithm::exchange::Part;
use crate::args::check_apart;
use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::hierarchy::HostGroups;
use crate::select::{CollectiveAlgorithm, CollectiveKind, Payload};
use crate::transfer::{Prefetched, TransferPiece};
use oxshmem_engine::memory::target::Target;

/// Bytes of a member's header before its data: its number of elements, and their offset.
pub const HEADER: usize = 2 * size_of::<u64>();

impl CollectiveCall<'_> {
    /// Copies every member's source, one behind the other, to every member's destination.
    pub fn fcollect<T: Pod>(
        &mut self,
        dst: Elements<T>,
        src: Elements<T>,
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

    /// The rest of an [`fcollect`](Self::fcollect) after the first arrival: each other host's data cross to this host
    /// once, fetched by its members.
    fn fcollect_by_host(
        &mut self,
        hosts: &HostGroups,
        dst: Elements<u8>,
        src: Elements<u8>,
    ) -> Result<()> {
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
    pub fn collect<T: Pod>(
        &mut self,
        dst: Elements<T>,
        src: Elements<T>,
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
            |part: &Elements<T>| !self.fits_behind_header(part.bytes(), on_gpu) && !part.is_empty();
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
    fn write_collect_header<T: Pod>(&self, src: Elements<T>, scratch: Elements<u8>) -> Result<()> {
        let own = self.worker.own(scratch);
        own.copy_from(&(src.len() as u64).to_ne_bytes());
        own.part(8, 8).copy_from(&src.offset().to_ne_bytes());
        if !self.fits_behind_header(src.bytes(), src.is_on_gpu()) {
            return Ok(());
        }
        let payload = scratch.range(HEADER..HEADER + src.bytes())?;
        let me = self.worker.engine.me;
        self.transfer().copy_from(payload, src.cast()?, me)
    }

    /// Checks that the destination has room for all parts and lies apart from them. Gives its beginning, for them.
    fn check_collected<T: Pod>(
        &self,
        dst: Elements<T>,
        parts: &[Elements<T>],
    ) -> Result<Elements<T>> {
        let call = self.name();
        // The sum may overflow: of elements without a size there may be any number.
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
        // All members know all parts: if one overlaps the destination, all fail.
        for (rank, part) in parts.iter().enumerate() {
            check_apart(call, dst, *part).map_err(|error| match self.pe(rank) {
                pe if pe == self.worker.engine.me => error,
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
    fn read_collect_headers<T: Pod>(
        &self,
        src: Elements<T>,
        scratch: Elements<u8>,
    ) -> Result<Vec<Elements<T>>> {
        let (worker, call, transfer) = (self.worker, self.name(), self.transfer());
        let (members, me) = (self.team.members.len(), self.team.members.me());
        let header = scratch.range(..HEADER)?;
        let limit = if src.is_on_gpu() {
            self.area.gpu_limit
        } else {
            worker.engine.own_len() as u64
        };
        let mut prefetched = Prefetched::default();
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
                    let identity = u64::from(src.generation()) << 32 | u64::from(src.tag());
                    // SAFETY: the end is at most the heap's limit, and so is the length.
                    let part =
                        unsafe { Target::new(identity, offset, len as usize * size_of::<T>()) };
                    return Ok(Elements::of_len(part, len as usize));
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
