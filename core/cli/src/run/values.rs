//! Parsers of options' values.

use std::time::Duration;

use oxshmem_topo::Policy;

/// PEs on one host at most: a larger number is a typing error.
pub const MOST_PES: u32 = 4096;

/// Reads a number of PEs.
pub fn pes(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pes @ 1..=MOST_PES) => Ok(pes),
        _ => Err(format!("a job on one host has 1 to {MOST_PES} PEs")),
    }
}

/// Refuses a number of PEs by host.
pub fn by_host(_: &str) -> Result<u32, String> {
    Err("give the number of PEs by -n, or by host as in --hosts a:2,b:2".into())
}

/// Reads a `--bind` policy.
pub fn policy(text: &str) -> Result<Policy, oxshmem_topo::ParsePolicyError> {
    text.parse()
}

/// Seconds, or a number with ms, s, m or h.
pub fn duration(text: &str) -> Result<Duration, String> {
    let hint = "give a positive number of seconds, or a number with ms, s, m or h, such as 90s";
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(number) {
        Some("ms") => 1e-3,
        Some("" | "s") => 1.0,
        Some("m") => 60.0,
        Some("h") => 3600.0,
        _ => return Err(hint.into()),
    };
    match number.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(hint.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for bad in [
            "",
            "s",
            "0",
            "-1",
            "nan",
            "inf",
            "1e99",
            "5 fortnights",
            "é",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_job_has_at_least_one_pe_and_no_absurd_number() {
        assert_eq!(pes("64"), Ok(64));
        for bad in ["0", "-1", "4097", "18446744073709551616", "many", ""] {
            assert!(pes(bad).is_err(), "{bad}");
        }
    }
}
