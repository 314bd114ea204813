//! The warning of a job that has RDMA devices, and joins its hosts without them.

use oxshmem_engine::route::table::{Route, Routes};

use crate::setup::card::BusinessCard;
use crate::setup::hosts::Hosts;

/// A warning, if this PE reaches another host by a device that is none for RDMA, and some host has such devices. It has the
/// reason against each transport that was to be preferred.
pub(super) fn warning(
    cards: &[BusinessCard],
    hosts: &Hosts,
    routes: &Routes,
    me: usize,
) -> Option<String> {
    if cards.iter().all(|card| card.rdma.is_empty()) {
        return None;
    }
    let near = hosts.with(me);
    let others = (0..cards.len()).filter(|pe| near.binary_search(pe).is_err());
    // A path has one device here, which decides: one PE of each path is enough.
    let mut seen = Vec::new();
    let mut is_new = |pe: &usize| {
        let path = routes.paths.get(*pe).map(|paths| paths.host);
        let is_new = !seen.contains(&path);
        if is_new {
            seen.push(path);
        }
        is_new
    };
    others
        .filter(|pe| is_new(pe))
        .filter_map(|pe| Some((pe, routes.get(pe)?)))
        .find_map(|(pe, route)| of_route(cards, pe, &route))
}

/// The warning about the route to one PE of another host.
fn of_route(cards: &[BusinessCard], pe: usize, route: &Route) -> Option<String> {
    let (chosen, device) = (route.transport?, route.device.as_deref()?);
    let mut devices = (0..).zip(cards).flat_map(|(pe, card)| {
        let devices = card.rdma.iter();
        devices.map(move |device: &String| (pe, device.as_str()))
    });
    // A port is named by its device and its number.
    let is_rdma = devices
        .clone()
        .any(|(_, rdma)| device == rdma || device.split(':').next() == Some(rdma));
    let (owner, rdma): (usize, &str) = devices.next().filter(|_| !is_rdma)?;
    let passed_over = route.considered.iter();
    let passed_over = passed_over.take_while(|candidate| candidate.transport != chosen);
    let reasons: Vec<String> = passed_over
        .filter(|candidate| joins_hosts(cards, &candidate.transport))
        .map(
            |candidate| match candidate.answer.starts_with(&candidate.transport) {
                true => candidate.answer.clone(),
                false => format!("{}: {}", candidate.transport, candidate.answer),
            },
        )
        .collect();
    let reasons = match reasons.as_slice() {
        [] => "OXSHMEM_TRANSPORT or OXSHMEM_ROUTE leaves no other".to_owned(),
        reasons => reasons.join("; "),
    };
    Some(format!(
        "{chosen} ({device}) joins the hosts without RDMA, though the host of PE {owner} has the RDMA device {rdma}. The reason \
         towards PE {pe}: {reasons}. oxshmem info --explain shows every route"
    ))
}

/// Whether a transport may join hosts: its devices are in networks, or no PE has opened one.
fn joins_hosts(cards: &[BusinessCard], transport: &str) -> bool {
    let is_open = cards.iter().any(|card| card.transport(transport).is_some());
    !is_open || cards.iter().any(|card| card.networks(transport).is_some())
}

#[cfg(test)]
mod tests {
    use oxshmem_engine::route::reasons::RouteCandidate;

    use super::*;
    use crate::setup::card::RailCard;
    use crate::setup::card::tests::card;

    fn route(transport: &'static str, device: &str, considered: &[(&str, &str)]) -> Route {
        Route {
            transport: Some(transport),
            device: Some(device.into()),
            device_choice: None,
            mapped: false,
            messages: false,
            staged: false,
            considered: considered
                .iter()
                .map(|(transport, answer)| RouteCandidate {
                    transport: (*transport).into(),
                    answer: (*answer).into(),
                })
                .collect(),
        }
    }

    /// Cards of two hosts, of which the second has a device; both map their own memory.
    fn cards() -> Vec<BusinessCard> {
        let rail = || RailCard {
            name: "near".into(),
            device: "memory".into(),
            address: oxshmem_bootstrap::HexBytes(Vec::new()),
            pins: false,
        };
        let with = |rdma: &[&str]| BusinessCard {
            rdma: rdma.iter().map(|name| (*name).into()).collect(),
            transports: vec![rail()],
            ..card()
        };
        vec![with(&[]), with(&["mlx5_0"])]
    }

    const REFUSED: [(&str, &str); 3] = [
        ("near", "another host"),
        ("fast", "fast: not available here: its port is down"),
        ("slow", "chosen: lane"),
    ];

    #[test]
    fn a_host_whose_rdma_devices_are_passed_over_is_named_with_the_reason() {
        let text = of_route(&cards(), 1, &route("slow", "eth0 10.1.0.1", &REFUSED)).unwrap();
        for words in [
            "slow (eth0 10.1.0.1)",
            "PE 1 has the RDMA device mlx5_0",
            "PE 1: fast: not available here: its port is down.",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("another host"), "{text}");
    }

    #[test]
    fn without_rdma_devices_and_by_one_of_them_nothing_is_said() {
        let cards = cards();
        let by_tcp = route("slow", "eth0 10.1.0.1", &REFUSED);
        assert_eq!(of_route(&cards[..1], 1, &by_tcp), None);
        for device in ["mlx5_0", "mlx5_0:1"] {
            assert_eq!(
                of_route(&cards, 1, &route("fast", device, &REFUSED[..1])),
                None
            );
        }
    }

    #[test]
    fn a_setting_that_leaves_no_other_transport_is_the_reason() {
        let only = route("slow", "eth0 10.1.0.1", &REFUSED[2..]);
        let text = of_route(&cards(), 1, &only).unwrap();
        assert!(text.contains("OXSHMEM_TRANSPORT"), "{text}");
    }
}
