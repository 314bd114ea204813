//! Which transport reaches which PE, and why.

mod ways;

#[allow(unused_imports, reason = "the order engine is about to use it")]
pub(crate) use ways::{Way, Ways};

/// How one PE is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The transport; none if no transport reaches the PE.
    pub transport: Option<&'static str>,
    /// Whether the PE's memory is loaded and stored directly.
    pub mapped: bool,
    /// What every transport that was considered said, best first.
    pub considered: Vec<Considered>,
}

/// One transport's answer about one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered {
    /// The transport.
    pub transport: String,
    /// Its answer, in words.
    pub answer: String,
}

impl Route {
    /// The answers of all, for an error.
    pub(crate) fn refusals(&self) -> String {
        if self.considered.is_empty() {
            return "no transport is enabled; see OXSHMEM_TRANSPORT".into();
        }
        self.considered
            .iter()
            .map(|c| format!("{}: {}", c.transport, c.answer))
            .collect::<Vec<_>>()
            .join("; ")
    }
}
