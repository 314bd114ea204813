//! The hosts of a job: the PEs of each, the heap limit that they agree on, and whether a host has fewer CPUs than PEs.

use std::collections::{BTreeSet, HashMap};

use oxshmem_topo::CpuSet;

use crate::config::MAX_HEAP;
use crate::setup::card::BusinessCard;
use crate::setup::layout::PAGE;
use oxshmem_collectives::layout::JobShape;

/// The PEs of each host, hosts in the order of their first PEs.
#[derive(Debug)]
pub(super) struct Hosts(Vec<Vec<usize>>);

impl Hosts {
    pub(super) fn of(cards: &[BusinessCard]) -> Self {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut hosts: Vec<Vec<usize>> = Vec::new();
        for (pe, card) in cards.iter().enumerate() {
            let number = *numbers.entry(&card.host).or_insert(hosts.len());
            match hosts.get_mut(number) {
                Some(host) => host.push(pe),
                None => hosts.push(vec![pe]),
            }
        }
        Hosts(hosts)
    }

    /// The PEs of the host of `pe`, ascending: a PE's index is its local rank.
    pub(super) fn with(&self, pe: usize) -> &[usize] {
        let host = self.0.iter().find(|host| host.binary_search(&pe).is_ok());
        host.map_or(&[], Vec::as_slice)
    }

    /// For each host, the cards of its PEs.
    pub(super) fn cards<'a>(
        &self,
        cards: &'a [BusinessCard],
    ) -> impl Iterator<Item = Vec<&'a BusinessCard>> {
        let cards_of = |pes: &Vec<usize>| pes.iter().filter_map(|&pe| cards.get(pe)).collect();
        self.0.iter().map(cards_of)
    }

    /// The number of each PE's host, by PE.
    pub(super) fn numbers(&self) -> Box<[u32]> {
        let numbered = (0..).zip(&self.0);
        let mut all: Vec<(usize, u32)> = numbered
            .flat_map(|(host, pes)| pes.iter().map(move |pe| (*pe, host)))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, host)| host).collect()
    }

    /// The number of hosts.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The shape of the job over the hosts.
    pub(super) fn job_shape(&self, oversubscribed: bool) -> JobShape {
        let sizes = self.0.iter().map(Vec::len);
        JobShape {
            pes: sizes.clone().sum(),
            hosts: self.count(),
            max_pes_per_host: sizes.max().unwrap_or(0),
            oversubscribed,
        }
    }

    /// Whether each host has one PE.
    pub(super) fn have_one_pe(&self) -> bool {
        self.0.iter().all(|host| host.len() == 1)
    }

    /// The smallest limit of all PEs (M14), in whole pages, one at least. A PE's default is its share of half of the
    /// host's memory.
    pub(super) fn agree_on_limit(&self, cards: &[BusinessCard]) -> u64 {
        let limits = self.0.iter().flat_map(|host| {
            host.iter().filter_map(|&pe| {
                let card = cards.get(pe)?;
                let default = || oxshmem_heap::limit::default(card.memory, host.len() as u32);
                Some(card.limit.unwrap_or_else(default))
            })
        });
        let limit = limits.min().unwrap_or(0).clamp(1, MAX_HEAP);
        limit.next_multiple_of(PAGE)
    }

    /// By PE, whether the PEs of its host outnumber the CPUs that they may use.
    pub(super) fn oversubscribed(&self, cards: &[BusinessCard]) -> Vec<bool> {
        let mut all = vec![true; cards.len()];
        for host in &self.0 {
            let local: Vec<(usize, &BusinessCard)> = host
                .iter()
                .filter_map(|&pe| Some((pe, cards.get(pe)?)))
                .collect();
            let mut sharing: HashMap<&str, (CpuSet, usize)> = HashMap::new();
            for (_, card) in &local {
                let set = || (card.cpus.parse().unwrap_or_default(), 0);
                sharing.entry(&card.cpus).or_insert_with(set).1 += 1;
            }
            let union: BTreeSet<usize> = sharing.values().flat_map(|(set, _)| set.iter()).collect();
            let quota = local.iter().map(|(_, c)| c.cpu_count).max().unwrap_or(1);
            for (pe, card) in &local {
                let Some((mine, sharing)) = sharing.get(card.cpus.as_str()) else {
                    continue;
                };
                let quota = if quota < mine.len() {
                    quota
                } else {
                    union.len()
                };
                if let Some(over) = all.get_mut(*pe) {
                    *over = local.len() > quota.max(1) || *sharing > mine.len().max(1);
                }
            }
        }
        all
    }
}
