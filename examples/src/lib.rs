//! The algorithms of the example programs, apart from their command lines: with the checks of their
//! results, and a serial version for comparison where there is one.

pub mod bfs;
pub mod exchange;
pub mod graph;
pub mod gups;
pub mod heat;
pub mod heat2d;
pub mod isort;
pub mod kronecker;
pub mod output;
pub mod pagerank;
pub mod read;
pub mod splitmix;
pub mod tree;
