//! Whether two sets of samples differ by more than chance.

use crate::perf::statistics::median;

/// The probability that samples of one kind come to differ in rank as much as these by chance
/// alone: the two-sided rank-sum test of Mann and Whitney, by its normal approximation with ties.
pub fn rank_sum(old: &[f64], new: &[f64]) -> f64 {
    let (m, n) = (old.len() as f64, new.len() as f64);
    let mut all: Vec<(f64, bool)> = Vec::with_capacity(old.len() + new.len());
    all.extend(old.iter().map(|sample| (*sample, true)));
    all.extend(new.iter().map(|sample| (*sample, false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut ranks, mut ties) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|a, b| a.0 == b.0) {
        let count = equal.len() as f64;
        let of_old = equal.iter().filter(|(_, old)| *old).count() as f64;
        // Equals share the mean of their ranks.
        ranks += of_old * (below + (count + 1.0) / 2.0);
        ties += count * (count * count - 1.0);
        below += count;
    }
    let u = ranks - m * (m + 1.0) / 2.0;
    let all = m + n;
    let variance = m * n / 12.0 * ((all + 1.0) - ties / (all * (all - 1.0)));
    if variance.is_nan() || variance <= 0.0 {
        return 1.0;
    }
    let distance = ((u - m * n / 2.0).abs() - 0.5).max(0.0);
    (2.0 * normal_tail(distance / variance.sqrt())).min(1.0)
}

/// The share of a normal distribution that lies beyond so many standard deviations, `z >= 0`.
fn normal_tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 3.0 {
        // z + z^3/3 + z^5/(3*5) + ...
        let mut term = z;
        let mut sum = z;
        let mut odd = 3.0;
        while term > sum * 1e-16 {
            term *= z * z / odd;
            sum += term;
            odd += 2.0;
        }
        return 0.5 - density * sum;
    }
    // 1/(z + 1/(z + 2/(z + 3/(z + ...)))), from its far end.
    let fraction = (1..=60).rev().fold(z, |rest, k| z + f64::from(k) / rest);
    density / fraction
}

/// Which of these probabilities are too small for chance, of so many: at most `share` of those
/// that are named is so by chance (Benjamini and Hochberg).
pub fn too_small(probabilities: &[f64], share: f64) -> Vec<bool> {
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let fits = |(rank, p): &(usize, &f64)| **p <= share * (rank + 1) as f64 / count;
    let limit = sorted.iter().enumerate().rev().find(fits);
    let within = |p: &f64| limit.is_some_and(|(_, limit)| p <= limit);
    probabilities.iter().map(within).collect()
}

/// Where a figure of the two medians lies with about 95 % confidence: of many draws with
/// replacement from both sets, the middle 95 % (bootstrap). The same samples give the same.
pub fn interval(old: &[f64], new: &[f64], figure: impl Fn(f64, f64) -> f64) -> (f64, f64) {
    const DRAWS: usize = 1000;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut figures: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let [old, new] = [old, new].map(|samples| median(&random.draw(samples)));
            figure(old, new)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    let at = |share: usize| {
        figures
            .get(DRAWS * share / 1000)
            .copied()
            .unwrap_or(f64::NAN)
    };
    (at(25), at(974))
}

/// A simple random sequence (xorshift).
struct Random(u64);

impl Random {
    /// As many samples as there are, each any of them.
    fn draw(&mut self, samples: &[f64]) -> Vec<f64> {
        let one = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            let at = (self.0 >> 32) as usize % samples.len().max(1);
            samples.get(at).copied()
        };
        (0..samples.len()).filter_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-4 * expected,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        close(normal_tail(0.0), 0.5);
        close(normal_tail(1.0), 0.158_655);
        close(normal_tail(1.959_964), 0.025);
        close(normal_tail(2.999_999), 0.001_349_9);
        close(normal_tail(3.0), 0.001_349_898);
        close(normal_tail(6.0), 9.865_88e-10);
    }

    #[test]
    fn the_rank_sum_of_known_samples_is_known() {
        let numbers = |range: std::ops::Range<i32>| range.map(f64::from).collect::<Vec<_>>();
        // U = 0 of 7 and 7: z = 24 / sqrt(49 * 15 / 12).
        close(rank_sum(&numbers(0..7), &numbers(7..14)), 2.165_03e-3);
        // In either order.
        close(rank_sum(&numbers(7..14), &numbers(0..7)), 2.165_03e-3);
        // With ties: U = 5, of variance 22.08.
        let tied = rank_sum(&[1.0, 2.0, 2.0, 3.0, 4.0], &[2.0, 3.0, 4.0, 5.0, 6.0]);
        close(tied, 0.136_333);
        assert_eq!(rank_sum(&[5.0; 9], &[5.0; 9]), 1.0);
        assert_eq!(rank_sum(&[], &[1.0]), 1.0);
        assert_eq!(rank_sum(&numbers(0..9), &numbers(0..9)), 1.0);
    }

    #[test]
    fn the_more_there_are_the_less_chance_each_is_given() {
        assert_eq!(too_small(&[0.009], 0.01), [true]);
        assert_eq!(too_small(&[0.009, 0.5], 0.01), [false, false]);
        assert_eq!(too_small(&[0.5, 0.004, 0.009], 0.01), [false, false, false]);
        // The second is let in by the first: 2 of 3 at 0.0066.
        assert_eq!(too_small(&[0.006, 0.5, 0.002], 0.01), [true, false, true]);
        assert_eq!(too_small(&[], 0.01), Vec::<bool>::new());
    }

    #[test]
    fn the_interval_holds_the_ratio_and_is_the_same_each_time() {
        let old: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i % 7)).collect();
        let new: Vec<f64> = old.iter().map(|sample| sample * 1.5).collect();
        let ratio = |old: f64, new: f64| new / old;
        let (low, high) = interval(&old, &new, ratio);
        assert!(
            (1.4..=1.5).contains(&low) && (1.5..1.6).contains(&high),
            "{low} {high}"
        );
        assert_eq!(interval(&old, &new, ratio), (low, high));
        assert_eq!(interval(&[2.0; 9], &[3.0; 9], ratio), (1.5, 1.5));
    }
}
