//! Reductions of a team over several hosts, each of whose members load and store each other's memory: on each
//! host first, then across hosts, then on each host again.
//!
//! *By scratch memory* they take no arrival more than on one host, or one where hosts are many. The team's arrival goes by host itself:
//! when a host's members are here, and before another is told so, each folds what they gave, puts that into
//! its own scratch memory, and reads after the arrival what one member of each other host has there. Of many hosts it
//! reads a row's, meets all once more, and then reads what one member of each other row has of that: two
//! times the root of the hosts in all.
//!
//! *Direct* they take one more than in one level, four in all: when all objects are ready, when each host has
//! folded its members' elements, when those are folded across hosts, and when all is where it belongs. The
//! elements are shared out among hosts, and each such slice among the members of a host: a member folds its
//! share of each slice on its host, its share of its host's slice across hosts, and gets its share of the other
//! slices from there. So a host gets, and gives, no more than twice an object's bytes, however many members it has.
//!
//! Objects on a GPU stay with one level, in the team's order: no member's CPU loads another's GPU memory, which is
//! what the inner level is for.

use std::ops::Range;

use super::reduce::FoldBuffers;
use super::select::{CollectiveAlgorithm, CollectiveKind, select};
use super::transfer::TransferPiece;
use super::{Reducible, share_of};
use crate::team::{CollectiveCall, HostGroups, Team};
use crate::{Result, Sym};

/// A cache line, at which what a host's members fold to begins in scratch memory.
const LINE: usize = 64;

/// How the elements of an object are shared out.
#[derive(Clone, Copy)]
struct Shares<'t> {
    /// How many elements.
    len: usize,
    /// Bytes of one.
    size: usize,
    hosts: &'t HostGroups,
}

impl<'t> Shares<'t> {
    fn of<T: Reducible>(object: Sym<T>, hosts: &'t HostGroups) -> Self {
        Shares {
            len: object.len(),
            size: size_of::<T>(),
            hosts,
        }
    }

    /// The elements of the slice of host `slice` that are the share of the member at a place on `host`.
    fn get(self, slice: usize, host: usize, place: usize) -> Range<usize> {
        let slice = share_of(self.size, self.len, slice, self.hosts.count());
        let members = self.hosts.members(host).len();
        let share = share_of(self.size, slice.len(), place, members);
        slice.start + share.start..slice.start + share.end
    }

    /// Of each slice, this PE's share.
    fn mine(self, slice: usize) -> Range<usize> {
        let (host, place) = self.hosts.mine();
        self.get(slice, host, place)
    }

    /// What a host's members have of these elements of a slice, by their numbers in the team.
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

    /// This PE's share of its own host's slice, in parts each of which one member of each host has.
    fn parts(self) -> Vec<Range<usize>> {
        let (slice, _) = self.hosts.mine();
        let wanted = self.mine(slice);
        let held = |host| self.held(slice, host, wanted.clone());
        let starts =
            (0..self.hosts.count()).flat_map(|host| held(host).map(|(_, part)| part.start));
        let mut cuts: Vec<usize> = starts.chain([wanted.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let parts = cuts.array_windows().map(|[start, end]| *start..*end);
        parts.collect()
    }
}

impl Team<'_> {
    /// Folds `src` of all members, which are on these hosts, into `dst` of each. Both are in host memory.
    pub(super) fn reduce_by_host<T: Reducible>(
        &self,
        turn: &mut CollectiveCall<'_>,
        hosts: &HostGroups,
        bench: Option<FoldBuffers<T>>,
        (dst, src): (Sym<T>, Sym<T>),
        valid: Result<()>,
    ) -> Result<()> {
        let choices = self.world.shared.config.collectives;
        let given = (src.bytes(), false);
        match select(choices, CollectiveKind::Reduce, self.core(), given) {
            CollectiveAlgorithm::Eager => {
                self.reduce_by_scratch(turn, hosts, bench, (dst, src), valid)
            }
            CollectiveAlgorithm::Direct => {
                self.reduce_direct(turn, hosts, bench, (dst, src), valid)
            }
        }
    }

    fn reduce_by_scratch<T: Reducible>(
        &self,
        turn: &mut CollectiveCall<'_>,
        hosts: &HostGroups,
        mut bench: Option<FoldBuffers<T>>,
        (dst, src): (Sym<T>, Sym<T>),
        valid: Result<()>,
    ) -> Result<()> {
        let (world, call, bytes) = (self.world, turn.name(), src.bytes());
        let second = bytes.next_multiple_of(LINE);
        let scratch = turn.scratch()?;
        let given: Sym<T> = scratch.range(..bytes)?.cast()?;
        let of_host: Sym<T> = scratch.range(second..second + bytes)?.cast()?;
        let copied = valid.and_then(|()| world.copy_between(call, given, src, world.my_pe()));
        turn.arrive_doing(copied, &mut || match &mut bench {
            Some(bench) => self.fold_own(call, bench, of_host, given, self.near_pes(hosts)),
            None => Ok(()),
        })?;
        // Nobody comes here without.
        let Some(bench) = &mut bench else {
            return Ok(());
        };
        let pe = |member| self.core().members.pe(member);
        let row = hosts.row();
        let of_row = hosts
            .representatives()
            .skip(row.start)
            .take(row.len())
            .map(pe);
        if row.len() == hosts.count() {
            return self.fold_own(call, bench, dst, of_host, of_row);
        }
        // In the half that the next arrival announces.
        let whole_row: Sym<T> = turn.scratch()?.range(..bytes)?.cast()?;
        let folded = self.fold_own(call, bench, whole_row, of_host, of_row);
        turn.arrive(folded)?;
        self.fold_own(call, bench, dst, whole_row, hosts.row_peers().map(pe))
    }

    fn reduce_direct<T: Reducible>(
        &self,
        turn: &mut CollectiveCall<'_>,
        hosts: &HostGroups,
        bench: Option<FoldBuffers<T>>,
        (dst, src): (Sym<T>, Sym<T>),
        valid: Result<()>,
    ) -> Result<()> {
        let call = turn.name();
        turn.arrive(valid)?;
        // Nobody comes here without.
        let Some(mut bench) = bench else {
            return Ok(());
        };
        let bench = &mut bench;
        let shares = Shares::of(src, hosts);
        // Of these elements nobody else reads or writes a member's on this host, so that the destination may
        // be the source.
        let folded = (0..hosts.count()).try_for_each(|slice| {
            let mine = shares.mine(slice);
            let (into, from) = (dst.range(mine.clone())?, src.range(mine)?);
            self.fold_own(call, bench, into, from, self.near_pes(hosts))
        });
        turn.arrive(folded)?;
        let crossed = self.fold_across(call, bench, shares, dst);
        turn.arrive(crossed)?;
        let gathered = self.gather_across(call, bench, shares, dst);
        turn.arrive(gathered)
    }

    /// Folds this PE's share of its host's slice across hosts, and gives it to the members of its host.
    fn fold_across<T: Reducible>(
        &self,
        call: &'static str,
        bench: &mut FoldBuffers<T>,
        shares: Shares<'_>,
        dst: Sym<T>,
    ) -> Result<()> {
        let (slice, _) = shares.hosts.mine();
        shares.parts().into_iter().try_for_each(|part| {
            let holders = (0..shares.hosts.count()).flat_map(|host| {
                let held = shares.held(slice, host, part.clone());
                held.map(|(member, _)| self.core().members.pe(member))
            });
            let object = dst.range(part.clone())?;
            self.fold_each(call, bench, object, holders, |at, values| {
                let into = object.range(at..at + values.len())?;
                self.near_pes(shares.hosts)
                    .try_for_each(|to| self.world.put_bytes(call, into, values, to))
            })
        })
    }

    /// Gets this PE's share of the other hosts' slices, and gives it to the members of its host.
    fn gather_across<T: Reducible>(
        &self,
        call: &'static str,
        bench: &mut FoldBuffers<T>,
        shares: Shares<'_>,
        dst: Sym<T>,
    ) -> Result<()> {
        let (world, me) = (self.world, self.world.my_pe());
        let (host, size) = (shares.hosts.mine().0, size_of::<T>());
        let bytes: Sym<u8> = dst.cast()?;
        // From the next host on, so that not all read one at the same time.
        let count = shares.hosts.count();
        let others = (1..count).map(|step| (host + step) % count);
        let held = others
            .clone()
            .flat_map(|slice| shares.held(slice, slice, shares.mine(slice)));
        let pieces = held.map(|(member, part)| {
            let part = part.start * size..part.end * size;
            Ok(TransferPiece {
                from: bytes.range(part.clone())?,
                into: part,
                pe: self.core().members.pe(member),
            })
        });
        world.copy_pieces(call, (bytes, shares.hosts.near()), pieces)?;
        let most = bench.values.len().max(1);
        let mut mine = others.map(|slice| shares.mine(slice));
        mine.try_for_each(|part| {
            part.clone().step_by(most).try_for_each(|start| {
                let object = dst.range(start..part.end.min(start + most))?;
                let Some(values) = bench.values.get_mut(..object.len()) else {
                    return Ok(());
                };
                world.get_bytes(call, values, object, me)?;
                self.near_pes(shares.hosts)
                    .filter(|to| *to != me)
                    .try_for_each(|to| world.put_bytes(call, object, values, to))
            })
        })
    }

    /// The PEs of this one's host, itself included, in the team's order.
    fn near_pes<'t>(&'t self, hosts: &'t HostGroups) -> impl Iterator<Item = usize> + Clone + 't {
        let near = hosts.near_members().iter();
        near.map(|member| self.core().members.pe(*member as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::Group;

    /// Each slice's elements are each host's members' once, and what is folded across hosts is one member's of
    /// each.
    #[test]
    fn shares_of_a_host_are_all_elements_once() {
        let spread: [&[u32]; 4] = [
            &[0, 1, 0, 1],
            &[0, 0, 1, 0, 0],
            &[0, 1, 2, 2, 1, 0, 0],
            &[0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
        ];
        for on in spread {
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
                    let all = (0..hosts.count())
                        .flat_map(|slice| (0..hosts.near()).map(move |place| (slice, place)));
                    let parts = all.map(|(slice, place)| shares.get(slice, mine, place));
                    assert!(parts.flatten().eq(0..len));
                }
                assert!(folded.iter().all(|times| *times == 1), "{on:?} {len}");
            }
        }
    }
}
