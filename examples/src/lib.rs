//! What the example programs share: a graph of named vertices, its reader and a serial PageRank to
//! check the parallel one against.

pub mod graph;
pub mod pagerank;
pub mod read;
