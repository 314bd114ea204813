//! Bandwidths of links.

use std::fmt;

/// A rate of data in MB/s (10^6 bytes a second), more than nothing. Prints in GB/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(u32);

impl Bandwidth {
    /// `megabytes` a second; none for 0, which files write where nothing is known.
    pub fn from_mb_per_s(megabytes: u32) -> Option<Self> {
        (megabytes > 0).then_some(Self(megabytes))
    }

    /// `gigabytes` a second, to the nearest MB/s; none where that is no number above 0 or over
    /// 1,000,000 GB/s, more than any link has.
    pub fn from_gb_per_s(gigabytes: f64) -> Option<Self> {
        // Not a number compares as false. The cast is exact: the range was just asked for.
        (gigabytes > 0.0 && gigabytes <= 1e6)
            .then(|| (gigabytes * 1000.0).round() as u32)
            .and_then(Self::from_mb_per_s)
    }

    /// `gigabits` a second, as networks are measured; none as for [`Bandwidth::from_gb_per_s`].
    pub fn from_gbit_per_s(gigabits: f64) -> Option<Self> {
        Self::from_gb_per_s(gigabits / 8.0)
    }

    /// In MB/s; never 0.
    pub fn mb_per_s(self) -> u32 {
        self.0
    }

    /// In GB/s.
    pub fn gb_per_s(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The bandwidth by PCI's `current_link_speed` (`16.0 GT/s PCIe`) and `current_link_width`, less the line
    /// code's share; none if the link is down or the text is something else.
    pub(crate) fn of_pci_link(speed: &str, width: &str) -> Option<Self> {
        let (transfers, unit) = speed.trim().split_once(' ')?;
        let transfers: f64 = transfers.parse().ok()?;
        let lanes: u16 = width.trim().parse().ok()?;
        // 8b/10b up to 5 GT/s, 128b/130b to 32 GT/s, flits of 242 in 256 bytes above.
        let share = match transfers {
            _ if !unit.starts_with("GT/s") || !(1..=32).contains(&lanes) => return None,
            ..=5.0 => 8.0 / 10.0,
            ..=32.0 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        Self::from_gbit_per_s(transfers * share * f64::from(lanes))
    }

    /// An RDMA port's `rate`, such as `400 Gb/sec (4X NDR)`; none where it is something else.
    pub(crate) fn of_rdma_rate(rate: &str) -> Option<Self> {
        let (gigabits, unit) = rate.trim().split_once(' ')?;
        if !unit.starts_with("Gb/sec") {
            return None;
        }
        Self::from_gbit_per_s(gigabits.parse().ok()?)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.gb_per_s());
        f.pad(&format!("{} GB/s", text.trim_end_matches(".0")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_rate_is_none() {
        for gigabytes in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9, 1e-9] {
            assert_eq!(Bandwidth::from_gb_per_s(gigabytes), None, "{gigabytes}");
        }
        assert_eq!(Bandwidth::from_mb_per_s(0), None);
        for (speed, width) in [
            ("Unknown", "16"),
            ("16.0 GT/s PCIe", "0"),
            ("16.0 GT/s PCIe", "255"),
            ("x GT/s", "4"),
        ] {
            assert_eq!(Bandwidth::of_pci_link(speed, width), None, "{speed}");
        }
        for rate in ["", "400", "400 MB/s", "fast Gb/sec"] {
            assert_eq!(Bandwidth::of_rdma_rate(rate), None, "{rate}");
        }
    }

    #[test]
    fn links_and_ports_are_read_as_the_kernel_writes_them() {
        let link = |speed, width| Bandwidth::of_pci_link(speed, width).map(Bandwidth::mb_per_s);
        assert_eq!(link("32.0 GT/s PCIe\n", "16\n"), Some(63015));
        assert_eq!(link("5 GT/s", "8"), Some(4000));
        let rate = Bandwidth::of_rdma_rate("400 Gb/sec (4X NDR)\n");
        assert_eq!(
            rate.map(|rate| rate.to_string()).as_deref(),
            Some("50 GB/s")
        );
        let half = Bandwidth::of_rdma_rate("2.5 Gb/sec (1X SDR)");
        assert_eq!(
            half.map(|rate| rate.to_string()).as_deref(),
            Some("0.3 GB/s")
        );
    }
}
