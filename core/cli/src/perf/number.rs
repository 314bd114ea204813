//! The fold and the element type of reductions and scans, and the expected results, by a serial
//! fold of 64-bit words.

use oxshmem::{Complex, Fold, Reducible, bf16, f16};

/// A type of elements, of no more bytes than the smallest block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Number {
    I32,
    I64,
    U8,
    #[default]
    U64,
    F16,
    Bf16,
    F32,
    F64,
    /// Of two f32
    Complex,
}

impl Number {
    /// The name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Number::I32 => "i32",
            Number::I64 => "i64",
            Number::U8 => "u8",
            Number::U64 => "u64",
            Number::F16 => "f16",
            Number::Bf16 => "bf16",
            Number::F32 => "f32",
            Number::F64 => "f64",
            Number::Complex => "complex",
        }
    }

    pub fn has(self, fold: Fold) -> bool {
        match self {
            Number::I32 | Number::I64 | Number::U8 | Number::U64 => true,
            Number::F16 | Number::Bf16 | Number::F32 | Number::F64 => {
                !matches!(fold, Fold::And | Fold::Or | Fold::Xor)
            }
            Number::Complex => matches!(fold, Fold::Sum | Fold::Prod),
        }
    }
}

/// Reads a fold's name.
pub fn fold(text: &str) -> Result<Fold, String> {
    let found = Fold::ALL.into_iter().find(|fold| fold.name() == text);
    found.ok_or_else(|| format!("choose one of {}", Fold::ALL.map(Fold::name).join(", ")))
}

/// An element made from a word: an integer takes its low bits, another type its value, if that is
/// small.
pub trait Value: Reducible {
    /// Whether arithmetic wraps, so that any word will do.
    const WRAPS: bool;
    fn of(word: u64) -> Self;
    /// The fold's result over no elements.
    fn of_none(fold: Fold) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Value for $t {
            const WRAPS: bool = true;

            fn of(word: u64) -> Self {
                word as $t
            }

            fn of_none(fold: Fold) -> Self {
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
integers!(i32 i64 u8 u64);

/// The fold's result over no elements, for a floating-point type with infinities.
fn float_of_none(fold: Fold) -> f32 {
    match fold {
        Fold::Prod => 1.0,
        Fold::Min => f32::INFINITY,
        Fold::Max => f32::NEG_INFINITY,
        _ => 0.0,
    }
}

macro_rules! floats {
    ($($t:ty, $of:expr;)*) => {$(
        impl Value for $t {
            const WRAPS: bool = false;

            fn of(word: u64) -> Self {
                $of(word as f32)
            }

            fn of_none(fold: Fold) -> Self {
                $of(float_of_none(fold))
            }
        }
    )*};
}
floats! {
    f32, |x| x;
    f64, f64::from;
    f16, f16::from_f32;
    bf16, bf16::from_f32;
    Complex<f32>, |x| Complex::new(x, 0.0);
}

/// The members' inputs of a fold. Another seed gives other words.
#[derive(Clone, Copy)]
pub struct Words {
    pub fold: Fold,
    pub members: usize,
    pub seed: u64,
}

impl Words {
    /// A member's input element `i`.
    pub fn given<T: Value>(self, member: usize, i: usize) -> T {
        T::of(self.word::<T>(member, i))
    }

    /// The expected result over these members' elements `i`.
    pub fn expected<T: Value>(self, mut members: impl Iterator<Item = usize>, i: usize) -> T {
        let Some(first) = members.next() else {
            return T::of_none(self.fold);
        };
        let first = self.word::<T>(first, i);
        T::of(members.fold(first, |all, member| {
            let word = self.word::<T>(member, i);
            match self.fold {
                Fold::Sum => all.wrapping_add(word),
                Fold::Prod => all.wrapping_mul(word),
                Fold::Min => all.min(word),
                Fold::Max => all.max(word),
                Fold::And => all & word,
                Fold::Or => all | word,
                Fold::Xor => all ^ word,
            }
        }))
    }

    /// Element `i` as a word. A type that does not wrap gets only words whose folds it represents
    /// exactly: results stay within 127 and a factor of 64.
    fn word<T: Value>(self, member: usize, i: usize) -> u64 {
        let of_all = mixed(self.seed ^ i as u64);
        let own = mixed(of_all ^ (member as u64) << 48);
        // Only `most` of many members add something.
        let among = |most: usize| {
            let each = self.members.div_ceil(most).max(1) as u64;
            (of_all % each + member as u64).is_multiple_of(each)
        };
        match self.fold {
            Fold::Prod if T::WRAPS => own | 1,
            Fold::Prod => 1 + u64::from(among(6)) * (own % 2),
            Fold::Min | Fold::Max => 1 + own % 127,
            _ if T::WRAPS => own,
            _ => u64::from(among(32)) * (1 + own % 3),
        }
    }
}

/// A number that shows little of this one: a hash.
fn mixed(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn types_and_folds_are_found_by_their_names() {
        for number in Number::value_variants() {
            assert_eq!(Number::from_str(number.name(), false), Ok(*number));
        }
        for one in Fold::ALL {
            assert_eq!(fold(one.name()), Ok(one));
        }
        assert!(fold("mean").unwrap_err().contains("sum, prod"));
    }

    /// f16 and bf16 represent whole numbers up to 256 exactly.
    #[test]
    fn small_words_have_small_folds_however_many_members_there_are() {
        for members in [1, 2, 7, 33, 512] {
            for fold in [Fold::Sum, Fold::Prod, Fold::Min, Fold::Max] {
                let (mut least, mut most) = (f32::MAX, 0_f32);
                for i in 0..100 {
                    let words = Words {
                        fold,
                        members,
                        seed: 5,
                    };
                    let all = words.expected::<f32>(0..members, i);
                    (least, most) = (least.min(all), most.max(all));
                }
                assert!(least >= 1.0 && most <= 128.0, "{fold:?}: {least} to {most}");
                assert!(least < most, "{fold:?} of {members}");
            }
        }
    }
}
