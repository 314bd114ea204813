//! Bindings of PEs to parts of the machine.

use std::fmt;
use std::str::FromStr;

use crate::cpu_set::CpuSet;
use crate::error::Result;
use crate::machine::Machine;
use crate::process::usable_cpus;

/// The part of the machine that a PE is bound to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nothing: the PE runs wherever its parent may.
    #[default]
    None,
    /// One core, all its hardware threads.
    Core,
    /// The CPUs of one NUMA node.
    Numa,
}

impl Policy {
    /// The name that `--bind` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Core => "core",
            Self::Numa => "numa",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no [`Policy`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no binding; take one of none, core, numa")]
pub struct ParsePolicyError(String);

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(word: &str) -> Result<Self, ParsePolicyError> {
        [Self::None, Self::Core, Self::Numa]
            .into_iter()
            .find(|policy| policy.name() == word)
            .ok_or_else(|| ParsePolicyError(word.chars().take(32).collect()))
    }
}

/// The CPU set of each of `pes` PEs that this process starts on this host, by local rank: see
/// [`Machine::binding`]. [`Policy::None`] gives no sets and looks at nothing.
///
/// # Errors
/// Those of [`Machine::discover`] and [`usable_cpus`].
pub fn binding(pes: usize, policy: Policy) -> Result<Vec<Vec<usize>>> {
    if policy == Policy::None {
        return Ok(Vec::new());
    }
    Ok(Machine::discover()?.binding(pes, policy, &usable_cpus()?.allowed))
}

impl Machine {
    /// The CPU set of each of `pes` PEs by local rank, within `allowed`; empty for
    /// [`Policy::None`], or where `allowed` has no CPU of this machine.
    ///
    /// `Core`: cores are taken node by node. With at most as many PEs as cores each has its own,
    /// evenly apart, neighbours in rank near each other; more PEs wrap round, so that no core has
    /// two PEs more than another. `Numa`: the CPUs of the node where that core lies, so nodes
    /// fill in proportion to their allowed cores.
    pub fn binding(&self, pes: usize, policy: Policy, allowed: &CpuSet) -> Vec<Vec<usize>> {
        let node_of = |cpu: Option<usize>| {
            self.numa_nodes
                .iter()
                .find(|node| cpu.is_some_and(|cpu| node.cpus.contains(cpu)))
        };
        let mut cores: Vec<_> = self
            .cores
            .iter()
            .map(|core| (core.package, core.cpus.intersection(allowed)))
            .filter(|(_, cpus)| !cpus.is_empty())
            .map(|(package, cpus)| (node_of(cpus.first()), package, cpus))
            .collect();
        cores.sort_by_key(|(node, package, cpus)| {
            (node.map(|node| node.index), *package, cpus.first())
        });
        let places: Vec<Vec<usize>> = match policy {
            Policy::None => Vec::new(),
            Policy::Core => cores.iter().map(|(_, _, cpus)| cpus.to_vec()).collect(),
            Policy::Numa => cores
                .iter()
                .map(|(node, _, cpus)| {
                    node.map_or(cpus.to_vec(), |node| {
                        node.cpus.intersection(allowed).to_vec()
                    })
                })
                .collect(),
        };
        let count = places.len();
        if count == 0 {
            return Vec::new();
        }
        let place = |pe: usize| {
            if pes <= count {
                pe * count / pes
            } else {
                pe % count
            }
        };
        (0..pes)
            .filter_map(|pe| places.get(place(pe)).cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, NO_NUMA, OFFLINE_CPUS, TWO_SOCKETS};
    use proptest::prelude::*;

    fn machine(files: &str) -> Machine {
        Machine::from_sysfs(Fixture::new(files).root()).unwrap()
    }

    fn lists(sets: &[Vec<usize>]) -> Vec<String> {
        sets.iter()
            .map(|set| set.iter().copied().collect::<CpuSet>().to_string())
            .collect()
    }

    #[test]
    fn cores_are_taken_node_by_node_and_evenly_apart() {
        let machine = machine(TWO_SOCKETS);
        let bind = |pes| lists(&machine.binding(pes, Policy::Core, &machine.cpus));
        assert_eq!(
            bind(8),
            ["0,8", "2,10", "4,12", "6,14", "1,9", "3,11", "5,13", "7,15"]
        );
        assert_eq!(bind(4), ["0,8", "4,12", "1,9", "5,13"]);
        assert_eq!(bind(2), ["0,8", "1,9"]);
        assert_eq!(bind(0), [""; 0]);
    }

    #[test]
    fn more_pes_than_cores_wrap_round() {
        let machine = machine(OFFLINE_CPUS);
        let sets = machine.binding(5, Policy::Core, &machine.cpus);
        assert_eq!(lists(&sets), ["0", "2", "0", "2", "0"]);
    }

    #[test]
    fn nodes_fill_in_proportion_to_their_allowed_cores() {
        let machine = machine(TWO_SOCKETS);
        let allowed: CpuSet = "0,1,3,5".parse().unwrap();
        let sets = machine.binding(4, Policy::Numa, &allowed);
        assert_eq!(lists(&sets), ["0", "1,3,5", "1,3,5", "1,3,5"]);
    }

    #[test]
    fn no_binding_and_no_allowed_cpu_give_no_sets() {
        let machine = machine(NO_NUMA);
        assert!(machine.binding(3, Policy::None, &machine.cpus).is_empty());
        assert!(
            machine
                .binding(3, Policy::Core, &CpuSet::default())
                .is_empty()
        );
        assert!(binding(3, Policy::None).unwrap().is_empty());
    }

    #[test]
    fn this_process_is_bound_within_its_own_cpus() {
        let allowed = usable_cpus().unwrap().allowed;
        for policy in [Policy::Core, Policy::Numa] {
            let sets = binding(allowed.len() + 1, policy).unwrap();
            assert_eq!(sets.len(), allowed.len() + 1);
            let inside = |set: &Vec<usize>| set.iter().all(|&cpu| allowed.contains(cpu));
            assert!(
                sets.iter().all(|set| !set.is_empty() && inside(set)),
                "{sets:?}"
            );
        }
    }

    #[test]
    fn a_policy_is_named_as_it_prints() {
        for policy in [Policy::None, Policy::Core, Policy::Numa] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let message = "socket".parse::<Policy>().unwrap_err().to_string();
        assert!(
            message.contains("socket") && message.contains("numa"),
            "{message}"
        );
    }

    #[test]
    fn the_nearest_node_is_the_one_with_most_of_the_cpus() {
        let machine = machine(TWO_SOCKETS);
        let nearest = |list: &str| {
            machine
                .nearest_node(&list.parse().unwrap())
                .map(|node| node.index)
        };
        assert_eq!(nearest("1,3"), Some(1));
        assert_eq!(nearest("0,2,3"), Some(0));
        assert_eq!(
            (nearest("0-3"), nearest("99"), nearest("")),
            (None, None, None)
        );
    }

    #[test]
    fn every_pe_has_allowed_cpus_and_cores_are_shared_evenly() {
        let machine = machine(TWO_SOCKETS);
        let allowed = proptest::collection::btree_set(0..16usize, 1..16);
        proptest!(|(pes in 1..40usize, allowed in allowed)| {
            let allowed: CpuSet = allowed.into_iter().collect();
            for policy in [Policy::Core, Policy::Numa] {
                let sets = machine.binding(pes, policy, &allowed);
                prop_assert_eq!(sets.len(), pes);
                let inside = |set: &Vec<usize>| set.iter().all(|&cpu| allowed.contains(cpu));
                prop_assert!(sets.iter().all(|set| !set.is_empty() && inside(set)));
            }
            let sets = machine.binding(pes, Policy::Core, &allowed);
            let cores = machine.cores.iter().map(|core| core.cpus.intersection(&allowed).to_vec());
            let shares: Vec<usize> = cores
                .filter(|core| !core.is_empty())
                .map(|core| sets.iter().filter(|set| **set == core).count())
                .collect();
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}", shares);
        });
    }
}
