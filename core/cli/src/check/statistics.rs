//! Outliers among links, hosts and rails, by medians and their deviations (MAD), which a few bad values do
//! not move.
//!
//! Every value is a goodness: more is better. A host's level is the median over its links, the better one of
//! two in the middle, so that among three hosts one slow link does not make two hosts look slow. A host is
//! named if its level lies far below the median of all levels. A link is named if it lies far below the
//! smaller level of its two hosts: so a slow host explains its links, and they are not named.

use std::collections::BTreeMap;

/// Goodness from each member (row) to each other (column); `None` where it was not measured.
pub type Matrix = Vec<Vec<Option<f64>>>;

/// Named members have this value, where that one is usual.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow<T> {
    pub it: T,
    pub value: f64,
    pub usual: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outliers {
    /// Hosts (members) that send slowly.
    pub senders: Vec<Slow<usize>>,
    /// Hosts that receive slowly.
    pub receivers: Vec<Slow<usize>>,
    /// Links, from a member to another.
    pub links: Vec<Slow<(usize, usize)>>,
    /// Rails, by name: NICs that have the same name on all hosts.
    pub rails: Vec<Slow<String>>,
}

/// The median, the greater one of two in the middle. None of no values.
pub fn better_median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The standard deviation that normal noise of this MAD would have. Of two distances in the middle the smaller
/// counts, so that one outlier among few values does not hide itself.
fn deviation(values: &[f64], middle: f64) -> f64 {
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    distances.sort_by(f64::total_cmp);
    let median = distances.get(distances.len().saturating_sub(1) / 2);
    1.4826 * median.copied().unwrap_or(0.0)
}

/// How far below `middle` a value is no noise: `tolerance` is a share of the middle. Among more values
/// the farthest of mere noise is farther away.
fn limit(values: &[f64], middle: f64, tolerance: f64) -> f64 {
    let farthest = 1.5 + (2.0 * (values.len().max(1) as f64).ln()).sqrt();
    middle - (tolerance * middle).max(farthest * deviation(values, middle))
}

/// The outliers of a matrix. `rails` names the rail of each member; a tolerance is a share of what is usual.
pub fn outliers(matrix: &Matrix, rails: &[String], tolerance: f64) -> Outliers {
    let members = matrix.len();
    let row = |member: usize| matrix.get(member).into_iter().flatten().flatten().copied();
    let column = |member: usize| {
        matrix
            .iter()
            .filter_map(move |row| row.get(member).copied().flatten())
    };
    let out: Vec<Option<f64>> = (0..members)
        .map(|member| better_median(row(member)))
        .collect();
    let into: Vec<Option<f64>> = (0..members)
        .map(|member| better_median(column(member)))
        .collect();
    let mut found = Outliers::default();
    // Of two hosts, neither is the usual one.
    let few = out.iter().flatten().count() < 3;
    if !few {
        found.rails = slow_rails(&out, &into, rails, tolerance);
        let is_explained = |member: &usize| {
            let rail = rails.get(*member);
            rail.is_some_and(|rail| found.rails.iter().any(|slow| slow.it == *rail))
        };
        let apart = |levels: &[Option<f64>]| {
            let mut slow = slow_levels(levels, tolerance);
            slow.retain(|slow| !is_explained(&slow.it));
            slow
        };
        (found.senders, found.receivers) = (apart(&out), apart(&into));
    }
    let best = better_median(matrix.iter().flatten().flatten().copied());
    let expected = |from: usize, to: usize| {
        if few {
            return best;
        }
        let level = |levels: &[Option<f64>], member: usize| levels.get(member).copied().flatten();
        Some(level(&out, from)?.min(level(&into, to)?))
    };
    let mut links = Vec::new();
    for (from, row) in matrix.iter().enumerate() {
        for (to, value) in row.iter().enumerate() {
            if let (Some(value), Some(usual)) = (*value, expected(from, to)) {
                links.push(Slow {
                    it: (from, to),
                    value,
                    usual,
                });
            }
        }
    }
    let shares: Vec<f64> = links.iter().map(|link| link.value / link.usual).collect();
    let lowest = limit(
        &shares,
        better_median(shares.iter().copied())
            .unwrap_or(1.0)
            .min(1.0),
        tolerance,
    );
    links.retain(|link| link.value / link.usual < lowest);
    found.links = links;
    found
}

fn slow_levels(levels: &[Option<f64>], tolerance: f64) -> Vec<Slow<usize>> {
    let known: Vec<f64> = levels.iter().copied().flatten().collect();
    let Some(usual) = better_median(known.iter().copied()) else {
        return Vec::new();
    };
    let lowest = limit(&known, usual, tolerance);
    let slow = levels.iter().enumerate().filter_map(|(it, level)| {
        let value = (*level).filter(|value| *value < lowest)?;
        Some(Slow { it, value, usual })
    });
    slow.collect()
}

/// Rails that are slow on most hosts, compared with the other rails.
fn slow_rails(
    out: &[Option<f64>],
    into: &[Option<f64>],
    rails: &[String],
    tolerance: f64,
) -> Vec<Slow<String>> {
    let mut levels: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (rail, (out, into)) in rails.iter().zip(out.iter().zip(into)) {
        let both = [*out, *into].into_iter().flatten();
        levels.entry(rail).or_default().extend(both);
    }
    // A rail of one host is that host's own matter.
    levels.retain(|_, levels| levels.len() >= 4);
    if levels.len() < 2 {
        return Vec::new();
    }
    let names: Vec<&str> = levels.keys().copied().collect();
    let medians: Vec<Option<f64>> = levels
        .values()
        .map(|levels| better_median(levels.iter().copied()))
        .collect();
    let slow = slow_levels(&medians, tolerance).into_iter();
    slow.filter_map(|slow| {
        let name = names.get(slow.it)?;
        Some(Slow {
            it: (*name).to_owned(),
            value: slow.value,
            usual: slow.usual,
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of about normal distribution, with a standard deviation of one.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            let mut sum = 0.0;
            for _ in 0..12 {
                self.0 = self
                    .0
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                sum += (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
            }
            sum - 6.0
        }
    }

    /// All links of `members` at 10, with noise of this share.
    fn matrix(members: usize, share: f64, seed: u64) -> Matrix {
        let mut noise = Noise(seed);
        let mut value =
            |from, to| (from != to).then(|| 10.0 * (1.0 + share * noise.next()).max(0.05));
        (0..members)
            .map(|from| (0..members).map(|to| value(from, to)).collect())
            .collect()
    }

    /// Changes the values of links.
    fn change(all: &mut Matrix, change: impl Fn(usize, usize, f64) -> Option<f64>) {
        for (from, row) in all.iter_mut().enumerate() {
            for (to, cell) in row.iter_mut().enumerate() {
                *cell = cell.and_then(|value| change(from, to, value));
            }
        }
    }

    fn named(matrix: &Matrix) -> (Vec<usize>, Vec<usize>, Vec<(usize, usize)>) {
        let rails = vec!["rail".to_owned(); matrix.len()];
        let found = outliers(matrix, &rails, 0.3);
        assert_eq!(found.rails, []);
        let hosts = |slow: &[Slow<usize>]| slow.iter().map(|slow| slow.it).collect();
        let links = found.links.iter().map(|slow| slow.it).collect();
        (hosts(&found.senders), hosts(&found.receivers), links)
    }

    #[test]
    fn of_noise_alone_nothing_is_named() {
        for members in [2, 3, 4, 5, 8, 16, 40] {
            for seed in 1..100 {
                for share in [0.0, 0.02, 0.05] {
                    let found = named(&matrix(members, share, seed));
                    assert_eq!(
                        found,
                        (vec![], vec![], vec![]),
                        "{members}, {share}, {seed}"
                    );
                }
            }
        }
    }

    #[test]
    fn one_slow_link_is_named_and_neither_of_its_hosts() {
        for members in [3, 4, 5, 8, 33] {
            for seed in 1..50 {
                let mut all = matrix(members, 0.03, seed);
                let (a, b) = (0, members - 1);
                all[a][b] = Some(2.0);
                all[b][a] = Some(2.0);
                assert_eq!(
                    named(&all),
                    (vec![], vec![], vec![(a, b), (b, a)]),
                    "{members}, {seed}"
                );
                all[b][a] = Some(10.0);
                assert_eq!(
                    named(&all),
                    (vec![], vec![], vec![(a, b)]),
                    "{members}, {seed}"
                );
            }
        }
    }

    #[test]
    fn one_slow_host_is_named_and_none_of_its_links() {
        for members in [3, 4, 5, 8, 33] {
            for seed in 1..50 {
                let mut all = matrix(members, 0.03, seed);
                change(&mut all, |from, to, value| {
                    Some(if from == 1 || to == 1 {
                        value / 5.0
                    } else {
                        value
                    })
                });
                assert_eq!(named(&all), (vec![1], vec![1], vec![]), "{members}, {seed}");
                change(&mut all, |_, to, value| {
                    Some(if to == 1 { 10.0 } else { value })
                });
                assert_eq!(named(&all), (vec![1], vec![], vec![]), "{members}, {seed}");
            }
        }
    }

    #[test]
    fn of_two_hosts_a_slow_direction_is_named() {
        let mut all = matrix(2, 0.0, 1);
        all[1][0] = Some(3.0);
        assert_eq!(named(&all), (vec![], vec![], vec![(1, 0)]));
    }

    #[test]
    fn pairs_that_were_not_measured_do_not_count() {
        let mut all = matrix(9, 0.02, 7);
        change(&mut all, |from, to, value| {
            (from + to).is_multiple_of(3).then_some(value)
        });
        assert_eq!(named(&all), (vec![], vec![], vec![]));
        all[2][4] = Some(1.0);
        assert_eq!(named(&all), (vec![], vec![], vec![(2, 4)]));
        assert_eq!(named(&vec![vec![None; 3]; 3]), (vec![], vec![], vec![]));
    }

    #[test]
    fn a_slow_rail_is_named_and_not_its_nics() {
        // Four hosts with three NICs each; members of the third rail are slow.
        let members = 12;
        let mut all = matrix(members, 0.03, 5);
        let rails: Vec<String> = (0..members)
            .map(|member| format!("mlx5_{}", member % 3))
            .collect();
        change(&mut all, |from, to, value| {
            let slow = from % 3 == 2 || to % 3 == 2;
            Some(if slow { value / 4.0 } else { value })
        });
        let found = outliers(&all, &rails, 0.3);
        let names: Vec<&str> = found.rails.iter().map(|slow| slow.it.as_str()).collect();
        assert_eq!(names, ["mlx5_2"]);
        assert_eq!(
            (found.senders, found.receivers, found.links),
            (vec![], vec![], vec![])
        );
    }
}
