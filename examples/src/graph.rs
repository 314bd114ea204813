//! A directed graph, stored by target: for each vertex, the sources of its incoming edges.

use std::collections::HashMap;
use std::ops::Range;

/// A directed graph with named vertices, numbered from 0. No edge occurs twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    names: Vec<Box<str>>,
    part: Part,
    out_degree: Vec<u32>,
}

/// The edges that point to a range of vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// For each vertex of the range, where its sources begin in `sources`; one more for the end.
    starts: Vec<usize>,
    sources: Vec<u32>,
}

impl Part {
    /// Number of vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.sources.len()
    }

    /// For each vertex of the range in turn, the sources of its incoming edges.
    pub fn sources(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|at| &self.sources[at[0]..at[1]])
    }
}

impl Graph {
    /// Number of vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.names.len()
    }

    /// Number of edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.part.edges()
    }

    /// The vertices' names, as the file spells them.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The number of outgoing edges of each vertex.
    #[must_use]
    pub fn out_degree(&self) -> &[u32] {
        &self.out_degree
    }

    /// All edges by target.
    #[must_use]
    pub fn whole(&self) -> &Part {
        &self.part
    }

    /// A copy of the edges that point to these vertices.
    #[must_use]
    pub fn part(&self, vertices: Range<usize>) -> Part {
        let at = &self.part.starts[vertices.start..=vertices.end];
        Part {
            starts: at.iter().map(|start| start - at[0]).collect(),
            sources: self.part.sources[at[0]..at[at.len() - 1]].to_vec(),
        }
    }

    /// Cuts the vertices into `parts` consecutive ranges of about equal work: a vertex and an edge
    /// count alike. Ranges may be empty.
    #[must_use]
    pub fn partition(&self, parts: usize) -> Vec<Range<usize>> {
        let work = |vertex: usize| self.part.starts[vertex] + vertex;
        let total = work(self.vertices());
        let bound = |part: usize| {
            let share = total as u128 * part as u128 / parts as u128;
            let (mut low, mut high) = (0, self.vertices());
            while low < high {
                let middle = low.midpoint(high);
                if (work(middle) as u128) < share {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            low
        };
        (0..parts)
            .map(|part| bound(part)..bound(part + 1))
            .collect()
    }
}

/// Collects edges between names into a [`Graph`]; vertices are numbered as they first occur.
#[derive(Debug, Default)]
pub struct Builder {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    edges: Vec<(u32, u32)>,
}

/// A graph has more vertices than 32-bit numbers.
#[derive(Clone, Copy, Debug)]
pub struct TooManyVertices;

impl Builder {
    /// Adds an edge; a repeated one counts once.
    pub fn edge(&mut self, from: &str, to: &str) -> Result<(), TooManyVertices> {
        let edge = (self.vertex(from)?, self.vertex(to)?);
        self.edges.push(edge);
        Ok(())
    }

    fn vertex(&mut self, name: &str) -> Result<u32, TooManyVertices> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = u32::try_from(self.names.len()).map_err(|_| TooManyVertices)?;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        Ok(number)
    }

    /// The graph of the edges added.
    #[must_use]
    pub fn build(self) -> Graph {
        let Builder {
            names, mut edges, ..
        } = self;
        edges.sort_unstable_by_key(|&(from, to)| (to, from));
        edges.dedup();
        let mut out_degree = vec![0; names.len()];
        let mut starts = Vec::with_capacity(names.len() + 1);
        for (at, &(from, to)) in edges.iter().enumerate() {
            out_degree[from as usize] += 1;
            while starts.len() <= to as usize {
                starts.push(at);
            }
        }
        starts.resize(names.len() + 1, edges.len());
        let sources = edges.into_iter().map(|(from, _)| from).collect();
        Graph {
            names,
            part: Part { starts, sources },
            out_degree,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(edges: &[(u8, u8)]) -> Graph {
        let mut builder = Builder::default();
        for (from, to) in edges {
            builder.edge(&from.to_string(), &to.to_string()).unwrap();
        }
        builder.build()
    }

    #[test]
    fn repeated_edges_count_once_and_loops_stay() {
        let graph = graph(&[(7, 9), (7, 9), (9, 9), (3, 9)]);
        assert_eq!(
            graph.names().iter().map(|name| &**name).collect::<Vec<_>>(),
            ["7", "9", "3"]
        );
        assert_eq!(graph.out_degree(), [1, 1, 1]);
        let sources: Vec<_> = graph.whole().sources().collect();
        assert_eq!(sources, [&[][..], &[0, 1, 2], &[]]);
    }

    proptest! {
        #[test]
        fn parts_cover_each_vertex_and_edge_once(
            edges in prop::collection::vec((0u8..40, 0u8..40), 1..300),
            parts in 1usize..9,
        ) {
            let graph = graph(&edges);
            let ranges = graph.partition(parts);
            prop_assert_eq!(ranges.len(), parts);
            prop_assert_eq!(ranges[0].start, 0);
            prop_assert_eq!(ranges[parts - 1].end, graph.vertices());
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let pieces: Vec<Part> = ranges.into_iter().map(|range| graph.part(range)).collect();
            let together: Vec<&[u32]> = pieces.iter().flat_map(Part::sources).collect();
            prop_assert_eq!(together, graph.whole().sources().collect::<Vec<_>>());
            // No part has more than its share and the one vertex that exceeds it.
            let heaviest = graph.whole().sources().map(<[u32]>::len).max().unwrap() + 1;
            let share = (graph.vertices() + graph.edges()).div_ceil(parts);
            for piece in &pieces {
                prop_assert!(piece.vertices() + piece.edges() <= share + heaviest);
            }
        }
    }
}
