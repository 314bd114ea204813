//! C's `long double` on x86-64: 80 bits, in 16 bytes.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use oxshmem_transport::Fold;

use super::fold::each;
use crate::fold::{FoldOps, Folder, Reducible};

/// C's `long double` on x86-64: 80 bits in 16 bytes. The last 6 bytes mean nothing.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(16))]
pub struct LongDouble([u8; 16]);

impl fmt::Debug for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongDouble({:e})", self.to_f64())
    }
}

/// Instructions with the x87 registers, which they leave empty, and their operands.
macro_rules! x87 {
    ($($instruction:literal),+; $($operand:tt)*) => {
        std::arch::asm!(
            $($instruction,)+
            $($operand)*
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack),
        )
    };
}

/// An instruction on two of them, and the way back to memory.
macro_rules! with_both {
    ($a:expr, $b:expr, $instruction:literal) => {{
        let (a, b) = (&$a, &$b);
        let mut out = LongDouble([0; 16]);
        // SAFETY: each pointer is to 16 bytes; the stack of registers is as empty afterwards as before.
        unsafe {
            x87!(
                "fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", $instruction, "fstp tbyte ptr [{out}]";
                a = in(reg) a, b = in(reg) b, out = in(reg) &raw mut out,
            );
        }
        out
    }};
}

impl LongDouble {
    /// The nearest `f64`.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let mut out = 0.0_f64;
        // SAFETY: both pointers are to as many bytes as are read and written.
        unsafe {
            x87!(
                "fld tbyte ptr [{from}]", "fstp qword ptr [{out}]";
                from = in(reg) &raw const self, out = in(reg) &raw mut out,
            );
        }
        out
    }

    fn add(self, other: Self) -> Self {
        with_both!(self, other, "faddp st(1), st")
    }

    fn mul(self, other: Self) -> Self {
        with_both!(self, other, "fmulp st(1), st")
    }

    /// Whether it is less than another. No if one is not a number.
    fn is_less(self, than: Self) -> bool {
        let less: u8;
        // SAFETY: both pointers are to 16 bytes.
        unsafe {
            // Above: b > a, and they can be compared.
            x87!(
                "fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "fucomip st, st(1)", "fstp st(0)", "seta {less}";
                a = in(reg) &raw const self, b = in(reg) &raw const than, less = out(reg_byte) less,
            );
        }
        less != 0
    }

    fn is_nan(self) -> bool {
        self.to_f64().is_nan()
    }

    fn min(self, other: Self) -> Self {
        if self.is_nan() || other.is_less(self) {
            other
        } else {
            self
        }
    }

    fn max(self, other: Self) -> Self {
        if self.is_nan() || self.is_less(other) {
            other
        } else {
            self
        }
    }
}

impl From<f64> for LongDouble {
    fn from(value: f64) -> Self {
        let mut out = LongDouble([0; 16]);
        // SAFETY: both pointers are to as many bytes as are read and written.
        unsafe {
            x87!(
                "fld qword ptr [{from}]", "fstp tbyte ptr [{out}]";
                from = in(reg) &raw const value, out = in(reg) &raw mut out,
            );
        }
        out
    }
}

impl Reducible for LongDouble {}
impl FoldOps for LongDouble {
    type Wide = Self;
    const NAME: &'static str = "long double";

    fn widen(self) -> Self {
        self
    }

    fn narrow(wide: Self) -> Self {
        wide
    }

    fn folder(fold: Fold) -> Option<Folder<Self>> {
        match fold {
            Fold::Sum => each!(LongDouble::add),
            Fold::Prod => each!(LongDouble::mul),
            Fold::Min => each!(LongDouble::min),
            Fold::Max => each!(LongDouble::max),
            Fold::And | Fold::Or | Fold::Xor => None,
        }
    }

    fn identity(fold: Fold) -> Self {
        LongDouble::from(match fold {
            Fold::Prod => 1.0,
            Fold::Min => f64::INFINITY,
            Fold::Max => f64::NEG_INFINITY,
            _ => 0.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_doubles_keep_more_bits_than_doubles() {
        // 2^60 + 1 needs 61 bits; a double has 53.
        let [big, one] = [2_f64.powi(60), 1.0].map(LongDouble::from);
        let sum = big.add(one);
        let back = sum.add(LongDouble::from(-2_f64.powi(60)));
        assert_eq!(back.to_f64(), 1.0);
        assert_eq!(one.add(one).mul(LongDouble::from(-3.5)).to_f64(), -7.0);
    }

    #[test]
    fn what_is_no_number_loses_against_one() {
        let [a, b, nan] = [-1.5, 2.5, f64::NAN].map(LongDouble::from);
        assert_eq!(a.min(b).to_f64(), -1.5);
        assert_eq!(a.max(b).to_f64(), 2.5);
        for (x, y) in [(a, nan), (nan, a)] {
            assert_eq!((x.min(y).to_f64(), x.max(y).to_f64()), (-1.5, -1.5));
        }
        assert!(a.is_less(b) && !b.is_less(a) && !a.is_less(a) && !nan.is_less(a));
    }
}
