//! The bitmaps of hwloc's XML.

use crate::cpu_set::CpuSet;
use crate::error::quoted;
use crate::pci::hexadecimal;

/// The CPUs in hwloc's form: words of 32 bits in hexadecimal, the highest first, `0x` before each,
/// an empty one for 0: `0x00000001,,0xffff0000`. The error says in words what is wrong.
pub(super) fn parse(text: &str) -> Result<CpuSet, String> {
    if text.starts_with("0xf...f") {
        return Err(format!("the set {} has no end", quoted(text)));
    }
    let mut cpus = Vec::new();
    for (place, word) in text.rsplit(',').enumerate() {
        if word.is_empty() {
            continue;
        }
        let bits = word.strip_prefix("0x").and_then(hexadecimal);
        let bits = bits.ok_or_else(|| format!("{} is no word of a CPU set", quoted(word)))?;
        let first = place.saturating_mul(32);
        if bits != 0 && first >= CpuSet::LIMIT {
            return Err(format!("a CPU is not below {}", CpuSet::LIMIT));
        }
        cpus.extend(
            (0..32)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| first + bit),
        );
    }
    Ok(cpus.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_highest_first_and_empty_ones_are_zero() {
        let list = |text| parse(text).map(|set| set.to_string());
        assert_eq!(list("0x0"), Ok(String::new()));
        assert_eq!(list(""), Ok(String::new()));
        assert_eq!(list("0x00000003,,0x80000001"), Ok("0,31,64-65".to_owned()));
        assert_eq!(list("0xffffffff,0xffffffff"), Ok("0-63".to_owned()));
    }

    #[test]
    fn what_is_no_set_says_why() {
        let far = format!("0x1{}", ",".repeat(CpuSet::LIMIT / 32));
        for (text, part) in [
            ("0xf...f", "no end"),
            ("0xf...f,0x0", "no end"),
            ("3", "\"3\""),
            ("0x", "\"0x\""),
            ("0x1ffffffff", "0x1ffffffff"),
            ("0x-1", "\"0x-1\""),
            ("é", "é"),
            (far.as_str(), "not below"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
