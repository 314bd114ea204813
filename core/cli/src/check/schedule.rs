//! Schedules of pairs: in each round every member has one partner, so that a round uses every link once.
//!
//! The rounds are those of a tournament (the circle method): member n-1 stays in its place, and the others
//! move around it. In round r two of the others meet if their numbers add up to 2 r modulo n-1.

/// Members up to which every pair is measured, unless something else is asked for.
pub const ALL_PAIRS: usize = 64;

/// The rounds of a schedule, each a list of pairs whose first is the smaller.
pub type Rounds = Vec<Vec<(usize, usize)>>;

/// All pairs of `members`, each in one round.
pub fn tournament(members: usize) -> Rounds {
    let seats = members.next_multiple_of(2);
    if members < 2 {
        return Vec::new();
    }
    (0..seats - 1)
        .map(|round| of_round(members, round))
        .collect()
}

/// The pairs of one round. Of an odd number of members, one has no partner.
fn of_round(members: usize, round: usize) -> Vec<(usize, usize)> {
    let seats = members.next_multiple_of(2);
    let circle = seats - 1;
    let mut pairs = vec![(round, seats - 1)];
    pairs.extend((1..seats / 2).map(|step| {
        let (a, b) = ((round + step) % circle, (round + circle - step) % circle);
        (a.min(b), a.max(b))
    }));
    // The last seat is empty if the number is odd.
    pairs.retain(|&(_, b)| b < members);
    pairs.sort_unstable();
    pairs
}

/// A covering schedule: each member meets `partners` others (one fewer if it sits out a round), spread
/// evenly over all. With as many partners as there are others, it is the tournament.
pub fn covering(members: usize, partners: usize) -> Rounds {
    if members < 2 {
        return Vec::new();
    }
    let all = members.next_multiple_of(2) - 1;
    let wanted = partners.clamp(1, all);
    (0..wanted)
        .map(|at| of_round(members, at * all / wanted))
        .collect()
}

/// Puts every pair in a round of its own.
pub fn one_by_one(rounds: Rounds) -> Rounds {
    rounds
        .into_iter()
        .flatten()
        .map(|pair| vec![pair])
        .collect()
}

/// The halves of the members, paired: a bisection.
pub fn bisection(members: usize) -> Vec<(usize, usize)> {
    let half = members / 2;
    (0..half).map(|a| (a, a + half)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn each_once_a_round(members: usize, rounds: &Rounds) {
        for round in rounds {
            let mut seen = BTreeSet::new();
            for &(a, b) in round {
                assert!(a < b && b < members, "{members}: {round:?}");
                assert!(seen.insert(a) && seen.insert(b), "{members}: {round:?}");
            }
            assert_eq!(
                round.len(),
                members / 2,
                "{members}: a round leaves links unused"
            );
        }
    }

    #[test]
    fn a_tournament_has_each_pair_exactly_once() {
        for members in (0..34).chain([63, 64, 65]) {
            let rounds = tournament(members);
            each_once_a_round(members, &rounds);
            let pairs: Vec<(usize, usize)> = rounds.concat();
            let distinct: BTreeSet<_> = pairs.iter().collect();
            assert_eq!(
                pairs.len(),
                members * members.saturating_sub(1) / 2,
                "{members}"
            );
            assert_eq!(distinct.len(), pairs.len(), "{members}");
            // No schedule has fewer rounds.
            let least = members.next_multiple_of(2).saturating_sub(1);
            assert_eq!(
                rounds.len(),
                if members < 2 { 0 } else { least },
                "{members}"
            );
        }
    }

    #[test]
    fn a_covering_schedule_gives_each_member_as_many_partners_spread_over_all() {
        for members in [65, 66, 127, 200, 1000, 1001] {
            let partners = 63;
            let rounds = covering(members, partners);
            each_once_a_round(members, &rounds);
            assert_eq!(rounds.len(), partners);
            let mut met = vec![BTreeSet::new(); members];
            for &(a, b) in rounds.iter().flatten() {
                assert!(
                    met[a].insert(b) && met[b].insert(a),
                    "{members}: {a}-{b} twice"
                );
            }
            let distance = |a: usize, b: usize| a.abs_diff(b);
            for (member, partners_met) in met.iter().enumerate() {
                assert!(partners_met.len() >= partners - 1, "{members}: {member}");
                // Partners lie in the lower and in the upper half.
                let far = partners_met
                    .iter()
                    .filter(|other| distance(member, **other) > members / 4);
                assert!(far.count() > partners / 8, "{members}: {member}");
            }
        }
    }

    #[test]
    fn as_many_partners_as_there_are_make_a_tournament() {
        for members in [2, 3, 8, 9] {
            assert_eq!(covering(members, 1000), tournament(members));
        }
        assert_eq!(one_by_one(tournament(4)).len(), 6);
    }

    #[test]
    fn a_bisection_pairs_the_halves() {
        assert_eq!(bisection(5), [(0, 2), (1, 3)]);
        assert_eq!(bisection(1), []);
    }
}
