//! Agreement of all PEs on their routes: every PE must reach every PE, and all learn the properties that hold for all.

use oxshmem_bootstrap::{Bootstrap, exchange};
use oxshmem_engine::route::path::{Path, PeerPaths};
use oxshmem_engine::route::table::Routes;
use serde::{Deserialize, Serialize};

use crate::config::Atomics;
use crate::error::{Error, Result};
use crate::options::NicAtomics;
use crate::setup::hosts::Hosts;
use crate::setup::unregistered::UnregisteredRails;
use crate::visibility::Visibility;

/// One PE's routes, in short, for all others.
#[derive(Serialize, Deserialize)]
struct RouteSummary {
    /// Whether all are mapped.
    all_mapped: bool,
    /// The first PE that it does not reach, and why.
    unreachable: Option<(usize, String)>,
    /// The first PE whose NIC it does not reach for atomics, or not by the transport that reaches the others.
    no_nic: Option<usize>,
    /// That transport's name.
    nic: Option<String>,
    /// Whether it sends active messages.
    messages: bool,
    /// Whether operations go by a transport that pins registered memory.
    pinned: bool,
    /// Whether data to another PE's GPU are staged through host memory.
    staged: bool,
    /// Whether it loads and stores the memory of all PEs of its host.
    maps_its_host: bool,
    /// Whether it joins a host without RDMA, though there are RDMA devices.
    passes_rdma_over: bool,
}

/// Properties of this PE's routes that its rails and settings decide, too.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Whether it sends active messages.
    pub messages: bool,
    /// Whether operations go by a transport that pins registered memory.
    pub pinned: bool,
    /// Whether it loads and stores the memory of all PEs of its host.
    pub maps_its_host: bool,
    /// Whether it joins a host without RDMA, though there are RDMA devices.
    pub passes_rdma_over: bool,
}

/// Properties of all PEs' routes, the same on every PE.
pub(super) struct RouteAgreement {
    pub visibility: Visibility,
    /// Whether every PE reaches every PE's NIC for atomics.
    pub nics: bool,
    /// The reason for the first pair that does not, if any.
    pub no_nics: String,
    /// Whether some PE sends active messages to another.
    pub messages: bool,
    /// Whether some PE's operations go by a transport that pins registered memory.
    pub pinned: bool,
    /// Whether some PE's data to another's GPU are staged through host memory.
    pub staged: bool,
    /// By PE, whether it loads and stores the memory of all PEs of its host.
    pub maps_its_host: Vec<bool>,
    /// The first PE that joins a host without RDMA, though there are RDMA devices: it says so for all.
    pub passes_rdma_over: Option<usize>,
}

impl RouteSummary {
    fn new(routes: &Routes, me: u32, found: Found) -> Self {
        let others = (0..).zip(&routes.paths).filter(|(pe, _)| *pe != me);
        let staged = others
            .into_iter()
            .any(|(_, paths)| paths.gpu == Path::Staged);
        // One device at each PE performs all of its atomics (M29): that of one transport.
        let nic = routes.paths.first().map_or(Path::None, |paths| paths.nic);
        let lacks_nic = |paths: &PeerPaths| paths.nic == Path::None || paths.nic != nic;
        let no_nic = routes.paths.iter().position(lacks_nic);
        let nic = nic.transport().and_then(|index| routes.opened.get(index));
        RouteSummary {
            all_mapped: routes.all_mapped(),
            unreachable: routes.first_unreachable(),
            no_nic,
            nic: nic.map(|named| named.name.to_owned()),
            messages: found.messages,
            pinned: found.pinned,
            staged,
            maps_its_host: found.maps_its_host,
            passes_rdma_over: found.passes_rdma_over,
        }
    }
}

impl RouteAgreement {
    /// The agreement of all PEs' summaries.
    fn of(all: Vec<RouteSummary>) -> Result<Self> {
        let mut agreed = RouteAgreement {
            visibility: Visibility::Global,
            nics: true,
            no_nics: String::new(),
            messages: false,
            pinned: false,
            staged: false,
            maps_its_host: Vec::with_capacity(all.len()),
            passes_rdma_over: None,
        };
        let nic = all.first().and_then(|first| first.nic.clone());
        for (from, theirs) in all.into_iter().enumerate() {
            agreed.add(from, theirs, nic.as_deref())?;
        }
        Ok(agreed)
    }

    /// Adds the summary of the PE `from`. `nic` is the transport of PE 0's NIC.
    fn add(&mut self, from: usize, theirs: RouteSummary, nic: Option<&str>) -> Result<()> {
        if let Some((pe, why)) = theirs.unreachable {
            return Err(Error::Unreachable {
                call: "init",
                from,
                pe,
                why,
            });
        }
        if !theirs.all_mapped {
            self.visibility = Visibility::Local;
        }
        let other_nic = (theirs.nic.as_deref() != nic).then_some(0);
        if let Some(pe) = theirs.no_nic.or(other_nic) {
            if self.nics {
                self.no_nics = format!("PE {from} has no transport whose NIC does so at PE {pe}");
            }
            self.nics = false;
        }
        self.messages |= theirs.messages;
        self.pinned |= theirs.pinned;
        self.staged |= theirs.staged;
        self.maps_its_host.push(theirs.maps_its_host);
        if theirs.passes_rdma_over {
            self.passes_rdma_over.get_or_insert(from);
        }
        Ok(())
    }

    /// The words whose atomics NICs perform.
    pub(super) fn nic_atomics(&self, wanted: Atomics, hosts: &Hosts) -> Result<NicAtomics> {
        match wanted {
            Atomics::Cpu => Ok(NicAtomics::Never),
            Atomics::Nic if !self.nics => Err(Error::Config {
                name: "OXSHMEM_ATOMICS".into(),
                value: "nic".into(),
                why: format!("{}; choose auto or cpu", self.no_nics),
            }),
            Atomics::Nic => Ok(NicAtomics::Always),
            Atomics::Auto if !self.nics => Ok(NicAtomics::Never),
            // If no two PEs share a host, only a PE's own CPU accesses its words.
            Atomics::Auto if hosts.count() > 1 && hosts.have_one_pe() => Ok(NicAtomics::Always),
            Atomics::Auto => Ok(NicAtomics::IfHinted),
        }
    }
}

/// Agrees on the routes. Every PE must reach every PE's host memory. Visibility is global if every PE maps every PE (M24 to
/// M26), in checked mode too. Collective.
pub(super) fn agree_on_routes(
    bootstrap: &dyn Bootstrap,
    routes: &Routes,
    found: Found,
    unregistered: &UnregisteredRails,
) -> Result<RouteAgreement> {
    let mine = RouteSummary::new(routes, bootstrap.rank(), found);
    let all: Vec<RouteSummary> = exchange(bootstrap, &mine)?;
    let mut agreed = RouteAgreement::of(all)?;
    if !agreed.nics && !unregistered.is_empty() {
        agreed.no_nics = format!("{}; {}", agreed.no_nics, unregistered.describe());
    }
    Ok(agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(passes_rdma_over: bool) -> RouteSummary {
        RouteSummary {
            all_mapped: false,
            unreachable: None,
            no_nic: None,
            nic: None,
            messages: true,
            pinned: false,
            staged: false,
            maps_its_host: true,
            passes_rdma_over,
        }
    }

    #[test]
    fn the_first_pe_that_passes_rdma_over_says_so_for_all() {
        let said = |all: &[bool]| {
            let all = all.iter().map(|passes| summary(*passes)).collect();
            RouteAgreement::of(all).unwrap().passes_rdma_over
        };
        assert_eq!(said(&[false, false]), None);
        assert_eq!(said(&[false, false, true, true]), Some(2));
        assert_eq!(said(&[true, false, true]), Some(0));
    }
}
