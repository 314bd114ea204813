//! The errors of litmus programs.

/// The reason why a program was refused, its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no litmus program.
    #[error("line {line}, column {column}: {problem}; {remedy}")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The model has more states than it may keep.
    #[error(
        "litmus program {name} has more than {states} states in the model; make it smaller, or put \
         a fence, quiet or barrier between its parts"
    )]
    TooManyStates {
        /// The program.
        name: String,
        /// The allowed number of states.
        states: usize,
    },
}
