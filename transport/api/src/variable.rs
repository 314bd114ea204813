//! An environment variable, as a table of settings describes it: oxshmem's own, and those that a
//! transport reads itself.

/// One environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The value that holds where it is not set, in words.
    pub default: &'static str,
    /// Its meaning, with units.
    pub meaning: &'static str,
}
