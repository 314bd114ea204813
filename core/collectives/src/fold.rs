//! The types of reductions, and the arithmetic of each fold.

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;
use oxshmem_transport::Fold;

/// A type of reductions and scans: integers, floats, [`f16`](struct@f16) and [`bf16`], complex floats.
///
/// Integers wrap. [`Fold::And`], [`Fold::Or`] and [`Fold::Xor`] are for integers alone. [`Fold::Min`] and
/// [`Fold::Max`] are for all but complex numbers, and give the other value where one is not a number. `f16` and
/// `bf16` are folded in `f32`, and rounded once. A reduction that goes host by host rounds once on each host and then once
/// more; one of few bytes of 32 hosts or more rounds once between.
pub trait Reducible: Pod + FoldOps {}

/// A fold of values into others, element by element.
pub type Folder<T> = fn(&mut [<T as FoldOps>::Wide], &[T]);

/// The arithmetic of a type. Not to be named outside of the library.
pub trait FoldOps: Sized {
    /// The type in which it is folded.
    type Wide: Copy;
    /// Its name.
    const NAME: &'static str;
    /// The same value in that type.
    fn widen(self) -> Self::Wide;
    /// The nearest value.
    fn narrow(wide: Self::Wide) -> Self;
    /// The function that folds values; none if the type has no such fold.
    fn folder(fold: Fold) -> Option<Folder<Self>>;
    /// The result of a fold of nothing, if the type has that fold.
    fn identity(fold: Fold) -> Self;
}

/// A loop over two slices, which the compiler makes a vector loop of where the type has one.
macro_rules! each {
    ($op:expr) => {
        Some(|into, from| {
            for (wide, value) in into.iter_mut().zip(from) {
                *wide = $op(*wide, Self::widen(*value));
            }
        })
    };
}
pub(crate) use each;

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Reducible for $t {}
        impl FoldOps for $t {
            type Wide = $t;
            const NAME: &'static str = stringify!($t);

            #[inline(always)]
            fn widen(self) -> $t {
                self
            }

            #[inline(always)]
            fn narrow(wide: $t) -> $t {
                wide
            }

            fn folder(fold: Fold) -> Option<Folder<Self>> {
                match fold {
                    Fold::Sum => each!(<$t>::wrapping_add),
                    Fold::Prod => each!(<$t>::wrapping_mul),
                    Fold::Min => each!(Ord::min),
                    Fold::Max => each!(Ord::max),
                    Fold::And => each!(|a, b| a & b),
                    Fold::Or => each!(|a, b| a | b),
                    Fold::Xor => each!(|a, b| a ^ b),
                }
            }

            fn identity(fold: Fold) -> Self {
                match fold {
                    Fold::Sum | Fold::Or | Fold::Xor => 0,
                    Fold::Prod => 1,
                    Fold::Min => <$t>::MAX,
                    Fold::Max => <$t>::MIN,
                    Fold::And => !0,
                }
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! floats {
    ($($t:ty, $wide:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Reducible for $t {}
        impl FoldOps for $t {
            type Wide = $wide;
            const NAME: &'static str = stringify!($t);

            #[inline(always)]
            fn widen(self) -> $wide {
                $widen(self)
            }

            #[inline(always)]
            fn narrow(wide: $wide) -> $t {
                $narrow(wide)
            }

            fn folder(fold: Fold) -> Option<Folder<Self>> {
                match fold {
                    Fold::Sum => each!(|a, b| a + b),
                    Fold::Prod => each!(|a, b| a * b),
                    Fold::Min => each!(<$wide>::min),
                    Fold::Max => each!(<$wide>::max),
                    Fold::And | Fold::Or | Fold::Xor => None,
                }
            }

            fn identity(fold: Fold) -> Self {
                $narrow(match fold {
                    Fold::Prod => 1.0,
                    Fold::Min => <$wide>::INFINITY,
                    Fold::Max => <$wide>::NEG_INFINITY,
                    _ => 0.0,
                })
            }
        }
    )*};
}
floats! {
    f32, f32, |x| x, |x| x;
    f64, f64, |x| x, |x| x;
    f16, f32, f16::to_f32, f16::from_f32;
    bf16, f32, bf16::to_f32, bf16::from_f32;
}

macro_rules! complex {
    ($($t:ty)*) => {$(
        impl Reducible for Complex<$t> {}
        impl FoldOps for Complex<$t> {
            type Wide = Self;
            const NAME: &'static str = concat!("Complex<", stringify!($t), ">");

            #[inline(always)]
            fn widen(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrow(wide: Self) -> Self {
                wide
            }

            fn folder(fold: Fold) -> Option<Folder<Self>> {
                match fold {
                    Fold::Sum => each!(|a, b| a + b),
                    Fold::Prod => each!(|a, b| a * b),
                    _ => None,
                }
            }

            fn identity(fold: Fold) -> Self {
                let real = if fold == Fold::Prod { 1.0 } else { 0.0 };
                Complex::new(real, 0.0)
            }
        }
    )*};
}
complex!(f32 f64);

/// An accumulator of values that are folded one after the other.
pub(crate) struct Folded<T: Reducible> {
    wide: Vec<T::Wide>,
    folder: Folder<T>,
    identity: T,
}

impl<T: Reducible> Folded<T> {
    /// An accumulator of up to `max` values at a time. None if the type has no such fold.
    pub(crate) fn new(fold: Fold, max: usize) -> Option<Self> {
        let identity = T::identity(fold);
        Some(Folded {
            folder: T::folder(fold)?,
            wide: vec![identity.widen(); max],
            identity,
        })
    }

    /// Starts over, with the first values as they are.
    pub(crate) fn start(&mut self, values: &[T]) {
        for (wide, value) in self.wide.iter_mut().zip(values) {
            *wide = value.widen();
        }
    }

    /// Starts over, with nothing.
    pub(crate) fn start_empty(&mut self) {
        self.wide.fill(self.identity.widen());
    }

    /// Folds more values in.
    pub(crate) fn add(&mut self, values: &[T]) {
        (self.folder)(&mut self.wide, values);
    }

    /// Writes the result.
    pub(crate) fn write_to(&self, into: &mut [T]) {
        for (value, wide) in into.iter_mut().zip(&self.wide) {
            *value = T::narrow(*wide);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_of_nothing_changes_nothing() {
        fn try_all<T: Reducible + PartialEq + std::fmt::Debug>(values: &[T]) {
            for fold in Fold::ALL {
                let Some(mut folded) = Folded::<T>::new(fold, values.len()) else {
                    assert_ne!(fold, Fold::Sum);
                    continue;
                };
                let mut out = values.to_vec();
                folded.start_empty();
                folded.add(values);
                folded.write_to(&mut out);
                assert_eq!(out, values, "{fold:?} of {}", T::NAME);
            }
        }
        try_all::<i8>(&[i8::MIN, -1, 0, 5, i8::MAX]);
        try_all::<u64>(&[0, 1, u64::MAX]);
        try_all::<i128>(&[i128::MIN, i128::MAX]);
        try_all::<f32>(&[f32::MIN, -0.5, 1.0, f32::INFINITY]);
        try_all::<f64>(&[f64::NEG_INFINITY, 3.25]);
        try_all::<f16>(&[f16::MIN, f16::ONE]);
        try_all::<bf16>(&[bf16::MAX, bf16::NEG_ONE]);
        try_all::<Complex<f64>>(&[Complex::new(1.5, -2.0)]);
    }

    #[test]
    fn halves_are_rounded_once() {
        // Each of them is lost when it is added to 2048 alone.
        let mut folded = Folded::<f16>::new(Fold::Sum, 1).unwrap();
        folded.start(&[f16::from_f32(2048.0)]);
        for _ in 0..8 {
            folded.add(&[f16::from_f32(0.75)]);
        }
        let mut out = [f16::ZERO];
        folded.write_to(&mut out);
        assert_eq!(out[0].to_f32(), 2054.0);
    }

    #[test]
    fn what_is_not_a_number_loses_against_one() {
        let mut folded = Folded::<f32>::new(Fold::Min, 2).unwrap();
        folded.start(&[f32::NAN, 3.0]);
        folded.add(&[1.0, f32::NAN]);
        let mut out = [0.0; 2];
        folded.write_to(&mut out);
        assert_eq!(out, [1.0, 3.0]);
    }
}
