//! Which members of a team share a host, for calls that cross each network link once.

use super::members::Members;

/// Members by host, where a team has several of them and some host has several members.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// Those of this PE's host, by their numbers in the team, ascending.
    near: Box<[usize]>,
}

/// A team's members by host.
#[derive(Debug)]
pub(crate) struct Groups {
    pub members: Vec<Vec<u32>>,
    /// This PE's host, and its place among that host's members.
    pub mine: (usize, usize),
}

impl Hosts {
    /// A team's members by host, by the host of each PE of the world. None where there is nothing to gain.
    pub(crate) fn groups(members: &Members, hosts: &[u32]) -> Option<Groups> {
        let of: Option<Vec<u32>> = members.pes().map(|pe| hosts.get(pe).copied()).collect();
        let of = of?;
        let mut different = of.clone();
        different.sort_unstable();
        different.dedup();
        if different.len() < 2 || different.len() == of.len() {
            return None;
        }
        let mut groups = vec![Vec::new(); different.len()];
        let mut mine = (0, 0);
        for (place, host) in (0_u32..).zip(&of) {
            let at = different.binary_search(host).ok()?;
            let group = groups.get_mut(at)?;
            if place as usize == members.me() {
                mine = (at, group.len());
            }
            group.push(place);
        }
        Some(Groups {
            members: groups,
            mine,
        })
    }

    pub(crate) fn of(groups: &Groups) -> Self {
        let near = groups.members.get(groups.mine.0).into_iter().flatten();
        Hosts {
            near: near.map(|place| *place as usize).collect(),
        }
    }

    /// How many members are on this PE's host.
    pub(crate) fn near(&self) -> usize {
        self.near.len()
    }

    /// Whether a member is on this PE's host.
    pub(crate) fn is_near(&self, place: usize) -> bool {
        self.near.binary_search(&place).is_ok()
    }

    /// The member of this PE's host that gets what a member of another has, for all of this host. What
    /// different members have is shared out.
    pub(crate) fn fetcher(&self, of: usize) -> usize {
        let at = of % self.near.len().max(1);
        self.near.get(at).copied().unwrap_or(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_host_share_out_what_they_get_from_others() {
        let hosts = [0, 1, 0, 1, 1, 2];
        for me in 0..6 {
            let all = Members::all(6, me);
            let groups = Hosts::groups(&all, &hosts).unwrap();
            let (host, place) = groups.mine;
            assert_eq!(groups.members[host][place], me as u32);
            let by_host = Hosts::of(&groups);
            for place in 0..6 {
                assert_eq!(by_host.is_near(place), hosts[place] == hosts[me]);
                assert!(by_host.is_near(by_host.fetcher(place)));
            }
        }
        let one_host = Members::all(6, 0).listed(&[0, 2]).unwrap().unwrap();
        assert!(Hosts::groups(&one_host, &hosts).is_none());
        let alone = Members::all(6, 0).listed(&[5, 1, 0]).unwrap().unwrap();
        assert!(Hosts::groups(&alone, &hosts).is_none());
    }
}
