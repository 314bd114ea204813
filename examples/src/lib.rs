//! What the example programs share: a graph of named vertices, its reader and a serial PageRank to
//! check the parallel one against; heat on a plate, and its serial steps likewise.

pub mod graph;
pub mod heat;
pub mod pagerank;
pub mod read;
