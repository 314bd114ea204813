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
