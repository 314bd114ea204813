//! Statistical tests whether two sets of runs differ by more than chance. They assume no
//! distribution.

/// The share of significant changes, at most, that are so by chance.
const CHANCE: f64 = 0.01;
/// The share of cases, at most, in which an interval misses; half of it at each end.
const MISSES: f64 = 0.05;

/// For each sum, the number of ways to choose `few` of these numbers with that sum.
fn ways(numbers: &[usize], few: usize) -> Vec<f64> {
    let most: usize = numbers.iter().sum();
    // The outer index is the count of chosen numbers.
    let mut ways = vec![vec![0.0; most + 1]; few + 1];
    if let Some(nothing) = ways.first_mut().and_then(|none| none.first_mut()) {
        *nothing = 1.0;
    }
    for number in numbers {
        for count in (1..=few).rev() {
            let (fewer, these) = ways.split_at_mut(count);
            let (Some(fewer), Some(these)) = (fewer.last(), these.first_mut()) else {
                continue;
            };
            let larger = these.iter_mut().skip(*number);
            larger.zip(fewer).for_each(|(these, ways)| *these += ways);
        }
    }
    ways.pop().unwrap_or_default()
}

/// The probability that the ranks of two sets differ at least as much as these by chance alone: the
/// two-sided rank-sum test of Mann and Whitney. It counts all divisions of the figures into two
/// sets of these sizes.
pub fn rank_sum(old: &[f64], new: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = Vec::with_capacity(old.len() + new.len());
    all.extend(old.iter().map(|figure| (*figure, true)));
    all.extend(new.iter().map(|figure| (*figure, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice each rank, since equal values share the mean of their ranks.
    let (mut ranks, mut found) = (Vec::with_capacity(all.len()), 0);
    for equal in all.chunk_by(|a, b| a.0 == b.0) {
        let rank = 2 * ranks.len() + equal.len() + 1;
        found += rank * equal.iter().filter(|(_, old)| *old).count();
        ranks.resize(ranks.len() + equal.len(), rank);
    }
    let middle = old.len() * (all.len() + 1);
    let ways = ways(&ranks, old.len());
    let as_far = |(sum, _): &(usize, &f64)| sum.abs_diff(middle) >= found.abs_diff(middle);
    let as_much: f64 = ways
        .iter()
        .enumerate()
        .filter(as_far)
        .map(|(_, ways)| ways)
        .sum();
    as_much / ways.iter().sum::<f64>()
}

/// The least possible [`rank_sum`] for so many runs: the two sets do not overlap.
fn least(old: usize, new: usize) -> f64 {
    let divisions = (1..=new).fold(1.0, |ways, i| ways * (old + i) as f64 / i as f64);
    (2.0 / divisions).min(1.0)
}

/// Whether so many runs can tell a change from chance.
pub fn can_tell(old: usize, new: usize) -> bool {
    least(old, new) <= CHANCE
}

/// The number of `rows` that must have changed for [`too_small`] to name them, for so many runs;
/// `None` if no number suffices.
pub fn together(old: usize, new: usize, rows: usize) -> Option<usize> {
    let needed = (least(old, new) * rows as f64 / CHANCE).ceil().max(1.0) as usize;
    (needed <= rows).then_some(needed)
}

/// Runs of each side that are enough to tell one change among so many rows.
pub fn enough(rows: usize) -> usize {
    let tell = |runs: &usize| together(*runs, *runs, rows) == Some(1);
    (1..).find(tell).unwrap_or(usize::MAX)
}

/// Marks the probabilities that are too small for chance among so many. At most a hundredth of the
/// marked ones are so by chance (Benjamini and Hochberg).
pub fn too_small(probabilities: &[f64]) -> Vec<bool> {
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let fits = |(rank, p): &(usize, &f64)| **p <= CHANCE * (rank + 1) as f64 / count;
    let limit = sorted.iter().enumerate().rev().find(fits);
    let within = |p: &f64| limit.is_some_and(|(_, limit)| p <= limit);
    probabilities.iter().map(within).collect()
}

/// The interval with 95 % confidence of a figure that compares two runs, if there are enough runs.
/// It takes all pairs of an old and a new run, and drops as many of the least and the greatest
/// figures as [`rank_sum`] allows.
pub fn interval(old: &[f64], new: &[f64], figure: impl Fn(f64, f64) -> f64) -> Option<(f64, f64)> {
    let pairs = old
        .iter()
        .flat_map(|old| new.iter().map(move |new| (*old, *new)));
    let mut figures: Vec<f64> = pairs.map(|(old, new)| figure(old, new)).collect();
    figures.sort_by(f64::total_cmp);
    // Cumulative sums of ranks from the least one on: the number of pairs in the other order.
    let ranks: Vec<usize> = (1..=old.len() + new.len()).collect();
    let ways = ways(&ranks, old.len());
    let all: f64 = ways.iter().sum();
    let first = old.len() * (old.len() + 1) / 2;
    let mut so_far = 0.0;
    let beyond = ways.iter().skip(first).take_while(|ways| {
        so_far += **ways;
        so_far / all <= MISSES / 2.0
    });
    let beyond = beyond.count().checked_sub(1)?;
    let low = figures.get(beyond)?;
    let high = figures.iter().rev().nth(beyond)?;
    Some((*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-9 * expected,
            "{found} is not {expected}"
        );
    }

    fn numbers(range: std::ops::Range<i32>) -> Vec<f64> {
        range.map(f64::from).collect()
    }

    #[test]
    fn the_rank_sum_of_known_figures_is_known() {
        // One set wholly below the other: 2 of C(10, 5) = 252, and 2 of C(14, 7) = 3432.
        close(rank_sum(&numbers(0..5), &numbers(5..10)), 2.0 / 252.0);
        close(rank_sum(&numbers(7..14), &numbers(0..7)), 2.0 / 3432.0);
        // U = 2: 1 + 1 + 2 ways at either end.
        let crossed = [5.0, 6.0, 7.0, 8.0, 2.5];
        close(rank_sum(&[0.0, 1.0, 2.0, 3.0, 4.0], &crossed), 8.0 / 252.0);
        // Ranks 1, 2.5, 2.5, 4: four of six divisions are as far from the middle.
        close(rank_sum(&[1.0, 2.0], &[2.0, 3.0]), 4.0 / 6.0);
        assert_eq!(rank_sum(&[5.0; 9], &[5.0; 9]), 1.0);
        assert_eq!(rank_sum(&[1.0], &[2.0]), 1.0);
        // The largest number of runs that is accepted.
        close(rank_sum(&numbers(0..32), &numbers(32..64)), least(32, 32));
    }

    #[test]
    fn few_runs_are_not_enough() {
        assert!(!can_tell(1, 1) && !can_tell(4, 4) && !can_tell(100, 1));
        assert!(can_tell(5, 5) && can_tell(4, 6) && can_tell(200, 1));
        assert_eq!((enough(1), enough(29)), (5, 8));
        // 2 in 252 of 29 rows: 23 of them at once.
        assert_eq!(together(5, 5, 29), Some(24));
        assert_eq!(together(4, 4, 29), None);
        assert_eq!(together(8, 8, 29), Some(1));
        let alone = |runs| {
            let mut probabilities = vec![1.0; 28];
            probabilities.push(least(runs, runs));
            too_small(&probabilities).contains(&true)
        };
        assert!(!alone(7) && alone(8));
    }

    #[test]
    fn the_more_there_are_the_less_chance_each_is_given() {
        assert_eq!(too_small(&[0.009]), [true]);
        assert_eq!(too_small(&[0.009, 0.5]), [false, false]);
        assert_eq!(too_small(&[0.5, 0.004, 0.009]), [false, false, false]);
        // The first one lets the second in: 2 of 3 at 0.0066.
        assert_eq!(too_small(&[0.006, 0.5, 0.002]), [true, false, true]);
        assert_eq!(too_small(&[]), Vec::<bool>::new());
    }

    #[test]
    fn the_interval_leaves_out_what_the_test_would() {
        let ratio = |old: f64, new: f64| new / old;
        let difference = |old: f64, new: f64| new - old;
        // For 5 and 5, two at each end: 1 + 1 + 2 of 252 ways are less than 2.5 %, and three more
        // are not.
        let old = numbers(0..5);
        let new = [100.0, 110.0, 120.0, 130.0, 140.0];
        assert_eq!(interval(&old, &new, difference), Some((98.0, 138.0)));
        assert_eq!(interval(&[2.0; 9], &[3.0; 9], ratio), Some((1.5, 1.5)));
        assert_eq!(interval(&[2.0; 3], &[3.0; 3], ratio), None);
        assert_eq!(interval(&[], &[], ratio), None);
    }
}
