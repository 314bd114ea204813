//! The types that are folded, and what a fold of them is, by another way than the library's.

use std::fmt::Debug;

use oxshmem::{Complex, Fold, Reducible, bf16, f16};

/// A type with what a fold of two values of it is, by another way than the library's.
pub trait Number: Reducible + PartialEq + Debug {
    /// The folds that the type has.
    const FOLDS: &'static [Fold];
    /// A value, of which all folds are exact or rounded as the order says, and none is not a number.
    fn make(seed: u64) -> Self;
    /// Folds in the team's order.
    fn fold(fold: Fold, values: &mut dyn Iterator<Item = Self>) -> Option<Self>;
    /// The fold of no values.
    fn nothing(fold: Fold) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(impl Number for $t {
        const FOLDS: &'static [Fold] = &Fold::ALL;
        fn make(seed: u64) -> Self {
            // Few bits, so that products and minima tell.
            (seed % 251) as $t ^ ((seed >> 60) as $t).wrapping_mul(77).rotate_right(3)
        }
        fn fold(fold: Fold, values: &mut dyn Iterator<Item = Self>) -> Option<Self> {
            let first = values.next()?;
            Some(values.fold(first, |a, b| match fold {
                Fold::Sum => a.wrapping_add(b),
                Fold::Prod => a.wrapping_mul(b),
                Fold::Min => if b < a { b } else { a },
                Fold::Max => if b > a { b } else { a },
                Fold::And => a & b,
                Fold::Or => a | b,
                Fold::Xor => a ^ b,
            }))
        }
        fn nothing(fold: Fold) -> Self {
            match fold {
                Fold::Sum | Fold::Or | Fold::Xor => 0,
                Fold::Prod => 1,
                Fold::Min => <$t>::MAX,
                Fold::Max => <$t>::MIN,
                Fold::And => (0 as $t).wrapping_sub(1) | !0,
            }
        }
    })*};
}
integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

const ARITHMETIC: &[Fold] = &[Fold::Sum, Fold::Prod, Fold::Min, Fold::Max];

macro_rules! floats {
    ($($t:ty, $wide:ty, $into:expr, $from:expr;)*) => {$(impl Number for $t {
        const FOLDS: &'static [Fold] = ARITHMETIC;
        fn make(seed: u64) -> Self {
            $from(((seed % 2001) as $wide - 1000.0) / 257.0)
        }
        fn fold(fold: Fold, values: &mut dyn Iterator<Item = Self>) -> Option<Self> {
            let mut values = values.map($into);
            let first = values.next()?;
            Some($from(values.fold(first, |a: $wide, b: $wide| match fold {
                Fold::Sum => a + b,
                Fold::Prod => a * b,
                Fold::Min => if b < a { b } else { a },
                _ => if b > a { b } else { a },
            })))
        }
        fn nothing(fold: Fold) -> Self {
            $from(match fold {
                Fold::Sum => 0.0,
                Fold::Prod => 1.0,
                Fold::Min => <$wide>::INFINITY,
                _ => <$wide>::NEG_INFINITY,
            })
        }
    })*};
}
floats! {
    f32, f32, |x| x, |x| x;
    f64, f64, |x| x, |x| x;
    f16, f32, f16::to_f32, f16::from_f32;
    bf16, f32, bf16::to_f32, bf16::from_f32;
}

macro_rules! complex {
    ($($t:ty)*) => {$(impl Number for Complex<$t> {
        const FOLDS: &'static [Fold] = &[Fold::Sum, Fold::Prod];
        fn make(seed: u64) -> Self {
            Complex::new(<$t as Number>::make(seed), <$t as Number>::make(seed >> 20))
        }
        fn fold(fold: Fold, values: &mut dyn Iterator<Item = Self>) -> Option<Self> {
            let first = values.next()?;
            Some(values.fold(first, |a, b| match fold {
                Fold::Sum => Complex::new(a.re + b.re, a.im + b.im),
                _ => Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re),
            }))
        }
        fn nothing(fold: Fold) -> Self {
            Complex::new(if fold == Fold::Prod { 1.0 } else { 0.0 }, 0.0)
        }
    })*};
}
complex!(f32 f64);
