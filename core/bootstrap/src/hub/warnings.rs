//! Warnings about strangers: the first few in full, then only how many there are.
//!
//! Anybody who reaches the port can cause them, as many and as fast as he likes.

/// Warnings that are shown in full.
const SHOWN: u64 = 10;

/// Counts warnings and chooses which of them are said.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    count: u64,
}

impl Warnings {
    /// Takes one more warning; gives the line to say for it, if any.
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
        let mut warnings = Warnings::default();
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
