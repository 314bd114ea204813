//! Enhanced connection establishment: options that a connection's two ends agree on.

/// Options of a connection beyond the specification, such as a better repetition of lost packets, on which devices of
/// one vendor agree: `ibv_ece`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Ece {
    pub(crate) vendor: u32,
    pub(crate) options: u32,
    pub(crate) comp_mask: u32,
}

const _: () = assert!(size_of::<Ece>() == 12 && std::mem::offset_of!(Ece, comp_mask) == 8);
