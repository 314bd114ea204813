//! Warnings about refused connections: the first few in full, then only their number.
//!
//! Any program that reaches the port can cause them, as many and as fast as it likes.

/// Warnings that are shown in full.
const SHOWN: u64 = 10;

/// A count of warnings, which chooses those to show.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: u64,
}

impl Refusals {
    /// Counts one more warning; gives the line to show for it, if any.
    pub(super) fn add(&mut self, warning: String) -> Option<String> {
        self.count += 1;
        let count = self.count;
        if count <= SHOWN {
            return Some(warning);
        }
        let is_power_of_ten = 10_u64.checked_pow(count.ilog10()) == Some(count);
        if count == SHOWN + 1 {
            Some(format!(
                "{warning}; more refused connections are counted and not shown"
            ))
        } else if is_power_of_ten {
            Some(format!(
                "refused {count} connections so far, the last one so: {warning}"
            ))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_warnings_is_a_few_lines_and_a_count() {
        let mut warnings = Refusals::default();
        let lines: Vec<String> = (1..=100_000)
            .filter_map(|number| warnings.add(format!("number {number}")))
            .collect();
        assert_eq!(lines.len(), 15, "{lines:?}");
        assert_eq!(lines[9], "number 10");
        assert!(lines[10].contains("counted"), "{lines:?}");
        let last = "refused 100000 connections so far, the last one so: number 100000";
        assert_eq!(lines[14], last);
    }
}
