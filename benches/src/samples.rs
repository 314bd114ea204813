//! The samples: for each side and row, a figure of each round.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::statistics::Summary;

/// The side that a figure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// oxshmem, and the limits measured beside it, by `peer` or `gpu_peer`.
    Oxshmem,
    /// Open MPI's OpenSHMEM, by `oshmem/`.
    Oshmem,
    /// UCX, by its own `ucx_perftest`.
    Ucx,
    /// NVSHMEM, by `nvshmem/peer.cu`.
    Nvshmem,
    /// libfabric, by `libfabric/peer.c`.
    Libfabric,
    /// Bare sockets, by `sockets`.
    Sockets,
}

impl Side {
    /// The name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Side::Oxshmem => "oxshmem",
            Side::Oshmem => "OSHMEM",
            Side::Ucx => "UCX",
            Side::Nvshmem => "NVSHMEM",
            Side::Libfabric => "libfabric",
            Side::Sockets => "sockets",
        }
    }
}

/// All figures; those of failed rounds are missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Samples(BTreeMap<Side, BTreeMap<String, BTreeMap<usize, f64>>>);

impl Samples {
    /// Adds a figure.
    pub fn add(&mut self, side: Side, row: &str, round: usize, value: f64) {
        let rows = self.0.entry(side).or_default();
        rows.entry(row.into()).or_default().insert(round, value);
    }

    /// Whether there is no figure.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every row's name.
    #[must_use]
    pub fn rows(&self) -> BTreeSet<&str> {
        let all = self.0.values().flat_map(BTreeMap::keys);
        all.map(String::as_str).collect()
    }

    /// One more than the last round.
    #[must_use]
    pub fn rounds(&self) -> usize {
        let all = self.0.values().flat_map(BTreeMap::values);
        all.flat_map(BTreeMap::keys)
            .max()
            .map_or(0, |last| last + 1)
    }

    /// One figure.
    #[must_use]
    pub fn in_round(&self, side: Side, row: &str, round: usize) -> Option<f64> {
        self.of(side, row)?.get(&round).copied()
    }

    /// The summary over all rounds.
    #[must_use]
    pub fn summary(&self, side: Side, row: &str) -> Option<Summary> {
        let values: Vec<f64> = self.of(side, row)?.values().copied().collect();
        Summary::of(&values)
    }

    /// The summary of a function of two figures, over all rounds that have both.
    #[must_use]
    pub fn within_rounds(
        &self,
        (side, row): (Side, &str),
        (other_side, other_row): (Side, &str),
        combine: impl Fn(f64, f64) -> f64,
    ) -> Option<Summary> {
        let (these, others) = (self.of(side, row)?, self.of(other_side, other_row)?);
        let both = these.iter().filter_map(|(round, value)| {
            let other = others.get(round)?;
            Some(combine(*value, *other))
        });
        Summary::of(&both.collect::<Vec<_>>())
    }

    fn of(&self, side: Side, row: &str) -> Option<&BTreeMap<usize, f64>> {
        self.0.get(&side)?.get(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_the_same_after_a_file() {
        let mut samples = Samples::default();
        assert_eq!((samples.is_empty(), samples.rounds()), (true, 0));
        samples.add(Side::Ucx, "put8", 0, 9.5);
        samples.add(Side::Oxshmem, "put8", 2, 0.5);
        samples.add(Side::Oxshmem, "get8", 1, 0.75);
        let text = serde_json::to_string(&samples).unwrap();
        let again: Samples = serde_json::from_str(&text).unwrap();
        assert_eq!(again, samples);
        assert_eq!((again.is_empty(), again.rounds()), (false, 3));
        assert_eq!(
            again.rows().into_iter().collect::<Vec<_>>(),
            ["get8", "put8"]
        );
        assert_eq!(again.in_round(Side::Ucx, "put8", 1), None);
    }
}
