//! Places of accesses: bytes of memory, and the code that accesses them.

/// An access's bytes, and its place in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// The address behind the access's call, or a code.
    pub(crate) pc: usize,
}

/// Codes of places in no kernel, in the stead of an address.
pub(crate) const COPY: usize = 1;
pub(crate) const FILL: usize = 2;
pub(crate) const STREAM_WORD: usize = 3;
/// A nonblocking call of the host.
pub(super) const HOST_CALL: usize = 4;
pub(super) const CODES: usize = 16;
