//! What a PE tells all others about itself, and what they must agree on.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use oxshmem_bootstrap::{Bootstrap, HexBytes, exchange};
use serde::{Deserialize, Serialize};

use crate::config::{Atomics, MemoryModel};
use crate::route::device_select::Offer;
use crate::{Error, Result};

/// What a PE tells all others about itself.
#[derive(Serialize, Deserialize)]
pub(super) struct BusinessCard {
    pub version: String,
    pub host: String,
    /// The CPUs that the PE may use, as the kernel lists them: `0-3,8`.
    pub cpus: String,
    /// How many of them it may keep busy at once.
    pub cpu_count: usize,
    /// The heap limit that the PE's settings ask for, in bytes.
    pub limit: Option<u64>,
    /// That of its GPU heap, 0 without one; or why there is none where there was to be one.
    pub gpu: Result<u64, String>,
    /// Whether its process can copy to and from its GPU's memory.
    pub stages: bool,
    /// What the PE may use of its host's memory, in bytes.
    pub memory: u64,
    pub model: MemoryModel,
    pub check: bool,
    pub huge_pages: String,
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
    /// The transports that it could not open, and why.
    pub unavailable: Vec<(String, String)>,
    /// Devices among which to choose, if any transport has several here.
    pub offers: Vec<Offer>,
}

/// One open transport.
#[derive(Serialize, Deserialize)]
pub(super) struct RailCard {
    pub name: String,
    pub address: HexBytes,
    /// Whether it registers heaps piece by piece, as they grow.
    pub pins: bool,
}

impl BusinessCard {
    pub(super) fn transport(&self, name: &str) -> Option<&RailCard> {
        self.transports.iter().find(|shown| shown.name == name)
    }

    /// Why the PE has not opened a transport.
    pub(super) fn why_without(&self, name: &str) -> Cow<'static, str> {
        match self.unavailable.iter().find(|(known, _)| known == name) {
            Some((_, why)) => Cow::Owned(format!("the PE has not opened it: {why}")),
            None => Cow::Borrowed("the PE has not opened it"),
        }
    }

    /// In what this card must be the same on every PE and is not, with both values.
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

/// The GPU heap's limit in bytes: the smallest of all PEs' (M14); 0 where there is none.
pub(super) fn agree_on_gpu_limit(cards: &[BusinessCard]) -> Result<usize> {
    let mut limits = Vec::with_capacity(cards.len());
    for (pe, card) in cards.iter().enumerate() {
        match &card.gpu {
            Ok(limit) => limits.push(*limit),
            Err(why) => {
                return Err(Error::FailedElsewhere {
                    call: "init",
                    pe,
                    why: why.clone(),
                });
            }
        }
    }
    let with = limits.iter().position(|limit| *limit > 0);
    let without = limits.iter().position(|limit| *limit == 0);
    match (with, without) {
        (Some(a), Some(b)) => Err(Error::Disagreement {
            a,
            b,
            what: "whether there is a GPU heap (OXSHMEM_CUDA_SYMMETRIC_SIZE)".into(),
        }),
        _ => {
            let least = limits.into_iter().min().unwrap_or(0);
            Ok(usize::try_from(least).unwrap_or(usize::MAX))
        }
    }
}

/// Every PE's card, the same on every PE; an error if they cannot make one job.
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
