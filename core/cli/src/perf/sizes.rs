//! Ranges of sizes.

use std::str::FromStr;

/// Sizes from the least to the greatest number of bytes, each `factor` times the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    least: usize,
    greatest: usize,
    factor: usize,
}

/// The factor of ranges that are asked for.
const FACTOR: usize = 4;

/// The largest size of a single operation.
const MOST: usize = 1 << 40;

impl Sizes {
    pub const DEFAULT: Sizes = Sizes {
        least: 8,
        greatest: 8 << 20,
        factor: FACTOR,
    };
    pub const QUICK: Sizes = Sizes {
        least: 8,
        greatest: 128 << 10,
        factor: 16,
    };
    pub const WORD: Sizes = Sizes {
        least: 8,
        greatest: 8,
        factor: FACTOR,
    };

    /// All sizes; both ends are among them.
    pub fn all(self) -> Vec<usize> {
        let below = |size: &usize| *size < self.greatest;
        std::iter::successors(Some(self.least), |size| size.checked_mul(self.factor))
            .take_while(below)
            .chain([self.greatest])
            .collect()
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "give A..B with 1 <= A <= B, such as 8..64K, or one size";
        let one = |text: &str| match oxshmem_heap::limit::parse(text, 0).map(usize::try_from) {
            Ok(Ok(size @ 1..=MOST)) => Ok(size),
            Ok(_) => Err(format!("{text:?} is not between 1 byte and 1T; {hint}")),
            Err(error) => Err(format!("{error}; {hint}")),
        };
        let (least, greatest) = text.split_once("..").unwrap_or((text, text));
        let (least, greatest) = (one(least)?, one(greatest)?);
        if least > greatest {
            return Err(format!("{least} is more than {greatest}; {hint}"));
        }
        Ok(Sizes {
            least,
            greatest,
            factor: FACTOR,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<usize> {
        text.parse::<Sizes>().unwrap().all()
    }

    #[test]
    fn both_ends_are_measured() {
        assert_eq!(all("8..128"), [8, 32, 128]);
        assert_eq!(all("8..100"), [8, 32, 100]);
        assert_eq!(all("1K"), [1024]);
        assert_eq!(all("1K..1K"), [1024]);
        assert_eq!(Sizes::QUICK.all(), [8, 128, 2 << 10, 32 << 10, 128 << 10]);
        assert_eq!(Sizes::WORD.all(), [8]);
    }

    #[test]
    fn what_is_no_range_of_sizes_is_refused_with_a_hint() {
        for bad in [
            "", "..", "8..", "..8", "0..8", "9..8", "8..50%", "1..2T", "a..b", "-1..8",
        ] {
            let message = bad.parse::<Sizes>().unwrap_err();
            assert!(message.contains("such as 8..64K"), "{bad}: {message}");
        }
    }
}
