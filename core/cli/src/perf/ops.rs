//! The operations, by family. To add one, add an entry to its family's list.

pub mod atomic;
pub mod atomic_nbi;
pub mod collective;
pub mod fold;
pub mod limit;
pub mod lock;
pub mod object;
pub mod order;
pub mod pair;
#[cfg(feature = "cuda")]
pub mod stream;
pub mod transfer;
pub mod wait;
pub mod word;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::op::Op;

/// A family: its operations' curves share a panel.
pub struct Family {
    pub name: &'static str,
    pub ops: &'static [Op],
}

const fn family(name: &'static str, ops: &'static [Op]) -> Family {
    Family { name, ops }
}

/// All families, in the order of the table.
pub const FAMILIES: &[Family] = &[
    family("single values", word::OPS),
    family("atomics", atomic::OPS),
    family("nonblocking atomics", atomic_nbi::OPS),
    family("order", order::OPS),
    family("waits", wait::OPS),
    family("waits for several", wait::SEVERAL),
    family("locks", lock::OPS),
    family("contexts, teams and objects", object::OPS),
    family("there and back", pair::OPS),
    family("collectives", collective::OPS),
    family("reductions and scans", fold::OPS),
    family("puts and gets", transfer::OPS),
    family("strided puts and gets", transfer::STRIDED_OPS),
    family("nonblocking puts and gets", transfer::NBI_OPS),
    #[cfg(feature = "cuda")]
    family("streams", stream::OPS),
    family("limits", limit::OPS),
];

impl Op {
    /// All operations, in the order of the table.
    pub fn all() -> impl Iterator<Item = &'static Op> {
        FAMILIES.iter().flat_map(|family| family.ops)
    }

    /// Whether it is a limit of the machine itself, not an operation of oxshmem.
    pub fn is_limit(&self) -> bool {
        limit::OPS.iter().any(|limit| limit.name == self.name)
    }

    /// Whether it uses the fold of `--fold`.
    pub fn folds(&self) -> bool {
        fold::OPS.iter().any(|fold| fold.name == self.name)
    }

    /// Whether its blocks lie in GPU memory, whatever `--memory` says.
    pub fn needs_gpu(&self) -> bool {
        #[cfg(feature = "cuda")]
        return stream::OPS.iter().any(|op| op.name == self.name);
        #[cfg(not(feature = "cuda"))]
        false
    }
}

/// Reads an operation's name.
pub fn parser() -> impl TypedValueParser<Value = &'static Op> {
    let names = Op::all().map(|op| PossibleValue::new(op.name).help(op.about));
    PossibleValuesParser::new(names).try_map(|name| {
        let found = Op::all().find(|op| op.name == name);
        found.ok_or_else(|| format!("there is no operation {name:?}"))
    })
}
