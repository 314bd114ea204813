//! Business cards: each PE's description of itself, exchanged first, and the settings in which all cards must agree.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use oxshmem_bootstrap::{Bootstrap, HexBytes, exchange};
use serde::{Deserialize, Serialize};

use crate::agreement::none_failed;
use crate::config::{Atomics, MemoryModel};
use crate::error::{Error, Result};
use crate::setup::device_select::Offer;
use crate::setup::network_select::NetworkCard;

/// A PE's description of itself for all others.
#[derive(Serialize, Deserialize)]
pub(super) struct BusinessCard {
    pub version: String,
    pub host: String,
    /// The CPUs that the PE may use, as the kernel lists them: `0-3,8`.
    pub cpus: String,
    /// The number of CPUs that it may keep busy at once.
    pub cpu_count: usize,
    /// The heap limit that the PE's settings ask for, in bytes.
    pub limit: Option<u64>,
    /// The limit of its GPU heap in bytes, 0 without one; or the reason why a heap that was asked for cannot be made.
    pub gpu: Result<u64, String>,
    /// Whether that heap is a default, which no PE need have.
    pub gpu_by_default: bool,
    /// Whether its process can copy to and from its GPU heap, so that transfers can be staged through host memory.
    pub stages: bool,
    /// Bytes of its host's memory that the PE may use.
    pub memory: u64,
    pub model: MemoryModel,
    pub check: bool,
    pub huge_pages: String,
    /// Digest of the program's symmetric statics, and of its additions to the heap.
    pub statics: u64,
    /// `OXSHMEM_TRANSPORT`, where it is set.
    pub wanted: Option<String>,
    pub seed: u64,
    /// `OXSHMEM_ROUTE`.
    pub rules: String,
    /// `OXSHMEM_ATOMICS`.
    pub atomics: Atomics,
    /// `OXSHMEM_COLLECTIVES`.
    pub collectives: String,
    /// `OXSHMEM_TEAMS`.
    pub teams: usize,
    /// `OXSHMEM_TRACE`.
    pub trace: Option<PathBuf>,
    /// Whether `OXSHMEM_STATS` is set.
    pub stats: bool,
    pub transports: Vec<RailCard>,
    /// The transports that it could not open, with the reasons.
    pub unavailable: Vec<(String, String)>,
    /// The RDMA devices of its host, whether a transport can use them or not.
    pub rdma: Vec<String>,
    /// Devices to choose from, if any transport has several here.
    pub offers: Vec<Offer>,
    /// The networks of the devices that it may open, for each transport that names networks.
    pub networks: Vec<NetworkCard>,
}

/// One opened transport.
#[derive(Serialize, Deserialize)]
pub(super) struct RailCard {
    pub name: String,
    pub device: String,
    pub address: HexBytes,
    /// Whether it registers heaps extent by extent, as they grow.
    pub pins: bool,
}

impl BusinessCard {
    /// The card of an opened transport, by name.
    pub(super) fn transport(&self, name: &str) -> Option<&RailCard> {
        self.transports.iter().find(|rail| rail.name == name)
    }

    /// The networks of its devices for a transport, by name.
    pub(super) fn networks(&self, transport: &str) -> Option<&NetworkCard> {
        self.networks.iter().find(|c| c.transport == transport)
    }

    /// The end of a sentence about two PEs whose devices of this transport have no network in common: the devices of both
    /// hosts, and their networks. Empty if they have one.
    pub(super) fn networks_apart(&self, other: &BusinessCard, transport: &str) -> String {
        let rail = |card: &BusinessCard| Some(card.transport(transport)?.device.clone());
        let (Some(ours), Some(theirs)) = (rail(self), rail(other)) else {
            return String::new();
        };
        let (Some(mine), Some(their)) = (self.networks(transport), other.networks(transport))
        else {
            return String::new();
        };
        if mine.share(&ours, their, &theirs) {
            return String::new();
        }
        let told = |card: &BusinessCard, device: &str, networks: &NetworkCard| {
            let (host, of_device) = (&card.host, networks.networks_of(device));
            let all = networks.describe();
            format!("{device} of host {host} is in {of_device}; the host has {all}")
        };
        format!(
            ". The devices have no network in common: {}. {}. Choose devices of one network by OXSHMEM_NIC",
            told(self, &ours, mine),
            told(other, &theirs, their)
        )
    }

    /// The reason why the PE has not opened a transport.
    pub(super) fn why_without(&self, name: &str) -> Cow<'static, str> {
        match self.unavailable.iter().find(|(known, _)| known == name) {
            Some((_, why)) => Cow::Owned(format!("the PE has not opened it: {why}")),
            None => Cow::Borrowed("the PE has not opened it"),
        }
    }

    /// The first setting that must be the same on every PE and is not, with both values.
    fn difference(&self, other: &BusinessCard) -> Option<String> {
        fn differ<T: PartialEq + fmt::Debug>(what: &str, mine: &T, theirs: &T) -> Option<String> {
            (mine != theirs).then(|| format!("{what}: {mine:?} and {theirs:?}"))
        }
        differ("the version of oxshmem", &self.version, &other.version)
            .or_else(|| differ("OXSHMEM_MEMORY_MODEL", &self.model, &other.model))
            .or_else(|| differ("OXSHMEM_CHECK", &self.check, &other.check))
            .or_else(|| differ("OXSHMEM_HUGE_PAGES", &self.huge_pages, &other.huge_pages))
            .or_else(|| differ("OXSHMEM_ROUTE", &self.rules, &other.rules))
            .or_else(|| differ("OXSHMEM_ATOMICS", &self.atomics, &other.atomics))
            .or_else(|| differ("OXSHMEM_COLLECTIVES", &self.collectives, &other.collectives))
            .or_else(|| differ("OXSHMEM_TEAMS", &self.teams, &other.teams))
            .or_else(|| differ("OXSHMEM_TRACE", &self.trace, &other.trace))
            .or_else(|| differ("OXSHMEM_STATS", &self.stats, &other.stats))
            .or_else(|| differ("OXSHMEM_TRANSPORT", &self.wanted, &other.wanted))
            .or_else(|| differ("OXSHMEM_SEED", &self.seed, &other.seed))
            .or_else(|| {
                let differ = self.statics != other.statics;
                differ.then(|| r#"the program's symmetric statics: "some" and "others""#.into())
            })
    }
}

/// The GPU heap on which all PEs have agreed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AgreedGpuHeap {
    /// In bytes: the smallest limit of all PEs (M14); 0 if there is none.
    pub limit: usize,
    /// The reason why there is none, where some PE would have had one by default.
    pub absence: Option<String>,
}

impl AgreedGpuHeap {
    /// A heap that no setting asks for is there where every PE can have it, and else on none.
    fn by_default(cards: &[BusinessCard]) -> Self {
        let failure = |(pe, card): (usize, &BusinessCard)| {
            let why = card.gpu.as_ref().err()?;
            Some(format!("PE {pe} says: {why}"))
        };
        let without = |pe| {
            format!(
                "PE {pe} has none: there is no kernel in its program that calls oxshmem, or its OXSHMEM_CUDA_SYMMETRIC_SIZE is 0"
            )
        };
        let absence = cards.iter().enumerate().find_map(failure);
        let absence =
            absence.or_else(|| cards.iter().position(|card| card.gpu == Ok(0)).map(without));
        match absence {
            Some(_) => AgreedGpuHeap { limit: 0, absence },
            None => Self::smallest(cards),
        }
    }

    fn smallest(cards: &[BusinessCard]) -> Self {
        let limits = cards.iter().filter_map(|card| card.gpu.as_ref().ok());
        let least = limits.copied().min().unwrap_or(0);
        AgreedGpuHeap {
            limit: usize::try_from(least).unwrap_or(usize::MAX),
            absence: None,
        }
    }
}

/// The GPU heap of the job.
pub(super) fn agree_on_gpu_heap(cards: &[BusinessCard]) -> Result<AgreedGpuHeap> {
    let mut wanted = cards.iter().filter(|card| card.gpu != Ok(0)).peekable();
    if wanted.peek().is_some() && wanted.all(|card| card.gpu_by_default) {
        return Ok(AgreedGpuHeap::by_default(cards));
    }
    none_failed(cards.iter().map(|card| card.gpu.as_ref().err().cloned()))?;
    let with = cards.iter().position(|card| card.gpu != Ok(0));
    let without = cards.iter().position(|card| card.gpu == Ok(0));
    match (with, without) {
        (Some(a), Some(b)) => Err(Error::Disagreement {
            a,
            b,
            what: "whether there is a GPU heap (OXSHMEM_CUDA_SYMMETRIC_SIZE)".into(),
        }),
        _ => Ok(AgreedGpuHeap::smallest(cards)),
    }
}

/// Exchanges all PEs' cards. An error if they cannot make one job. Collective.
pub(super) fn exchange_cards(
    bootstrap: &dyn Bootstrap,
    mine: &BusinessCard,
) -> Result<Vec<BusinessCard>> {
    let cards: Vec<BusinessCard> = exchange(bootstrap, mine)?;
    for (pe, card) in cards.iter().enumerate() {
        if let Some(what) = mine.difference(card) {
            return Err(Error::Disagreement {
                a: bootstrap.rank() as usize,
                b: pe,
                what,
            });
        }
    }
    Ok(cards)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A card of a PE that has nothing.
    pub(in crate::setup) fn card() -> BusinessCard {
        BusinessCard {
            version: String::new(),
            host: String::new(),
            cpus: String::new(),
            cpu_count: 1,
            limit: None,
            gpu: Ok(0),
            gpu_by_default: false,
            stages: false,
            memory: 0,
            model: MemoryModel::Ordered,
            check: false,
            huge_pages: String::new(),
            statics: 0,
            wanted: None,
            seed: 0,
            rules: String::new(),
            atomics: Atomics::Auto,
            collectives: String::new(),
            teams: 0,
            trace: None,
            stats: false,
            transports: Vec::new(),
            unavailable: Vec::new(),
            rdma: Vec::new(),
            offers: Vec::new(),
            networks: Vec::new(),
        }
    }

    #[test]
    fn two_builds_differ_by_name() {
        let build = |version: &str| BusinessCard {
            version: version.into(),
            check: version.contains("cafe"),
            ..card()
        };
        let (one, other) = (build("0.2.0 (build beef)"), build("0.2.0 (build cafe)"));
        assert_eq!(one.difference(&build("0.2.0 (build beef)")), None);
        // Before any setting, as two builds may have other ones.
        let told = one.difference(&other).unwrap();
        assert_eq!(
            told,
            r#"the version of oxshmem: "0.2.0 (build beef)" and "0.2.0 (build cafe)""#
        );
    }

    #[test]
    fn a_gpu_heap_by_default_is_there_for_all_pes_or_for_none() {
        type Gpu = (Result<u64, &'static str>, bool);
        let of = |(gpu, gpu_by_default): Gpu| BusinessCard {
            gpu: gpu.map_err(Into::into),
            gpu_by_default,
            ..card()
        };
        let agreed = |a: Gpu, b: Gpu| {
            let agreed = agree_on_gpu_heap(&[of(a), of(b)]);
            agreed.map(|heap| (heap.limit, heap.absence.unwrap_or_default()))
        };
        let heap = |a: Gpu, b: Gpu| agreed(a, b).unwrap();
        let (default, broken): (Gpu, Gpu) = ((Ok(8), true), (Err("no GPU"), true));
        let (asked, fails, none): (Gpu, Gpu, Gpu) =
            ((Ok(4), false), (Err("no GPU"), false), (Ok(0), false));
        assert_eq!(heap(none, none), (0, String::new()));
        assert_eq!(heap(default, default), (8, String::new()));
        assert_eq!(heap(default, asked), (4, String::new()));
        let (limit, why) = heap(default, none);
        assert!(limit == 0 && why.contains("PE 1 has none"), "{why}");
        assert_eq!(heap(broken, none), (0, "PE 0 says: no GPU".into()));
        assert_eq!(heap(default, broken), (0, "PE 1 says: no GPU".into()));
        // Settings of one PE that ask for a heap ask for it on all.
        for (a, b, why) in [
            (asked, broken, "no GPU"),
            (fails, default, "no GPU"),
            (asked, none, "whether there is a GPU heap"),
        ] {
            let told = agreed(a, b).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
    }
}
