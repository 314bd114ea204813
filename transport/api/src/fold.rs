//! The operations of reductions.

/// The operation of a reduction on two elements. Integers wrap; `And`, `Or` and `Xor` are of integers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fold {
    /// Adds.
    Sum,
    /// Multiplies.
    Prod,
    /// Takes the smaller.
    Min,
    /// Takes the larger.
    Max,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one of them.
    Xor,
}

impl Fold {
    /// All operations.
    pub const ALL: [Fold; 7] = [
        Fold::Sum,
        Fold::Prod,
        Fold::Min,
        Fold::Max,
        Fold::And,
        Fold::Or,
        Fold::Xor,
    ];

    /// Its name, in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Prod => "prod",
            Fold::Min => "min",
            Fold::Max => "max",
            Fold::And => "and",
            Fold::Or => "or",
            Fold::Xor => "xor",
        }
    }

    /// Whether it exists for integers only.
    #[must_use]
    pub const fn is_bitwise(self) -> bool {
        matches!(self, Fold::And | Fold::Or | Fold::Xor)
    }
}
