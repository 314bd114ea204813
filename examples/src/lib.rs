//! What the example programs are made of: each one's algorithm, apart from its command line, with
//! what checks its result and the serial program to compare it with where there is one.

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
