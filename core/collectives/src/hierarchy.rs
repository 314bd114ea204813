//! The members of a team by host, for calls that cross each network link once.

use std::ops::Range;

use oxshmem_engine::group::Group;

/// The number of hosts from which on their data are read in two steps: those of a row of hosts, then those of a member
/// of each row. The additional arrival then costs less than reading all hosts'.
pub(crate) const MIN_HOSTS_IN_ROWS: usize = 32;

/// Members by host, where a team has several of them and some host has several members.
#[derive(Clone, Debug)]
pub struct HostGroups {
    groups: Groups,
    /// The radix of an arrival across hosts.
    radix: usize,
}

/// A team's members by host.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// Ranks in the team, ascending; the hosts in the order of the world's.
    pub members: Vec<Vec<u32>>,
    /// This PE's host, and its place among that host's members.
    pub mine: (usize, usize),
}

impl HostGroups {
    /// A team's members by host, by the host of each PE of the world. None where that has no use.
    pub(crate) fn groups(members: &Group, hosts: &[u32]) -> Option<Groups> {
        let host_of: Option<Vec<u32>> = members.pes().map(|pe| hosts.get(pe).copied()).collect();
        let host_of = host_of?;
        let mut different = host_of.clone();
        different.sort_unstable();
        different.dedup();
        if different.len() < 2 || different.len() == host_of.len() {
            return None;
        }
        let mut groups = vec![Vec::new(); different.len()];
        let mut mine = (0, 0);
        for (rank, host) in (0_u32..).zip(&host_of) {
            let at = different.binary_search(host).ok()?;
            let group = groups.get_mut(at)?;
            if rank as usize == members.me() {
                mine = (at, group.len());
            }
            group.push(rank);
        }
        Some(Groups {
            members: groups,
            mine,
        })
    }

    /// `radix` is that of the arrival across hosts.
    pub(crate) fn of(groups: Groups, radix: usize) -> Self {
        HostGroups { groups, radix }
    }

    /// Number of hosts.
    pub(crate) fn count(&self) -> usize {
        self.groups.members.len()
    }

    /// This PE's host, and its place among that host's members.
    pub(crate) fn mine(&self) -> (usize, usize) {
        self.groups.mine
    }

    /// The members on a host, by rank, ascending.
    pub(crate) fn members(&self, host: usize) -> &[u32] {
        self.groups.members.get(host).map_or(&[], Vec::as_slice)
    }

    /// The members on this PE's host.
    pub(crate) fn local_members(&self) -> &[u32] {
        self.members(self.groups.mine.0)
    }

    /// Number of members on this PE's host.
    pub(crate) fn members_on_host(&self) -> usize {
        self.local_members().len()
    }

    /// The most reads of a member at once: of the members of a host, of the hosts of a row, or of the rows, which are no
    /// more. The same on each member.
    pub(crate) fn widest(&self) -> usize {
        let on_host = self.groups.members.iter().map(Vec::len).max();
        on_host.unwrap_or(0).max(self.count().div_ceil(self.rows()))
    }

    /// Rows of hosts, about as many as there are hosts in each: one, where they are few.
    fn rows(&self) -> usize {
        match self.count() {
            ..MIN_HOSTS_IN_ROWS => 1,
            many => many.isqrt(),
        }
    }

    /// The hosts of a row. No row has two more than another: so no host is read by many more than another.
    fn hosts_of(&self, row: usize) -> Range<usize> {
        let (count, rows) = (self.count(), self.rows());
        row * count / rows..(row + 1) * count / rows
    }

    /// This PE's row.
    fn my_row(&self) -> usize {
        ((self.groups.mine.0 + 1) * self.rows() - 1) / self.count().max(1)
    }

    /// The hosts of this PE's row: all, where they are few.
    pub(crate) fn row(&self) -> Range<usize> {
        self.hosts_of(self.my_row())
    }

    /// A member of each row, in the order of the rows, this PE for its own row. Different members read different ones.
    pub(crate) fn row_peers(&self) -> impl Iterator<Item = usize> + Clone {
        let (mine, place) = self.groups.mine;
        let at = mine - self.row().start;
        (0..self.rows()).map(move |row| {
            let row = self.hosts_of(row);
            let members = self.members(row.start + at % row.len().max(1));
            let member = members.get(place % members.len().max(1));
            member.map_or(usize::MAX, |member| *member as usize)
        })
    }

    /// Whether a member is on this PE's host.
    pub(crate) fn is_local(&self, rank: usize) -> bool {
        u32::try_from(rank).is_ok_and(|rank| self.local_members().binary_search(&rank).is_ok())
    }

    /// The member of this PE's host that gets the data of a member of another host, for all of this host. Different
    /// members' data have different leaders.
    pub(crate) fn leader_for(&self, of: usize) -> usize {
        let at = of % self.members_on_host().max(1);
        self.local_members()
            .get(at)
            .map_or(of, |rank| *rank as usize)
    }

    /// A member of each host, in the order of the hosts, that is known after an arrival to have done its action between
    /// the rounds on its host and those across hosts: the member that signaled this PE's host, or a host through which
    /// the signal came; or any member that signaled those after its host's members had met again. This PE for its own
    /// host.
    pub(crate) fn representatives(&self) -> impl Iterator<Item = usize> + Clone {
        let (hosts, (mine, place)) = (self.count(), self.groups.mine);
        (0..hosts).map(move |host| {
            let members = self.members(host);
            let at = match (mine + hosts - host) % hosts.max(1) {
                0 => place,
                // The lowest digit is that of the first round, in which one member signals.
                distance => distance % self.radix % members.len().max(1),
            };
            members
                .get(at)
                .map_or(usize::MAX, |member| *member as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_host_share_out_what_they_get_from_others() {
        let hosts = [0, 1, 0, 1, 1, 2];
        for me in 0..6 {
            let all = Group::all(6, me);
            let groups = HostGroups::groups(&all, &hosts).unwrap();
            let (host, place) = groups.mine;
            assert_eq!(groups.members[host][place], me as u32);
            let by_host = HostGroups::of(groups, 8);
            for place in 0..6 {
                assert_eq!(by_host.is_local(place), hosts[place] == hosts[me]);
                assert!(by_host.is_local(by_host.leader_for(place)));
            }
        }
        let one_host = Group::all(6, 0).listed(&[0, 2]).unwrap().unwrap();
        assert!(HostGroups::groups(&one_host, &hosts).is_none());
        let alone = Group::all(6, 0).listed(&[5, 1, 0]).unwrap().unwrap();
        assert!(HostGroups::groups(&alone, &hosts).is_none());
    }

    #[test]
    fn each_host_is_in_one_row_and_no_member_reads_or_is_read_by_many() {
        for count in (2..=130).chain([401, 421]) {
            // Some hosts with several members.
            let hosts: Vec<u32> = (0..count as u32).chain([0, 1, 1]).collect();
            let mut readers = vec![0; hosts.len()];
            for me in 0..hosts.len() {
                let groups = HostGroups::groups(&Group::all(hosts.len(), me), &hosts).unwrap();
                let by_host = HostGroups::of(groups, 8);
                let (row, column) = (by_host.row(), by_host.row_peers());
                assert!(row.contains(&(hosts[me] as usize)));
                if count < MIN_HOSTS_IN_ROWS {
                    assert!(row == (0..count) && column.eq([me]));
                    continue;
                }
                let column: Vec<usize> = column.collect();
                assert_eq!(column[by_host.my_row()], me);
                for (row, member) in column.iter().enumerate() {
                    let read = by_host.hosts_of(row);
                    assert!(read.contains(&(hosts[*member] as usize)), "{count} hosts");
                    readers[*member] += 1;
                }
                let most = by_host.widest();
                assert!(row.len() <= most && column.len() <= most && most <= count.isqrt() + 3);
                let next = (0..by_host.rows()).map(|row| by_host.hosts_of(row).start);
                assert!(next.eq((0..by_host.rows()).map(|row| row * count / by_host.rows())));
            }
            // Each host is read as often as there are rows, twice where a row is shorter, and by each of its members.
            let most = readers.iter().max().copied().unwrap_or_default();
            assert!(most <= 3 * (count.isqrt() + 3), "{count} hosts: {most}");
        }
    }
}
