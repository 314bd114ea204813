//! The local operand of a copy: symmetric memory, or a slice of cudarc's.

#[cfg(not(feature = "cuda"))]
use std::convert::Infallible;
use std::fmt;
#[cfg(not(feature = "cuda"))]
use std::marker::PhantomData;

#[cfg(feature = "cuda")]
use crate::copies::gpu_slice::Slice;
use crate::sym::Sym;

/// The source of a copy: a [`Sym`], or a slice or view of cudarc's on this PE's GPU.
///
/// cudarc's slices belong to a stream. Operations on a stream wait for that one on the GPU, and it for them,
/// so that what cudarc does with the slice later comes later; but not within a graph that is being captured,
/// where the program sees to that. Calls without a stream wait for it themselves.
#[derive(Debug)]
pub struct CopySource<'a, T>(pub(crate) LocalOperand<'a, T>);

/// The destination of a copy; as [`CopySource`].
#[derive(Debug)]
pub struct CopyTarget<'a, T>(pub(crate) LocalOperand<'a, T>);

pub(crate) enum LocalOperand<'a, T> {
    Symmetric(Sym<T>),
    #[cfg(feature = "cuda")]
    Slice(Slice<'a, T>),
    /// Without cudarc there is no other operand.
    #[cfg(not(feature = "cuda"))]
    #[expect(dead_code, reason = "it cannot be made")]
    Nothing(Infallible, PhantomData<&'a ()>),
}

impl<T> fmt::Debug for LocalOperand<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocalOperand::Symmetric(sym) => sym.fmt(f),
            #[cfg(feature = "cuda")]
            LocalOperand::Slice(slice) => write!(f, "{} bytes of a slice", slice.bytes()),
            #[cfg(not(feature = "cuda"))]
            LocalOperand::Nothing(never, _) => match *never {},
        }
    }
}

impl<T> From<Sym<T>> for CopySource<'_, T> {
    fn from(sym: Sym<T>) -> Self {
        CopySource(LocalOperand::Symmetric(sym))
    }
}

impl<T> From<Sym<T>> for CopyTarget<'_, T> {
    fn from(sym: Sym<T>) -> Self {
        CopyTarget(LocalOperand::Symmetric(sym))
    }
}
