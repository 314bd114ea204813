//! The two PEs between which one-sided operations are measured.

use anyhow::ensure;

/// The PE that measures, and its partner. A PE that is alone is its own partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub from: usize,
    pub to: usize,
}

/// The options `--from` and `--to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Asked {
    /// The PE that measures. [default: 0, or one on another host than --to's]
    #[arg(long, value_name = "PE")]
    pub from: Option<usize>,
    /// The PE that it measures against. [default: the first one on another host, else the first other]
    #[arg(long, value_name = "PE")]
    pub to: Option<usize>,
}

impl Asked {
    /// Refuses PEs that a job of `pes` does not have, and a PE towards itself.
    pub fn check(self, pes: usize) -> anyhow::Result<()> {
        for (name, pe) in [("--from", self.from), ("--to", self.to)] {
            ensure!(
                pe.is_none_or(|pe| pe < pes),
                "there is no PE {} for {name}; this job's PEs are 0 to {} (see --pes)",
                pe.unwrap_or_default(),
                pes.saturating_sub(1)
            );
        }
        ensure!(
            pes == 1 || self.from.is_none() || self.from != self.to,
            "--from and --to name the same PE; name two, or leave one out"
        );
        Ok(())
    }

    /// The pair, given the host of each PE.
    pub fn pair(self, hosts: &[String]) -> Pair {
        let far_from = |pe: usize| {
            let own = hosts.get(pe);
            let elsewhere = hosts.iter().position(|host| Some(host) != own);
            let other = (0..hosts.len()).find(|other| *other != pe);
            elsewhere.or(other).unwrap_or(pe)
        };
        match (self.from, self.to) {
            (Some(from), Some(to)) => Pair { from, to },
            (None, Some(to)) => Pair {
                from: far_from(to),
                to,
            },
            (from, None) => {
                let from = from.unwrap_or(0);
                let to = far_from(from);
                Pair { from, to }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_is_on_two_hosts_where_there_are_two() {
        let hosts = |names: &str| names.chars().map(String::from).collect::<Vec<_>>();
        let pair = |from, to, names: &str| {
            let Pair { from, to } = Asked { from, to }.pair(&hosts(names));
            (from, to)
        };
        assert_eq!(pair(None, None, "aabb"), (0, 2));
        assert_eq!(pair(None, None, "abab"), (0, 1));
        assert_eq!(pair(None, None, "aaaa"), (0, 1));
        assert_eq!(pair(None, None, "a"), (0, 0));
        assert_eq!(pair(Some(3), None, "aabb"), (3, 0));
        assert_eq!(pair(None, Some(1), "aabb"), (2, 1));
        assert_eq!(pair(None, Some(0), "aa"), (1, 0));
        assert_eq!(pair(Some(2), Some(3), "aabb"), (2, 3));
    }

    #[test]
    fn pes_that_there_are_not_are_refused() {
        let refused = |from, to, pes| {
            let asked = Asked { from, to };
            asked.check(pes).map_err(|error| error.to_string())
        };
        let text = refused(Some(4), None, 4).unwrap_err();
        assert!(text.contains("no PE 4 for --from") && text.contains("0 to 3"));
        assert!(refused(None, Some(2), 2).unwrap_err().contains("--to"));
        assert!(refused(Some(1), Some(1), 2).unwrap_err().contains("same"));
        refused(Some(1), Some(0), 2).unwrap();
        refused(Some(0), Some(0), 1).unwrap();
        refused(None, None, 1).unwrap();
    }
}
