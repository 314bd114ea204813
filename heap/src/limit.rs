//! A heap's size, as users write it (M14).

use crate::error::{Error, Result};

/// Reads a size: digits with or without a fraction, then K, M, G or T (in either case, powers of
/// 1024), `%` of `whole`, or nothing for bytes. Rounds up to whole bytes. As OpenSHMEM has it, only
/// the first letter of a suffix counts: `20kk` is `20k`, and so `20KiB` is too.
///
/// ```
/// # use oxshmem_heap::limit::parse;
/// assert_eq!(parse("3.1M", 0)?, 3250586);
/// assert_eq!(parse(".5m", 0)?, 524288);
/// assert_eq!(parse("25%", 4 << 30)?, 1 << 30);
/// # Ok::<(), oxshmem_heap::Error>(())
/// ```
pub fn parse(text: &str, whole: u64) -> Result<u64> {
    let bad = |why| Error::BadSize {
        text: text.to_owned(),
        why,
    };
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(bad("it is empty"));
    }
    if trimmed.starts_with('-') {
        return Err(bad("it is negative"));
    }
    let number = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(number);
    let (digits, fraction) = number.split_once('.').unwrap_or((number, ""));
    if digits.is_empty() && fraction.is_empty() {
        return Err(bad("it does not begin with a number"));
    }
    if fraction.contains('.') {
        return Err(bad("it has two decimal points"));
    }

    // The size is number * unit / parts.
    let suffix = suffix.trim_start();
    let (unit, parts) = match suffix.chars().next() {
        None => (1, 1),
        Some('%') if suffix == "%" => (u128::from(whole), 100),
        Some(_) if !suffix.chars().all(|c| c.is_ascii_alphabetic()) => {
            return Err(bad("there is more after the number than a suffix"));
        }
        Some('k' | 'K') => (1 << 10, 1),
        Some('m' | 'M') => (1 << 20, 1),
        Some('g' | 'G') => (1 << 30, 1),
        Some('t' | 'T') => (1 << 40, 1),
        Some(_) => return Err(bad("its suffix is none of K, M, G, T and %")),
    };
    let too_large = || bad("it is more than 2^64 bytes");
    let digits: u128 = match digits {
        "" => 0,
        digits => digits.parse::<u64>().map_err(|_| too_large())?.into(),
    };
    if parts == 100 && digits > 100 {
        return Err(bad("it is more than 100%"));
    }
    // Neither product overflows: both factors are below 2^64.
    if parts == 1 && digits * unit > u64::MAX.into() {
        return Err(too_large());
    }
    // Below 2^64 * 10^15, or 100 * 10^15 * 2^64.
    let size = ((digits * SCALE + scaled(fraction)) * unit).div_ceil(SCALE * parts);
    if parts == 100 && size > unit {
        return Err(bad("it is more than 100%"));
    }
    u64::try_from(size).map_err(|_| too_large())
}

/// Parts of one that a fraction is counted in: finer than a byte of a T.
const SCALE: u128 = 10u128.pow(15);

/// A fraction's digits as a number of `SCALE`ths, rounded up.
fn scaled(fraction: &str) -> u128 {
    let (kept, rest) = fraction.split_at(fraction.len().min(15));
    let kept = kept.bytes().chain(std::iter::repeat(b'0')).take(15);
    let number = kept.fold(0, |number, digit| number * 10 + u128::from(digit - b'0'));
    number + u128::from(rest.bytes().any(|digit| digit != b'0'))
}

/// The limit of a heap whose user names none: half of the memory that this host (or control group)
/// has, divided by the PEs there, in whole pages of 4 KiB; at least one page.
#[must_use]
pub fn default(memory: u64, pes_on_host: u32) -> u64 {
    let share = memory / 2 / u64::from(pes_on_host.max(1));
    (share / 4096).max(1) * 4096
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn m14_sizes_are_read_as_openshmem_writes_them() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            (" 77 ", 77),
            ("1.5", 2),
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("1.5g", 3 << 29),
            ("20k", 20 << 10),
            ("20kk", 20 << 10),
            ("20KiB", 20 << 10),
            ("3.1M", 3_250_586),
            (".5m", 512 << 10),
            ("2.t", 2 << 40),
            ("0.1k", 103),
            ("0.0000000000000000001T", 1),
            ("18446744073709551615", u64::MAX),
            ("50%", 500),
            ("12.5%", 125),
            ("0.01%", 1),
            ("100%", 1000),
        ];
        for (text, size) in cases {
            assert_eq!(parse(text, 1000).unwrap(), size, "{text}");
        }
        assert_eq!(parse("100%", u64::MAX).unwrap(), u64::MAX);
    }

    #[test]
    fn m14_what_is_no_size_is_refused_with_its_text() {
        let cases = [
            "",
            "  ",
            "-1",
            "M",
            ".",
            ".k",
            "1.2.3",
            "12Q",
            "1e3",
            "0x10",
            "1 G 2",
            "5k5",
            "nan",
            "inf",
            "18446744073709551616",
            "99999999T",
            "101%",
            "100.1%",
            "5%%",
            "٣",
        ];
        for text in cases {
            let error = parse(text, 1000).expect_err(text).to_string();
            assert!(error.contains(&format!("\"{text}\"")), "{error}");
        }
    }

    #[test]
    fn m14_the_default_is_the_pes_share_of_half_of_memory() {
        assert_eq!(default(64 << 30, 4), 8 << 30);
        assert_eq!(default(1_000_000, 3), 40 * 4096);
        assert_eq!(default(0, 0), 4096);
    }

    proptest! {
        #[test]
        fn any_text_gives_a_size_or_an_error(text in ".{0,24}", whole: u64) {
            let _ = parse(&text, whole);
        }

        #[test]
        fn sizes_are_rounded_up_by_less_than_a_byte(whole in 0u64..1000, part in 0u64..1_000_000) {
            let exact = u128::from(whole * 1_000_000 + part) << 20;
            let size = u128::from(parse(&format!("{whole}.{part:06}M"), 0).unwrap()) * 1_000_000;
            prop_assert!(size >= exact && size < exact + 1_000_000);
        }
    }
}
