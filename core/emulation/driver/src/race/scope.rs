//! Scopes: the threads that an atomic operation or a fence counts for.

/// A scope, of CUDA's memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Block,
    Device,
    System,
}

impl Scope {
    /// The scope by the number that device code gives.
    pub(crate) fn of(number: u32) -> Scope {
        match number {
            0 => Scope::Block,
            1 => Scope::Device,
            _ => Scope::System,
        }
    }

    /// Its name in CUDA's functions.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scope::Block => "block",
            Scope::Device => "device",
            Scope::System => "system",
        }
    }
}

/// A place, and the scope that counts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) scope: Scope,
    pub(crate) device: u32,
    /// The strand, the piece, and the block's number.
    pub(crate) block: (u32, u32, u32),
}

/// The block of what is no thread's of a kernel that runs.
pub(super) const NOBODY: (u32, u32, u32) = (0, 0, 0);

/// The host's place.
pub(super) const OF_HOST: Reach = Reach {
    scope: Scope::System,
    device: u32::MAX,
    block: NOBODY,
};

impl Reach {
    /// Whether the scope of one has the other's place in it.
    fn has(self, other: Reach) -> bool {
        match self.scope {
            Scope::Block => self.block == other.block,
            Scope::Device => self.device == other.device,
            Scope::System => true,
        }
    }

    /// Whether each has the other in its scope.
    pub(crate) fn meets(self, other: Reach) -> bool {
        self.has(other) && other.has(self)
    }

    /// The same place with a scope no wider than another.
    pub(crate) fn within(self, scope: Scope) -> Reach {
        Reach {
            scope: self.scope.min(scope),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(scope: Scope, device: u32, block: u32) -> Reach {
        Reach {
            scope,
            device,
            block: (device, 0, block),
        }
    }

    #[test]
    fn scopes_meet_if_each_has_the_other_in_it() {
        use Scope::{Block, Device, System};
        let met = |one, other: Reach| {
            let both = Reach::meets(one, other);
            assert_eq!(both, Reach::meets(other, one));
            both
        };
        assert!(met(at(Block, 0, 1), at(System, 0, 1)));
        assert!(!met(at(Block, 0, 1), at(System, 0, 2)));
        assert!(met(at(Device, 0, 1), at(Device, 0, 2)));
        assert!(met(at(Device, 0, 1), at(System, 0, 2)));
        assert!(!met(at(Device, 0, 1), at(System, 1, 2)));
        assert!(met(at(System, 0, 1), at(System, 1, 2)));
        assert_eq!(at(System, 0, 1).within(Block).scope, Block);
    }
}
