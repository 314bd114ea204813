//! Figures of all links as matrices over the members.

use std::collections::BTreeMap;

use super::links::Link;
use super::statistics::{Matrix, better_median};

/// The figures of all links. Bandwidths are bytes per second, latencies nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub one_way: Matrix,
    pub both_ways: Matrix,
    pub latency: Matrix,
    /// Words with wrong data, from a member to another.
    pub wrong: Vec<(usize, usize, u64)>,
}

impl Measured {
    /// The medians of all measurements of each link.
    pub fn of(members: usize, links: &[Link]) -> Self {
        let median = |values: &[f64]| better_median(values.iter().copied());
        Self::by(members, links, median, median)
    }

    /// The best of all measurements of each link.
    fn best_of(members: usize, links: &[Link]) -> Self {
        let most = |values: &[f64]| values.iter().copied().max_by(f64::total_cmp);
        let least = |values: &[f64]| values.iter().copied().min_by(f64::total_cmp);
        Self::by(members, links, most, least)
    }

    /// One figure of each link from all its measurements: of bandwidths, and of latencies.
    fn by(
        members: usize,
        links: &[Link],
        bandwidth: fn(&[f64]) -> Option<f64>,
        latency: fn(&[f64]) -> Option<f64>,
    ) -> Self {
        let mut by_link: BTreeMap<(usize, usize), Vec<&Link>> = BTreeMap::new();
        for link in links
            .iter()
            .filter(|link| link.from < members && link.to < members)
        {
            by_link.entry((link.from, link.to)).or_default().push(link);
        }
        let empty = vec![vec![None; members]; members];
        let mut measured = Measured {
            one_way: empty.clone(),
            both_ways: empty.clone(),
            latency: empty,
            wrong: Vec::new(),
        };
        for (&(from, to), links) in &by_link {
            let of =
                |value: fn(&Link) -> f64| links.iter().map(|link| value(link)).collect::<Vec<_>>();
            measured.one_way[from][to] = bandwidth(&of(|link| link.one_way));
            measured.both_ways[from][to] = bandwidth(&of(|link| link.both_ways));
            measured.latency[from][to] = latency(&of(|link| link.latency));
            let wrong: u64 = links.iter().map(|link| link.wrong).sum();
            if wrong > 0 {
                // The receiver found it.
                measured.wrong.push((to, from, wrong));
            }
        }
        measured
    }

    /// The usual bandwidth one way.
    pub fn usual(&self) -> Option<f64> {
        better_median(cells(&self.one_way).map(|(_, _, value)| value))
    }

    /// The least bandwidth one way.
    pub fn least(&self) -> Option<f64> {
        cells(&self.one_way)
            .map(|(_, _, value)| value)
            .min_by(f64::total_cmp)
    }

    /// Takes the better figures of a second measurement. Of each member in `again`, the links that were not
    /// measured again no longer count.
    pub fn with_again(&self, links: &[Link], again: &[usize]) -> Self {
        let members = self.one_way.len();
        let second = Measured::best_of(members, links);
        let merge = |first: &Matrix, second: &Matrix, better: fn(f64, f64) -> f64| -> Matrix {
            let cell = |from: usize, to: usize| {
                let (one, two) = (first[from][to], second[from][to]);
                match (one, two) {
                    (Some(one), Some(two)) => Some(better(one, two)),
                    _ if again.contains(&from) || again.contains(&to) => None,
                    _ => one,
                }
            };
            (0..members)
                .map(|from| (0..members).map(|to| cell(from, to)).collect())
                .collect()
        };
        Measured {
            one_way: merge(&self.one_way, &second.one_way, f64::max),
            both_ways: merge(&self.both_ways, &second.both_ways, f64::max),
            latency: merge(&self.latency, &second.latency, f64::min),
            wrong: second.wrong,
        }
    }
}

/// The figures of a matrix, each with its link.
pub fn cells(matrix: &Matrix) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
    matrix.iter().enumerate().flat_map(|(from, row)| {
        let cell = move |(to, value): (usize, &Option<f64>)| Some((from, to, (*value)?));
        row.iter().enumerate().filter_map(cell)
    })
}
