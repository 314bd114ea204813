//! The metrics of an operation.

use serde::{Deserialize, Serialize};

/// The metric of a row.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// How long one operation takes: min, median, p99, p99.9
    Latency,
    /// Operations per second, a window of them in flight at once; of 8 bytes, if there is no --sizes
    Rate,
    /// Bytes per second, a window of operations in flight at once
    Bandwidth,
    /// The same, PE 0 and its partner at once: the sum of both directions
    Bidirectional,
    /// How much of a transfer's time is left for computing meanwhile, in percent
    Overlap,
}

impl Metric {
    /// The name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Latency => "latency",
            Metric::Rate => "rate",
            Metric::Bandwidth => "bandwidth",
            Metric::Bidirectional => "bidirectional",
            Metric::Overlap => "overlap",
        }
    }

    /// Whether a window of operations is in flight at once.
    pub fn has_window(self) -> bool {
        matches!(
            self,
            Metric::Rate | Metric::Bandwidth | Metric::Bidirectional
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn a_metric_has_one_name_on_the_command_line_and_in_json() {
        for metric in Metric::value_variants() {
            assert_eq!(Metric::from_str(metric.name(), false), Ok(*metric));
            let json = serde_json::to_value(metric).unwrap();
            assert_eq!(json, metric.name());
        }
    }
}
