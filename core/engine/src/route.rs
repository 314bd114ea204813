//! The routes to the PEs: the paths, how they are chosen, and the reasons.

pub mod path;
pub mod reasons;
pub mod rules;
pub mod select;
pub mod table;
#[cfg(test)]
mod tests;
