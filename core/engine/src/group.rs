//! Groups: ordered sets of PEs, such as a team's.

/// A team's PEs in their order, and this PE's rank among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    order: Order,
    me: usize,
}

/// The world's numbers of a team's PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    /// `start`, `start + stride` and so on. All of them are numbers of PEs, and the stride is not 0.
    Strided {
        start: usize,
        stride: isize,
        size: usize,
    },
    Listed {
        pes: Box<[u32]>,
        /// (PE, its rank), ascending.
        ranks: Box<[(u32, u32)]>,
    },
}

impl Group {
    /// All PEs of a world.
    pub fn all(size: usize, me: usize) -> Self {
        let (start, stride) = (0, 1);
        let order = Order::Strided {
            start,
            stride,
            size,
        };
        Group { order, me }
    }

    /// These PEs of the world, if `me` is one of them.
    fn of(order: Order, me: usize) -> Option<Self> {
        let mut members = Group { order, me: 0 };
        members.me = members.rank_of(me)?;
        Some(members)
    }

    /// PEs by their numbers in the world, which are all different.
    fn list(pes: Box<[u32]>) -> Order {
        let mut ranks: Box<[(u32, u32)]> = pes.iter().copied().zip(0..).collect();
        ranks.sort_unstable();
        Order::Listed { pes, ranks }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.order {
            Order::Strided { size, .. } => *size,
            Order::Listed { pes, .. } => pes.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This PE's number in the team.
    #[inline]
    pub fn me(&self) -> usize {
        self.me
    }

    /// The world's number of a member; of a number that the team does not have, one that the world does
    /// not have either.
    #[inline]
    pub fn pe(&self, rank: usize) -> usize {
        match &self.order {
            Order::Strided {
                start,
                stride,
                size,
            } => {
                if rank < *size {
                    // No overflow: it is the number of a PE.
                    start.wrapping_add_signed(rank as isize * stride)
                } else {
                    usize::MAX
                }
            }
            Order::Listed { pes, .. } => pes.get(rank).map_or(usize::MAX, |pe| *pe as usize),
        }
    }

    /// The team's number of a PE, if it is a member.
    pub fn rank_of(&self, pe: usize) -> Option<usize> {
        match &self.order {
            Order::Strided {
                start,
                stride,
                size,
            } => {
                let (distance, stride) = (pe as i128 - *start as i128, *stride as i128);
                let rank = (distance % stride == 0).then(|| distance / stride)?;
                (0..*size as i128).contains(&rank).then_some(rank as usize)
            }
            Order::Listed { pes: _, ranks } => {
                let pe = u32::try_from(pe).ok()?;
                let at = ranks.binary_search_by_key(&pe, |(pe, _)| *pe).ok()?;
                ranks.get(at).map(|(_, rank)| *rank as usize)
            }
        }
    }

    /// The world's numbers, in the team's order.
    pub fn pes(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.len()).map(|rank| self.pe(rank))
    }

    /// The members from `start` on, each `stride` after the one before; none if this PE is not among
    /// them. An error, in words, where that leaves the team.
    pub fn strided(
        &self,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Option<Group>, String> {
        let len = self.len();
        let last = (size as i128 - 1) * stride as i128 + start as i128;
        if size == 0 {
            return Err("a team has one PE at least".into());
        }
        if stride == 0 && size > 1 {
            return Err(format!(
                "a stride of 0 names one PE {size} times; give a size of 1"
            ));
        }
        if start >= len || !(0..len as i128).contains(&last) {
            return Err(format!(
                "PEs {start} to {last} leave a team of {len}; its PEs are 0 to {}",
                len - 1
            ));
        }
        let me = self.pe(self.me);
        let order = match &self.order {
            Order::Strided { stride: by, .. } => Order::Strided {
                start: self.pe(start),
                // One member has no next.
                stride: if size == 1 { 1 } else { by * stride },
                size,
            },
            Order::Listed { .. } => {
                let rank = |i: usize| start.wrapping_add_signed(i as isize * stride);
                Self::list((0..size).map(|i| self.pe(rank(i)) as u32).collect())
            }
        };
        Ok(Self::of(order, me))
    }

    /// The members of these ranks, in this order; none if this PE is not among them. An error, in
    /// words, where that leaves the team or names one twice.
    pub fn listed(&self, listed: &[usize]) -> Result<Option<Group>, String> {
        let len = self.len();
        if listed.is_empty() {
            return Err("a team has one PE at least".into());
        }
        if let Some(rank) = listed.iter().find(|rank| **rank >= len) {
            return Err(format!(
                "there is no PE {rank} in a team of {len}; its PEs are 0 to {}",
                len - 1
            ));
        }
        let order = Self::list(listed.iter().map(|rank| self.pe(*rank) as u32).collect());
        if let Order::Listed { ranks, .. } = &order
            && let Some([(pe, _), _]) = ranks.windows(2).find(|pair| pair[0].0 == pair[1].0)
        {
            let twice = self.rank_of(*pe as usize).unwrap_or_default();
            return Err(format!("PE {twice} is named twice; name each once"));
        }
        Ok(Self::of(order, self.pe(self.me)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The PEs of a split, by definition.
    fn reference(parent: &[usize], start: usize, stride: isize, size: usize) -> Option<Vec<usize>> {
        let places = (0..size as i128).map(|i| start as i128 + i * stride as i128);
        let pes: Option<Vec<usize>> = places
            .map(|place| parent.get(usize::try_from(place).ok()?).copied())
            .collect();
        pes.filter(|pes| !pes.is_empty() && (stride != 0 || size == 1))
    }

    fn agrees(parent: &Group, pes: &[usize], me: usize, made: &Result<Option<Group>, String>) {
        let made = made.as_ref().unwrap();
        assert_eq!(made.is_some(), pes.contains(&me), "{parent:?} {pes:?}");
        let Some(made) = made else { return };
        assert_eq!(made.len(), pes.len());
        assert_eq!(made.pes().collect::<Vec<_>>(), pes);
        assert_eq!(made.pe(made.me()), me);
        assert_eq!(made.pe(pes.len()), usize::MAX);
        for pe in 0..70 {
            assert_eq!(made.rank_of(pe), pes.iter().position(|p| *p == pe));
        }
    }

    proptest! {
        #[test]
        fn teams_of_teams_have_the_pes_that_their_definition_gives(
            n in 1_usize..64,
            steps in proptest::collection::vec((0_usize..64, -9_isize..10, 0_usize..20), 1..4),
            shuffled in proptest::option::of(proptest::collection::vec(0_usize..64, 1..20)),
        ) {
            for me in 0..n {
                let mut pes: Vec<usize> = (0..n).collect();
                let mut parent = Group::all(n, me);
                if let Some(list) = &shuffled {
                    let mut list: Vec<usize> = list.iter().map(|p| p % n).collect();
                    let twice = (1..list.len()).any(|i| list[..i].contains(&list[i]));
                    prop_assert_eq!(parent.listed(&list).is_err(), twice);
                    list.sort_unstable_by_key(|p| p * 37 % 64);
                    list.dedup();
                    let made = parent.listed(&list);
                    agrees(&parent, &list, me, &made);
                    let Ok(Some(made)) = made else { continue };
                    (parent, pes) = (made, list);
                }
                for (start, stride, size) in &steps {
                    let made = parent.strided(*start, *stride, *size);
                    let Some(expected) = reference(&pes, *start, *stride, *size) else {
                        prop_assert!(made.is_err(), "{:?}", made);
                        break;
                    };
                    agrees(&parent, &expected, me, &made);
                    let Ok(Some(made)) = made else { break };
                    (parent, pes) = (made, expected);
                }
            }
        }
    }

    #[test]
    fn arguments_at_the_edge_of_arithmetic_are_refused() {
        let all = Group::all(8, 3);
        for (start, stride, size) in [
            (usize::MAX, 1, 1),
            (0, isize::MAX, 3),
            (0, isize::MIN, 2),
            (7, isize::MIN, usize::MAX),
            (1, 1, usize::MAX),
            (0, 0, 2),
            (0, 1, 0),
            (8, -1, 8),
        ] {
            let made = all.strided(start, stride, size);
            assert!(made.is_err(), "{start} {stride} {size}: {made:?}");
        }
        assert!(all.strided(3, 0, 1).unwrap().is_some());
        assert!(all.strided(3, isize::MIN, 1).unwrap().is_some());
        assert!(all.listed(&[]).is_err() && all.listed(&[0, 8]).is_err());
        assert!(all.listed(&[3, 1, 3]).unwrap_err().contains("PE 3"));
    }
}
