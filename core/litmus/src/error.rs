//! What can be wrong with a litmus program.

/// Why a program was refused, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no litmus program.
    #[error("line {line}, column {column}: {problem}; {remedy}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// What is wrong.
        problem: String,
        /// What would be right.
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
        /// How many were allowed.
        states: usize,
    },
}
