//! Hierarchical reductions, of a team over several hosts, each of whose members load and store each other's memory: on
//! each host first, then across hosts, then on each host again.
//!
//! The *eager* algorithm, through scratch memory, takes as many arrivals as on one host, and one more where hosts are
//! many. The team's arrival is itself hierarchical: once a host's members have arrived, and before another host is
//! signaled, each member folds their values and puts the result into its own scratch memory. After the arrival it
//! reads the result of each other host from one member there. With many hosts it reads those of its row of hosts,
//! arrives once more, and reads the result of each other row from one member there: about twice the square root of
//! the number of hosts in all.
//!
//! The *direct* algorithm takes four arrivals, one more than in one level: when all objects are ready, when each host
//! has folded its members' elements, when those are folded across hosts, and when all results are in place. The
//! elements are shared out among hosts as slices, and each slice among the members of a host: a member folds its
//! share of each slice on its host, then its share of its host's slice across hosts, and then gets its share of the
//! other slices from their hosts. So a host receives, and sends, at most twice an object's bytes, however many
//! members it has.
//!
//! Objects on a GPU stay with one level, in the team's order: no member's CPU loads another's GPU memory, and the
//! inner level needs that.

use std::ops::Range;

use crate::algorithm::reduce::{FoldBuffers, split};
use crate::args::share_of;
use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::Result;
use crate::fold::Reducible;
use crate::hierarchy::HostGroups;
use crate::select::{CollectiveAlgorithm, CollectiveKind, Payload};
use crate::team::TeamState;
use crate::transfer::{Destination, Transfer, TransferPiece};

/// A cache line, at which the result of a host's members begins in scratch memory.
const LINE: usize = 64;

/// The shares of an object's elements.
#[derive(Clone, Copy)]
struct Shares<'t> {
    /// Number of elements.
    len: usize,
    /// Bytes of one.
    size: usize,
    hosts: &'t HostGroups,
}

impl<'t> Shares<'t> {
    fn of<T: Reducible>(object: Elements<T>, hosts: &'t HostGroups) -> Self {
        Shares {
            len: object.len(),
            size: size_of::<T>(),
            hosts,
        }
    }

    /// The elements of the slice of host `slice` that are the share of the member at `place` on `host`.
    fn get(self, slice: usize, host: usize, place: usize) -> Range<usize> {
        let slice = share_of(self.size, self.len, slice, self.hosts.count());
        let members = self.hosts.members(host).len();
        let share = share_of(self.size, slice.len(), place, members);
        slice.start + share.start..slice.start + share.end
    }

    /// This PE's share of a slice.
    fn mine(self, slice: usize) -> Range<usize> {
        let (host, place) = self.hosts.mine();
        self.get(slice, host, place)
    }

    /// The parts of these elements of a slice that a host's members hold, by rank.
    fn held(
        self,
        slice: usize,
        host: usize,
        wanted: Range<usize>,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + Clone {
        let members = self.hosts.members(host).iter().enumerate();
        members.filter_map(move |(place, member)| {
            let theirs = self.get(slice, host, place);
            let part = theirs.start.max(wanted.start)..theirs.end.min(wanted.end);
            (!part.is_empty()).then_some((*member as usize, part))
        })
    }

    /// This PE's share of its own host's slice, in parts each of which one member of each host holds.
    fn parts(self) -> Vec<Range<usize>> {
        let (slice, _) = self.hosts.mine();
        let wanted = self.mine(slice);
        let held = |host| self.held(slice, host, wanted.clone());
        let starts =
            (0..self.hosts.count()).flat_map(|host| held(host).map(|(_, part)| part.start));
        let mut bounds: Vec<usize> = starts.chain([wanted.end]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let parts = bounds.windows(2).map(|pair| pair[0]..pair[1]);
        parts.collect()
    }
}

impl CollectiveCall<'_> {
    /// Folds `src` of all members, which are on these hosts, into `dst` of each. Both are in host memory.
    pub(crate) fn reduce_by_host<T: Reducible>(
        &mut self,
        hosts: &HostGroups,
        dst: Elements<T>,
        src: Elements<T>,
        ready: Result<FoldBuffers<T>>,
    ) -> Result<()> {
        let payload = Payload {
            bytes: src.bytes(),
            on_gpu: false,
        };
        match self.algorithm_of(CollectiveKind::Reduce, payload) {
            CollectiveAlgorithm::Eager => self.reduce_by_host_eager(hosts, dst, src, ready),
            CollectiveAlgorithm::Direct => self.reduce_by_host_direct(hosts, dst, src, ready),
        }
    }

    fn reduce_by_host_eager<T: Reducible>(
        &mut self,
        hosts: &HostGroups,
        dst: Elements<T>,
        src: Elements<T>,
        ready: Result<FoldBuffers<T>>,
    ) -> Result<()> {
        let (mut buffers, valid) = split(ready);
        let (team, transfer, bytes) = (self.team, self.transfer(), src.bytes());
        let second = bytes.next_multiple_of(LINE);
        let scratch = self.scratch()?;
        let source: Elements<T> = scratch.range(..bytes)?.cast()?;
        let of_host: Elements<T> = scratch.range(second..second + bytes)?.cast()?;
        let me = self.worker.engine.me;
        let copied = valid.and_then(|()| transfer.copy_from(source, src, me));
        self.arrive_doing(copied, &mut || match &mut buffers {
            Some(buffers) => {
                buffers.fold_into_own(transfer, of_host, source, local_pes(team, hosts))
            }
            None => Ok(()),
        })?;
        // Without buffers the arrival has failed.
        let Some(buffers) = &mut buffers else {
            return Ok(());
        };
        let pe = |rank| team.members.pe(rank);
        let row = hosts.row();
        let of_row = hosts
            .representatives()
            .skip(row.start)
            .take(row.len())
            .map(pe);
        if row.len() == hosts.count() {
            return buffers.fold_into_own(transfer, dst, of_host, of_row);
        }
        // In the half that the next arrival announces.
        let whole_row: Elements<T> = self.scratch()?.range(..bytes)?.cast()?;
        let folded = buffers.fold_into_own(transfer, whole_row, of_host, of_row);
        self.arrive(folded)?;
        buffers.fold_into_own(transfer, dst, whole_row, hosts.row_peers().map(pe))
    }

    fn reduce_by_host_direct<T: Reducible>(
        &mut self,
        hosts: &HostGroups,
        dst: Elements<T>,
        src: Elements<T>,
        ready: Result<FoldBuffers<T>>,
    ) -> Result<()> {
        let (buffers, valid) = split(ready);
        self.arrive(valid)?;
        // Without buffers the arrival has failed.
        let Some(mut buffers) = buffers else {
            return Ok(());
        };
        let (team, transfer) = (self.team, self.transfer());
        let shares = Shares::of(src, hosts);
        // Nobody else reads or writes a member's elements of these on this host, so that the destination may
        // be the source.
        let folded = (0..hosts.count()).try_for_each(|slice| {
            let mine = shares.mine(slice);
            let (into, from) = (dst.range(mine.clone())?, src.range(mine)?);
            buffers.fold_into_own(transfer, into, from, local_pes(team, hosts))
        });
        self.arrive(folded)?;
        let folded = fold_across(team, transfer, &mut buffers, shares, dst);
        self.arrive(folded)?;
        let gathered = gather_across(team, transfer, &mut buffers, shares, dst);
        self.arrive(gathered)
    }
}

/// Folds this PE's share of its host's slice across hosts, and puts it to the members of its host.
fn fold_across<T: Reducible>(
    team: &TeamState,
    transfer: Transfer<'_>,
    buffers: &mut FoldBuffers<T>,
    shares: Shares<'_>,
    dst: Elements<T>,
) -> Result<()> {
    let (slice, _) = shares.hosts.mine();
    shares.parts().into_iter().try_for_each(|part| {
        let holders = (0..shares.hosts.count()).flat_map(|host| {
            let held = shares.held(slice, host, part.clone());
            held.map(|(rank, _)| team.members.pe(rank))
        });
        let object = dst.range(part.clone())?;
        buffers.fold_each(transfer, object, holders, |at, values| {
            let into = object.range(at..at + values.len())?;
            local_pes(team, shares.hosts).try_for_each(|to| transfer.put_bytes(into, values, to))
        })
    })
}

/// Gets this PE's share of the other hosts' slices, and puts it to the members of its host.
fn gather_across<T: Reducible>(
    team: &TeamState,
    transfer: Transfer<'_>,
    buffers: &mut FoldBuffers<T>,
    shares: Shares<'_>,
    dst: Elements<T>,
) -> Result<()> {
    let me = transfer.worker.engine.me;
    let (host, size) = (shares.hosts.mine().0, size_of::<T>());
    let bytes: Elements<u8> = dst.cast()?;
    // From the next host on, so that not all read one at the same time.
    let count = shares.hosts.count();
    let others = (1..count).map(|step| (host + step) % count);
    let held = others
        .clone()
        .flat_map(|slice| shares.held(slice, slice, shares.mine(slice)));
    let pieces = held.map(|(rank, part)| {
        let part = part.start * size..part.end * size;
        Ok(TransferPiece {
            from: bytes.range(part.clone())?,
            into: part,
            pe: team.members.pe(rank),
        })
    });
    let into = Destination {
        object: bytes,
        writers: shares.hosts.members_on_host(),
    };
    transfer.copy_pieces(into, pieces)?;
    let max = buffers.values.len().max(1);
    let mut mine = others.map(|slice| shares.mine(slice));
    mine.try_for_each(|part| {
        part.clone().step_by(max).try_for_each(|start| {
            let object = dst.range(start..part.end.min(start + max))?;
            let Some(values) = buffers.values.get_mut(..object.len()) else {
                return Ok(());
            };
            transfer.get_bytes(values, object, me)?;
            local_pes(team, shares.hosts)
                .filter(|to| *to != me)
                .try_for_each(|to| transfer.put_bytes(object, values, to))
        })
    })
}

/// The PEs of this one's host, itself included, in the team's order.
fn local_pes<'t>(
    team: &'t TeamState,
    hosts: &'t HostGroups,
) -> impl Iterator<Item = usize> + Clone + 't {
    let local = hosts.local_members().iter();
    local.map(|rank| team.members.pe(*rank as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem_engine::group::Group;

    /// Each slice's elements are each host's members' once, and each part that is folded across hosts is one member's of
    /// each.
    #[test]
    fn shares_of_a_host_are_all_elements_once() {
        let host_maps: [&[u32]; 4] = [
            &[0, 1, 0, 1],
            &[0, 0, 1, 0, 0],
            &[0, 1, 2, 2, 1, 0, 0],
            &[0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
        ];
        for on in host_maps {
            for len in [0, 1, 9, 64, 1000, 4097] {
                let mut folded = vec![0; len];
                for me in 0..on.len() {
                    let groups = HostGroups::groups(&Group::all(on.len(), me), on).unwrap();
                    let hosts = HostGroups::of(groups, 8);
                    let shares = Shares {
                        len,
                        size: 8,
                        hosts: &hosts,
                    };
                    let (mine, place) = hosts.mine();
                    for part in shares.parts() {
                        part.clone().for_each(|at| folded[at] += 1);
                        for host in 0..hosts.count() {
                            let holders: Vec<_> = shares.held(mine, host, part.clone()).collect();
                            assert_eq!(holders.len(), 1);
                            let (member, held) = &holders[0];
                            assert!(on[*member] == host as u32 && *held == part);
                            assert!(host != mine || *member == me);
                        }
                    }
                    if place > 0 {
                        continue;
                    }
                    let all = (0..hosts.count()).flat_map(|slice| {
                        (0..hosts.members_on_host()).map(move |place| (slice, place))
                    });
                    let parts = all.map(|(slice, place)| shares.get(slice, mine, place));
                    assert!(parts.flatten().eq(0..len));
                }
                assert!(folded.iter().all(|times| *times == 1), "{on:?} {len}");
            }
        }
    }
}
