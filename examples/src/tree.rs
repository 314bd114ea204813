//! The check of a breadth-first search by Graph500's five rules, independent of the search's own
//! code.

/// The parent of a vertex that was not reached.
pub const NONE: u32 = u32::MAX;

/// The statistics of a correct search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The number of vertices at each distance from the root, from 0 on.
    pub levels: Vec<u64>,
    /// Edges among the vertices reached, repeated ones and loops counted as often as they occur.
    pub edges: u64,
}

/// Checks the parents of all vertices, of a search from `root` along `edges` in both directions.
pub fn check(root: u32, parents: &[u32], edges: &[[u32; 2]]) -> Result<Tree, String> {
    let levels = levels(root, parents)?;
    let level = |vertex: u32| levels[vertex as usize];
    let parent = |vertex: u32| parents[vertex as usize];
    let mut joined = vec![false; parents.len()];
    let mut inside = 0;
    for &[a, b] in edges {
        let (Some(of_a), Some(of_b)) = (level(a), level(b)) else {
            // Rule 4: the tree contains all vertices connected with the root.
            if level(a) != level(b) {
                return Err(format!(
                    "of edge {a} to {b} one end was reached and one not"
                ));
            }
            continue;
        };
        // Rule 3: an edge leads at most one level further.
        if of_a.abs_diff(of_b) > 1 {
            return Err(format!("edge {a} to {b} leads from level {of_a} to {of_b}"));
        }
        inside += 1;
        joined[a as usize] |= parent(a) == b;
        joined[b as usize] |= parent(b) == a;
    }
    // Rule 5: a vertex and its parent are joined by an edge.
    let strange = (0..)
        .zip(&joined)
        .find(|&(vertex, joined)| !joined && level(vertex).is_some() && vertex != root);
    if let Some((vertex, _)) = strange {
        return Err(format!(
            "no edge joins {vertex} and its parent {}",
            parent(vertex)
        ));
    }
    let mut sizes = vec![0; levels.iter().flatten().max().map_or(0, |last| last + 1)];
    for level in levels.into_iter().flatten() {
        sizes[level] += 1;
    }
    Ok(Tree {
        levels: sizes,
        edges: inside,
    })
}

/// The distance of each vertex from the root by its parents. Rules 1 and 2: there is no cycle, and
/// a vertex is one level further than its parent.
fn levels(root: u32, parents: &[u32]) -> Result<Vec<Option<usize>>, String> {
    let mut levels = vec![None; parents.len()];
    match parents.get(root as usize) {
        Some(parent) if *parent == root => levels[root as usize] = Some(0),
        Some(parent) => return Err(format!("the root, {root}, has the parent {parent}")),
        None => return Err(format!("the root, {root}, is no vertex")),
    }
    let mut path = Vec::new();
    for start in 0..parents.len() {
        // Up to the first vertex whose level is known, then down again.
        let mut vertex = start;
        while levels[vertex].is_none() && parents[vertex] != NONE {
            path.push(vertex);
            let parent = parents[vertex] as usize;
            if path.len() > parents.len() {
                return Err(format!("the parents of {start} lead round in a cycle"));
            }
            if parent >= parents.len() {
                return Err(format!("the parent of {vertex}, {parent}, is no vertex"));
            }
            vertex = parent;
        }
        if levels[vertex].is_none() && !path.is_empty() {
            return Err(format!("{vertex} is a parent and was not reached"));
        }
        let mut level = levels[vertex];
        for vertex in path.drain(..).rev() {
            level = level.map(|level| level + 1);
            levels[vertex] = level;
        }
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    // 0 - 1 - 2 - 3 and 0 - 4 - 3, 1 - 1 a loop, 0 - 1 twice; 5 - 6 apart; 7 alone.
    const EDGES: [[u32; 2]; 8] = [
        [0, 1],
        [2, 1],
        [2, 3],
        [0, 4],
        [3, 4],
        [1, 1],
        [1, 0],
        [5, 6],
    ];
    const PARENTS: [u32; 8] = [0, 0, 1, 4, 0, NONE, NONE, NONE];

    fn with(changes: &[(usize, u32)]) -> [u32; 8] {
        let mut parents = PARENTS;
        changes
            .iter()
            .for_each(|(vertex, parent)| parents[*vertex] = *parent);
        parents
    }

    fn refusal(parents: &[u32]) -> String {
        check(0, parents, &EDGES).unwrap_err()
    }

    #[test]
    fn a_right_search_passes_with_its_levels_and_edges() {
        let tree = check(0, &PARENTS, &EDGES).unwrap();
        assert_eq!(tree.levels, [1, 2, 2]);
        assert_eq!(tree.edges, 7);
        let alone = check(7, &[NONE, NONE, NONE, NONE, NONE, NONE, NONE, 7], &EDGES).unwrap();
        assert_eq!((alone.levels, alone.edges), (vec![1], 0));
    }

    #[test]
    fn each_of_graph500s_rules_refuses_its_fault() {
        for (changes, words) in [
            (&[(2, 3), (3, 2)][..], "cycle"),             // 1
            (&[(0, 1)], "the root, 0, has the parent 1"), // 1
            (&[(5, 6)], "6 is a parent and was not reached"),
            (&[(3, 9)], "9, is no vertex"),
            // 2 and 3: a parent further away than another neighbour puts it too far from that.
            (&[(4, 3), (3, 2)], "edge 0 to 4 leads from level 0 to 4"),
            (&[(3, NONE)], "of edge 2 to 3 one end was reached"), // 4
            (&[(3, 1)], "no edge joins 3 and its parent 1"),      // 5
            (&[(5, 0)], "of edge 5 to 6 one end was reached"),    // 4 and 5
        ] {
            let said = refusal(&with(changes));
            assert!(said.contains(words), "{changes:?}: {said}");
        }
    }
}
