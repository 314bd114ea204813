//! The topology as a text tree, for people.

use std::fmt;

use crate::topology::Topology;

impl fmt::Display for Topology {
    /// The tree for people, one object a line and control characters as `?`; its form may change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.hierarchy();
        let mut has_next = vec![false; all.len()];
        let mut later_below = vec![false; all.len()];
        // From the last: whether another of the same parent follows.
        for (index, placed) in all.iter().enumerate().rev() {
            if let Some(above) = placed.above {
                has_next[index] = later_below[above];
                later_below[above] = true;
            }
        }
        for (index, placed) in all.iter().enumerate() {
            let ancestors = std::iter::successors(placed.above, |&above| all[above].above);
            let mut bars: Vec<&str> = ancestors
                .filter(|&above| all[above].above.is_some())
                .map(|above| if has_next[above] { "│  " } else { "   " })
                .collect();
            bars.reverse();
            f.write_str(&bars.concat())?;
            if placed.above.is_some() {
                f.write_str(if has_next[index] {
                    "├─ "
                } else {
                    "└─ "
                })?;
            }
            let mut line = self.title(placed.item);
            let details = self.details(placed.item).join(", ");
            if !details.is_empty() {
                line = format!("{line}: {details}");
            }
            writeln!(f, "{}", line.replace(char::is_control, "?"))?;
        }
        if self.nvlink_of_all().is_some() {
            return Ok(());
        }
        for link in &self.nvlinks {
            let name = |gpu: usize| self.gpus.get(gpu).map_or("?", |gpu| gpu.name.as_str());
            let (one, two) = link.gpus;
            writeln!(
                f,
                "NVLink {} - {}, {}",
                name(one),
                name(two),
                link.bandwidth
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn each_object_has_one_line_with_its_bus_id_link_and_locality() {
        let text = Topology::from_xml(fixtures::DGX_LIKE).unwrap().to_string();
        let expected = "\
host unknown: seen by hwloc's XML
├─ package 0: CPUs 0-1, cores 2
│  ├─ NUMA node 0: 1 GiB, CPUs 0-1
│  └─ host bridge 0000:[10-1f]: at NUMA node 0
│     ├─ PCI bridge 0000:10:00.0: link 31.5 GB/s
│     │  ├─ gpu0: nvml0, 0000:12:00.0, 10de:2330, link 63 GB/s, at NUMA node 0
│     │  └─ mlx5_0: 0000:13:00.0, 15b3:1021, link 63 GB/s, at NUMA node 0
│     └─ PCI bridge 0000:10:01.0: link 31.5 GB/s
│        ├─ gpu1: nvml1, 0000:16:00.0, 10de:2330, link 63 GB/s, at NUMA node 0
│        └─ mlx5_1: 0000:17:00.0, 15b3:1021, link 63 GB/s, at NUMA node 0
└─ package 1: CPUs 2-3, cores 2
   ├─ NUMA node 1: 1 GiB, CPUs 2-3
   └─ host bridge 0000:[90-9f]: at NUMA node 1
      └─ PCI bridge 0000:90:00.0: link 31.5 GB/s
         ├─ gpu2: nvml2, 0000:92:00.0, 10de:2330, link 63 GB/s, at NUMA node 1
         └─ mlx5_2: 0000:93:00.0, 15b3:1021, link 63 GB/s, at NUMA node 1
";
        assert_eq!(text, expected);
    }

    #[test]
    fn every_device_of_every_host_has_its_line() {
        for (name, xml) in fixtures::ALL {
            let topology = Topology::from_xml(xml).unwrap();
            let text = topology.to_string();
            let lines = |start: &str| {
                let start = format!("─ {start}");
                text.lines().filter(|line| line.contains(&start)).count()
            };
            for nic in &topology.nics {
                assert_eq!(lines(&format!("{}:", nic.name)), 1, "{name}: {text}");
            }
            assert_eq!(lines("gpu"), topology.gpus.len(), "{name}: {text}");
            let hosts = lines("host bridge");
            assert_eq!(
                hosts + lines("PCI bridge"),
                topology.bridges.len(),
                "{name}: {text}"
            );
        }
    }

    #[test]
    fn nvlink_has_a_line_a_pair_unless_all_are_alike() {
        let text = |xml| Topology::from_xml(xml).unwrap().to_string();
        let pairs = text(fixtures::NVLINK_PAIRS);
        assert!(pairs.ends_with("NVLink gpu0 - gpu1, 300 GB/s\nNVLink gpu2 - gpu3, 200 GB/s\n"));
        let all = text(fixtures::EIGHT_GPUS_EIGHT_NICS);
        assert_eq!(all.matches("NVLink").count(), 1, "{all}");
        assert!(
            all.contains("NVLink joins all GPUs, 450 GB/s a pair"),
            "{all}"
        );
    }

    #[test]
    fn names_cannot_break_a_line() {
        let mut topology = Topology::from_xml(fixtures::DGX_LIKE).unwrap();
        topology.nics[0].name = "a\nb\u{1b}[31m".to_owned();
        let text = topology.to_string();
        assert!(text.contains("a?b?[31m"), "{text}");
    }
}
