//! The machine as a small table, for people.

use std::collections::BTreeMap;
use std::fmt;

use crate::machine::{HugePages, Machine, Source};

impl fmt::Display for Machine {
    /// A small table for people; its form may change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "host      {}", self.hostname)?;
        writeln!(
            f,
            "boot id   {}",
            self.boot_id.as_deref().unwrap_or("not known")
        )?;
        writeln!(f, "seen by   {}", self.source)?;
        let (packages, cores, cpus) = (self.packages, self.cores.len(), self.cpus.len());
        writeln!(
            f,
            "packages  {packages}, cores {cores}, CPUs {cpus} ({})",
            self.cpus
        )?;
        let mut kinds: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        for cache in &self.caches {
            *kinds.entry((cache.level, cache.bytes)).or_default() += 1;
        }
        let caches: Vec<String> = kinds
            .into_iter()
            .map(|((level, bytes), count)| format!("L{level} {count} x {}", Bytes(bytes)))
            .collect();
        let caches = if caches.is_empty() {
            "not known".to_owned()
        } else {
            caches.join(", ")
        };
        writeln!(f, "caches    {caches}")?;
        writeln!(
            f,
            "NUMA node  memory      CPUs          huge pages (free of all)"
        )?;
        for node in &self.numa_nodes {
            let cpus = if node.cpus.is_empty() {
                "none".to_owned()
            } else {
                node.cpus.to_string()
            };
            let pools: Vec<String> = node.hugepages.iter().map(HugePages::to_string).collect();
            let pools = if pools.is_empty() {
                "none".to_owned()
            } else {
                pools.join(", ")
            };
            let memory = Bytes(node.memory).to_string();
            writeln!(f, "{:<9}  {memory:<10}  {cpus:<12}  {pools}", node.index)?;
        }
        Ok(())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hwloc => f.write_str("hwloc"),
            Self::Xml => f.write_str("hwloc's XML"),
            Self::Sysfs { why } => write!(f, "sysfs ({why})"),
        }
    }
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of {}", Bytes(self.size), self.free, self.total)
    }
}

/// A number of bytes in the largest unit that leaves at least one, with a tenth where not whole.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 == 0 {
            return f.write_str("not known");
        }
        let step = (self.0.ilog2() / 10) as usize;
        let unit = 1u64 << (10 * step);
        let name = units.get(step).unwrap_or(&"B");
        if self.0.is_multiple_of(unit) {
            write!(f, "{} {name}", self.0 / unit)
        } else {
            write!(f, "{:.1} {name}", self.0 as f64 / unit as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, OFFLINE_CPUS, TWO_SOCKETS};

    #[test]
    fn the_table_shows_nodes_caches_and_huge_pages() {
        let table = Machine::from_sysfs(Fixture::new(TWO_SOCKETS).root())
            .unwrap()
            .to_string();
        for part in [
            "host      twosock",
            "seen by   sysfs (sysfs was asked for)",
            "packages  2, cores 8, CPUs 16 (0-15)",
            "L1 8 x 32 KiB, L2 8 x 1 MiB, L3 2 x 16 MiB",
            "2 MiB: 60 of 64, 1 GiB: 0 of 0",
        ] {
            assert!(table.contains(part), "{part:?} is not in\n{table}");
        }
        let table = Machine::from_sysfs(Fixture::new(OFFLINE_CPUS).root())
            .unwrap()
            .to_string();
        assert!(
            table.contains("2          4 MiB       none          none"),
            "{table}"
        );
    }

    #[test]
    fn bytes_are_printed_in_the_largest_whole_unit_or_with_a_tenth() {
        for (bytes, text) in [
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (2 << 30, "2 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
