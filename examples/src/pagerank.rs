//! PageRank: the importance of a vertex by the importance of those that point to it.
//!
//! The rank of a vertex is the probability to find a walker there. At each step it follows a random
//! edge with probability `damping`, and else jumps to a random vertex; from a vertex without edges
//! (a *dangling* one) it always jumps. Ranks sum to 1.

use crate::graph::{Graph, Part};

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Probability to follow an edge, 0 to 1.
    pub damping: f64,
    /// The run ends when the ranks' changes in one step sum to less.
    pub tolerance: f64,
    /// The run ends after so many steps at the latest.
    pub max_iterations: u32,
}

/// Computes one PE's share of a step: the new ranks of the part's vertices, from the values that
/// every vertex passes along each of its edges, and from the sum of all dangling vertices' ranks.
pub fn step(part: &Part, along: &[f64], dangling: f64, damping: f64, ranks: &mut [f64]) -> f64 {
    let vertices = along.len() as f64;
    let base = (1.0 - damping + damping * dangling) / vertices;
    let mut change = 0.0;
    for (rank, sources) in ranks.iter_mut().zip(part.sources()) {
        let sum: f64 = sources.iter().map(|source| along[*source as usize]).sum();
        let new = base + damping * sum;
        change += (new - *rank).abs();
        *rank = new;
    }
    change
}

/// Computes the values that vertices with these ranks and out-degrees pass along each of their
/// edges. Returns the sum of the dangling vertices' ranks.
pub fn share(ranks: &[f64], out_degree: &[u32], along: &mut [f64]) -> f64 {
    let mut dangling = 0.0;
    for ((along, rank), degree) in along.iter_mut().zip(ranks).zip(out_degree) {
        if *degree == 0 {
            dangling += rank;
            *along = 0.0;
        } else {
            *along = rank / f64::from(*degree);
        }
    }
    dangling
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The rank of each vertex.
    pub ranks: Vec<f64>,
    /// Steps taken.
    pub iterations: u32,
    /// The ranks' changes in the last step, summed.
    pub change: f64,
}

/// PageRank in one thread, for comparison.
#[must_use]
pub fn serial(graph: &Graph, params: &Params) -> Outcome {
    let vertices = graph.vertices();
    let mut ranks = vec![1.0 / vertices as f64; vertices];
    let mut along = vec![0.0; vertices];
    let (mut iterations, mut change) = (0, f64::INFINITY);
    while iterations < params.max_iterations && change >= params.tolerance {
        let dangling = share(&ranks, graph.out_degree(), &mut along);
        change = step(graph.whole(), &along, dangling, params.damping, &mut ranks);
        iterations += 1;
    }
    Outcome {
        ranks,
        iterations,
        change,
    }
}

/// The largest difference between two vertices' ranks.
#[must_use]
pub fn max_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parse;

    const PARAMS: Params = Params {
        damping: 0.85,
        tolerance: 1e-12,
        max_iterations: 1000,
    };

    fn ranks(edges: &str) -> Vec<f64> {
        let outcome = serial(&parse("test", edges.as_bytes()).unwrap(), &PARAMS);
        assert!(outcome.change < PARAMS.tolerance);
        outcome.ranks
    }

    #[test]
    fn a_ring_ranks_all_alike() {
        assert!(max_difference(&ranks("a b\nb c\nc a\n"), &[1.0 / 3.0; 3]) < 1e-12);
    }

    #[test]
    fn dangling_rank_is_spread_over_all() {
        // a -> b, b dangling: b = (1 - d)/2 + d (a + b/2), a = (1 - d)/2 + d b/2, a + b = 1.
        let a = 1.0 / 2.85;
        assert!(max_difference(&ranks("a b\n"), &[a, 1.0 - a]) < 1e-11);
    }

    #[test]
    fn ranks_sum_to_one() {
        let sum: f64 = ranks("a b\na c\nb c\nd c\nd e\nf f\n").iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }
}
