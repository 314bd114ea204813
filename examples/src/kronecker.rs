//! Random graphs in which few vertices have many edges and many have few: Kronecker graphs, as in
//! Graph500. An edge depends on its number alone, so PEs make their parts of one graph
//! independently.

use crate::splitmix;

/// Edges per vertex.
const EDGE_FACTOR: u64 = 16;
/// Of 100 edges, the number within the first half of the vertices, from the first half to the
/// second, and from the second to the first; likewise within each half of each half. The rest lie
/// within the second half.
const SHARES: [u64; 3] = [57, 19, 19];

/// A graph of 2 to the power of `scale` vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kronecker {
    /// 31 at most.
    pub scale: u32,
    /// The seed; another seed gives another graph.
    pub seed: u64,
}

impl Kronecker {
    /// Number of vertices.
    #[must_use]
    pub fn vertices(&self) -> u64 {
        1 << self.scale
    }

    /// Number of edges; some occur more than once, and some are loops.
    #[must_use]
    pub fn edges(&self) -> u64 {
        EDGE_FACTOR << self.scale
    }

    /// Edge number `edge`, with vertices renumbered at random.
    #[must_use]
    pub fn edge(&self, edge: u64) -> [u32; 2] {
        self.ordered_edge(edge).map(|vertex| self.renumber(vertex))
    }

    /// The edge before renumbering: vertices with small numbers have many edges.
    fn ordered_edge(&self, edge: u64) -> [u32; 2] {
        let seed = splitmix::at(self.seed, edge);
        let mut ends = [0; 2];
        for bit in 0..self.scale {
            let point = splitmix::at(seed, u64::from(bit));
            let share = ((u128::from(point) * 100) >> u64::BITS) as u64;
            let [among_first, to_second, _] = SHARES;
            let (from, to) = match share {
                share if share < among_first => (0, 0),
                share if share < among_first + to_second => (0, 1),
                share if share < SHARES.iter().sum() => (1, 0),
                _ => (1, 1),
            };
            ends = [(ends[0] << 1) | from, (ends[1] << 1) | to];
        }
        ends
    }

    /// A permutation of the numbers below `2^scale`: each step can be undone.
    fn renumber(&self, vertex: u32) -> u32 {
        let mask = self.vertices() - 1;
        let mut number = u64::from(vertex);
        for round in 0..3 {
            let key = splitmix::at(!self.seed, round);
            number = (number ^ key).wrapping_mul(key | 1) & mask;
            number ^= number >> (self.scale / 2).max(1);
        }
        number as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renumbering_loses_no_vertex() {
        for scale in [0, 1, 2, 7, 12] {
            let graph = Kronecker { scale, seed: 5 };
            let mut numbers: Vec<u32> = (0..1 << scale).map(|v| graph.renumber(v)).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..1 << scale).collect::<Vec<u32>>(), "{scale}");
        }
    }

    #[test]
    fn edges_fall_into_the_quarters_by_graph500s_shares() {
        let graph = Kronecker { scale: 12, seed: 1 };
        for bit in [0, 11] {
            let mut quarters = [0_u32; 4];
            for edge in 0..graph.edges() {
                let [from, to] = graph.ordered_edge(edge).map(|end| (end >> bit) & 1);
                quarters[(2 * from + to) as usize] += 1;
            }
            let shares = quarters.map(|edges| f64::from(edges) / graph.edges() as f64);
            for (share, wanted) in shares.into_iter().zip([0.57, 0.19, 0.19, 0.05]) {
                assert!((share - wanted).abs() < 0.01, "bit {bit}: {shares:?}");
            }
        }
    }
}
