//! Strided splits, for which each PE may name another team: programs make the teams of all columns by one call.

use oxshmem::{Sym, Team, World};

use crate::failure::{Done, Failure};

/// The start, the stride and the size that a PE gives.
pub(crate) type Triplet = [i32; 3];

/// Symmetric memory in which the members of a team tell each other their triplets.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    own: Sym<i32>,
    all: Sym<i32>,
}

impl Exchange {
    /// Collective over the world.
    pub(crate) fn new(world: &World) -> Done<Self> {
        let words = size_of::<Triplet>() / size_of::<i32>();
        Ok(Exchange {
            own: world.alloc_zeroed(words)?,
            all: world.alloc_zeroed(words * world.n_pes())?,
        })
    }

    /// The triplets of all members. Collective over the team.
    fn gather(self, world: &World, team: &Team<'_>, own: Triplet) -> Done<Vec<Triplet>> {
        // A member may still be in the call of another team, which has the same memory.
        team.barrier()?;
        let all = self.all.range(..own.len() * team.n_pes())?;
        world.write(self.own, &own)?;
        team.fcollect(all, self.own)?;
        let mut words = vec![0; all.len()];
        world.read(&mut words, all)?;
        let each = words.chunks_exact(own.len());
        Ok(each.filter_map(|each| each.try_into().ok()).collect())
    }
}

/// A strided part of a team, in the numbers that the calls take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: usize,
    pub(crate) stride: isize,
    pub(crate) size: usize,
}

impl Part {
    fn of(triplet: Triplet, n: usize) -> Result<Part, String> {
        let [start, stride, size] = triplet;
        let part = || {
            let part = Part {
                start: usize::try_from(start).ok()?,
                stride: stride as isize,
                size: usize::try_from(size).ok().filter(|size| *size > 0)?,
            };
            // The stride of one PE says nothing.
            let part = match part.size {
                1 => Part { stride: 1, ..part },
                _ => part,
            };
            let last = part.stride.checked_mul(part.size as isize - 1)?;
            let last = part.start.checked_add_signed(last)?;
            let is_inside = part.start.max(last) < n && (part.size == 1 || part.stride != 0);
            is_inside.then_some(part)
        };
        part().ok_or_else(|| {
            format!("start {start}, stride {stride}, size {size} is no part of a team of {n} PEs")
        })
    }

    fn members(self) -> impl Iterator<Item = usize> {
        let at = move |index: usize| self.start.wrapping_add_signed(self.stride * index as isize);
        (0..self.size).map(at)
    }

    fn has(self, member: usize) -> bool {
        self.members().any(|one| one == member)
    }
}

/// The teams that a split makes, one after the other: the parts that some member names and is in. A part that nobody of it names is no team.
fn parts(triplets: &[Triplet]) -> Result<Vec<Part>, String> {
    let named: Vec<Part> = (triplets.iter().enumerate())
        .map(|(member, triplet)| {
            let part = Part::of(*triplet, triplets.len());
            part.map_err(|what| format!("member {member} of the parent: {what}"))
        })
        .collect::<Result<_, _>>()?;
    let mut teams: Vec<Part> = Vec::new();
    for (member, part) in named.iter().enumerate() {
        if !part.has(member) || teams.contains(part) {
            continue;
        }
        if let Some(other) = part.members().find(|other| named[*other] != *part) {
            return Err(format!(
                "members {member} and {other} of the parent would be in one team, and name different ones ({:?}, {:?}: start, stride, size); \
                 all members of a team give the same three",
                triplets[member], triplets[other]
            ));
        }
        teams.push(*part);
    }
    Ok(teams)
}

/// The parts of a team that its members name. Collective over the team.
pub(crate) fn named_parts(
    exchange: Exchange,
    world: &World,
    team: &Team<'_>,
    own: Triplet,
) -> Done<Vec<Part>> {
    let triplets = exchange.gather(world, team, own)?;
    parts(&triplets).map_err(Failure::argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_different_parts_get_one_each() {
        let column = |start, size| Part {
            start,
            stride: 2,
            size,
        };
        let named = [[0, 2, 2], [1, 2, 2], [0, 2, 2], [1, 2, 2]];
        assert_eq!(parts(&named), Ok(vec![column(0, 2), column(1, 2)]));
        assert_eq!(parts(&[[0, 2, 2]; 4]), Ok(vec![column(0, 2)]));
        // Backwards, and alone with any stride.
        let back = Part {
            start: 2,
            stride: -1,
            size: 3,
        };
        assert_eq!(parts(&[[2, -1, 3]; 3]), Ok(vec![back]));
        assert_eq!(
            parts(&[[0, 0, 1], [1, 7, 1]]).map(|parts| parts.len()),
            Ok(2)
        );
        // The others name a part that they are not in.
        assert_eq!(parts(&[[1, 1, 1]; 3]).map(|parts| parts.len()), Ok(1));
    }

    #[test]
    fn what_makes_no_teams_is_refused_in_words() {
        let refused = |named: &[Triplet], words: &str| {
            let told = parts(named).unwrap_err();
            assert!(told.contains(words), "{told}");
        };
        refused(&[[0, 1, 2], [1, 1, 1]], "members 0 and 1 of the parent");
        refused(
            &[[0, 1, 3]; 2],
            "member 0 of the parent: start 0, stride 1, size 3",
        );
        refused(&[[0, 1, 1], [-1, 1, 1]], "member 1 of the parent: start -1");
        refused(&[[0, 0, 2]; 2], "no part of a team of 2 PEs");
        refused(&[[0, 1, 0]; 2], "size 0");
        refused(&[[1, -2, 2]; 2], "stride -2");
    }
}
