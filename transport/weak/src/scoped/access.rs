//! Agents, words, and the strength of accesses.

/// The agents that an order reaches: a block's threads, a GPU's, or all, hosts and NICs included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `.cta`.
    Block,
    /// `.gpu`.
    Gpu,
    /// `.sys`.
    System,
}

/// The number of an agent: whoever loads and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent(pub usize);

/// The place of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A thread of a GPU.
    Thread {
        /// The GPU.
        gpu: usize,
        /// The block, by its number on that GPU.
        block: usize,
    },
    /// A CPU's thread, or a NIC.
    Outside,
}

/// The number of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(pub usize);

/// The strength of a load, store or read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// None for a weak access.
    pub(super) scope: Option<Scope>,
    /// Whether a load acquires, a store releases, a read-modify-write both.
    pub(super) acquires: bool,
    pub(super) releases: bool,
}

impl Access {
    /// A plain access of a program.
    pub const WEAK: Access = Access {
        scope: None,
        acquires: false,
        releases: false,
    };

    /// A strong access that orders nothing.
    #[must_use]
    pub fn relaxed(scope: Scope) -> Access {
        Access {
            scope: Some(scope),
            ..Access::WEAK
        }
    }

    /// The same, acquiring.
    #[must_use]
    pub fn acquire(self) -> Access {
        Access {
            acquires: true,
            ..self
        }
    }

    /// The same, releasing.
    #[must_use]
    pub fn release(self) -> Access {
        Access {
            releases: true,
            ..self
        }
    }
}

/// A store that an earlier load of another agent could have seen: nothing orders it behind that load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hazard {
    /// The guarded location.
    pub word: Word,
    /// The agent that had loaded.
    pub reader: Agent,
    /// The agent that stored.
    pub writer: Agent,
}
