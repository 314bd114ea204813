//! Transports with which PEs could not register their heaps.
//!
//! Such a PE retires the transport, and says so with its keys. So all PEs know of it before they choose routes: towards that PE,
//! and from it, each takes another transport, and the others go on as before. Where there is no other transport, the
//! agreement on the routes ends the start-up on every PE, with the reason.

use std::collections::BTreeSet;

use oxshmem_engine::report;
use oxshmem_engine::route::table::Routes;
use serde::{Deserialize, Serialize};

use crate::setup::card::BusinessCard;
use crate::setup::hosts::Hosts;

/// A transport with which a PE could not register its heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unregistered {
    pub transport: String,
    /// The transport's words, with the remedy.
    pub why: String,
}

/// The reason against a transport, if it is one of these.
pub(super) fn reason<'a>(all: &'a [Unregistered], transport: &str) -> Option<&'a str> {
    let found = all.iter().find(|rail| rail.transport == transport);
    found.map(|rail| &*rail.why)
}

/// All PEs' transports of that kind. The same on every PE.
#[derive(Default)]
pub(super) struct UnregisteredRails {
    /// Each with its PE, in their order.
    failures: Vec<(usize, Unregistered)>,
    transports: BTreeSet<String>,
}

impl UnregisteredRails {
    /// From each PE's, in order.
    pub(super) fn of(all: impl IntoIterator<Item = Vec<Unregistered>>) -> Self {
        let all = (0..).zip(all);
        let failures: Vec<(usize, Unregistered)> = all
            .flat_map(|(pe, rails)| rails.into_iter().map(move |rail| (pe, rail)))
            .collect();
        let transports = failures.iter().map(|(_, rail)| rail.transport.clone());
        UnregisteredRails {
            transports: transports.collect(),
            failures,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    /// Whether some PE could not register its heap with this transport.
    pub(super) fn names(&self, transport: &str) -> bool {
        self.transports.contains(transport)
    }

    /// The first PE that has any: it reports for all.
    pub(super) fn reporter(&self) -> Option<usize> {
        self.failures.first().map(|(pe, _)| *pe)
    }

    /// The first PE's failures, and the number of other PEs that have any, in words.
    pub(super) fn describe(&self) -> String {
        let Some(first) = self.reporter() else {
            return String::new();
        };
        let of_first = self.failures.iter().filter(|(pe, _)| *pe == first);
        let failed: Vec<String> = of_first
            .map(|(_, rail)| format!("with {} ({})", rail.transport, rail.why))
            .collect();
        let mut pes: Vec<usize> = self.failures.iter().map(|(pe, _)| *pe).collect();
        pes.dedup();
        let more = match pes.len() {
            1 => String::new(),
            2 => ", nor could 1 other PE".to_owned(),
            pes => format!(", nor could {} other PEs", pes - 1),
        };
        let failed = failed.join(" and ");
        format!("PE {first} could not register its heap {failed}{more}")
    }

    /// Reports them at the first PE, whose `routes` these are: a warning where another transport joins hosts instead.
    pub(super) fn report(&self, cards: &[BusinessCard], hosts: &Hosts, routes: &Routes) {
        let told = self.describe();
        let (Some(me), 2..) = (self.reporter(), hosts.count()) else {
            return report::info(&told);
        };
        let near = hosts.with(me);
        let others = (0..cards.len()).filter(|pe| near.binary_search(pe).is_err());
        let mut used: Vec<String> = Vec::new();
        for route in others.filter_map(|pe| routes.get(pe)) {
            let by = route.transport.zip(route.device);
            let by = by.map(|(name, device)| format!("{name} ({device})"));
            used.extend(by.filter(|by| !used.contains(by)));
        }
        let host = cards.get(me).map_or("", |card| &card.host);
        let used = used.join(", ");
        report::warn(&format!(
            "{told}. The job goes on: PE {me} on host {host} reaches other hosts by {used} instead. oxshmem info --explain \
             shows every route"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pe_reports_for_all_and_counts_the_others() {
        let rail = |transport: &str| Unregistered {
            transport: transport.into(),
            why: "no more than 64 KiB; `ulimit -l unlimited`".into(),
        };
        let none = UnregisteredRails::of([vec![], vec![]]);
        assert!(none.is_empty() && none.reporter().is_none() && none.describe().is_empty());
        let all = [
            vec![],
            vec![rail("verbs"), rail("fast")],
            vec![rail("verbs")],
        ];
        let all = UnregisteredRails::of(all);
        assert_eq!(all.reporter(), Some(1));
        let told = "PE 1 could not register its heap with verbs (no more than 64 KiB; `ulimit -l unlimited`) and with fast \
                    (no more than 64 KiB; `ulimit -l unlimited`), nor could 1 other PE";
        assert_eq!(all.describe(), told);
    }
}
