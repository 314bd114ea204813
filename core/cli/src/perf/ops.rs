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

/// In the order of the table.
pub const FAMILIES: &[&[Op]] = &[
    word::OPS,
    atomic::OPS,
    atomic_nbi::OPS,
    order::OPS,
    wait::OPS,
    wait::SEVERAL,
    lock::OPS,
    object::OPS,
    pair::OPS,
    collective::OPS,
    fold::OPS,
    transfer::OPS,
    #[cfg(feature = "cuda")]
    stream::OPS,
    limit::OPS,
];
