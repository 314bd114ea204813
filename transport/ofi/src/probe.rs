//! The providers and interfaces that may be used here, best first.

use std::net::IpAddr;
use std::path::Path;

use oxshmem_transport::{Device, Error, Network, Result};

use crate::fabric::info::{Info, Wanted, infos};
use crate::fabric::library::Library;
use crate::facts::{Facts, core_of, performs_atomics_by_nic, places_by_nic};
use crate::limits::NAME;
use crate::plan::{Plan, plan};
use crate::settings::{Atomics, Hmem, Interface, Settings};

/// A way that may be used: the device as users see it, and what opens it.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub device: Device,
    pub info: Info,
    pub plan: Plan,
}

/// The providers that are tried where none is named, best first. Those over verbs are not among them: the transport
/// `verbs` uses such NICs itself. `net` is libfabric's provider of TCP without a layer above it, before it was called `tcp`.
const PROVIDERS: &[&str] = &["cxi", "efa", "opx", "psm2", "net", "tcp"];

/// Where Linux lists the NICs of Slingshot.
const SLINGSHOT: &[&str] = &["/sys/class/cxi", "/sys/class/cxi_user"];
/// Where it lists RDMA devices, and the drivers of those that need libfabric: EFA's, Omni-Path's.
const RDMA: &str = "/sys/class/infiniband";
const DRIVERS: &[&str] = &["efa", "hfi1"];

fn unavailable(why: String) -> Error {
    Error::Unavailable {
        transport: NAME,
        why,
    }
}

/// The ways that the settings allow, to GPU memory, too, if the PE has some. `Err` says why there are none.
pub(crate) fn candidates(settings: &Settings, has_gpu: bool) -> Result<Vec<Candidate>> {
    if !settings.is_asked_for() && !has_fabric() {
        return Err(unavailable(
            "this machine has no NIC of a fabric; an ordinary network is used in jobs of oxshmem run --hosts, and else if its \
             interface is named, such as OXSHMEM_OFI_INTERFACE=eth0"
                .into(),
        ));
    }
    let library = Library::get()?;
    let named: Vec<&str> = match &settings.providers {
        Some(named) => named.iter().map(String::as_str).collect(),
        None => defaults(settings.atomics),
    };
    let mut search = Search::default();
    for provider in &named {
        let core = core_of(provider);
        let atomics = match settings.atomics {
            Atomics::Auto => performs_atomics_by_nic(core),
            Atomics::Provider => true,
            Atomics::Messages => false,
        };
        let wanted = Wanted {
            delivers: true,
            atomics,
            gpu: has_gpu && settings.hmem == Hmem::Auto && places_by_nic(core),
        };
        for info in infos(library, provider, wanted)? {
            search.judge(settings, info);
        }
    }
    if search.found.is_empty() {
        return Err(unavailable(search.explain(
            settings,
            &named,
            library.version(),
        )));
    }
    prefer_families(&mut search.found);
    Ok(search.found)
}

/// The providers to try. `net` of 1.17 says that it has atomics, and performs none.
fn defaults(atomics: Atomics) -> Vec<&'static str> {
    let wants = |name: &&str| atomics != Atomics::Provider || *name != "net";
    PROVIDERS.iter().copied().filter(wants).collect()
}

/// Whether this machine has a NIC that is used through libfabric alone. Without one, libfabric is not even opened.
fn has_fabric() -> bool {
    let entries = |path: &str| {
        std::fs::read_dir(Path::new(path))
            .into_iter()
            .flatten()
            .flatten()
    };
    if SLINGSHOT.iter().any(|path| entries(path).next().is_some()) {
        return true;
    }
    entries(RDMA).any(|device| {
        let driver = std::fs::read_link(device.path().join("device/driver"));
        let name = driver
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        name.is_some_and(|name| DRIVERS.contains(&&*name))
    })
}

/// The ways seen so far.
#[derive(Debug, Default)]
struct Search {
    found: Vec<Candidate>,
    /// Interfaces that the settings do not name.
    others: Vec<String>,
    /// Providers that cannot be used, with the reasons.
    refused: Vec<String>,
}

impl Search {
    fn judge(&mut self, settings: &Settings, info: Info) {
        let facts = info.facts();
        let device = device(facts);
        if !is_allowed(settings, facts) {
            let other = describe(facts);
            if !self.others.contains(&other) {
                self.others.push(other);
            }
            return;
        }
        let mut device = device;
        let mut known = self.found.iter();
        if let Some(known) = known.find(|known| known.device.name == device.name) {
            if known.info.facts().provider == facts.provider {
                return;
            }
            // Another provider on the same interface, which other hosts may have instead.
            device.name = format!("{} by {}", device.name, facts.provider);
        }
        let mut known = self.found.iter();
        if known.any(|known| known.device.name == device.name) {
            return;
        }
        match plan(facts, settings.puts, settings.atomics) {
            Ok(plan) => self.found.push(Candidate { device, info, plan }),
            Err(why) => self.refused.push(format!("{}: {why}", facts.provider)),
        }
    }

    /// The reason why nothing was found, and how to mend it.
    fn explain(&self, settings: &Settings, named: &[&str], version: (u32, u32)) -> String {
        let hidden = match &settings.hidden_by {
            Some(value) => format!("; FI_PROVIDER={value} hides other providers from libfabric"),
            None => String::new(),
        };
        let others = self.others.join(", ");
        match (&settings.interfaces, self.refused.first()) {
            (_, Some(why)) => format!("{why}{hidden}"),
            (Some(wanted), None) if !self.others.is_empty() => {
                let wanted: Vec<String> = wanted.iter().map(Interface::to_string).collect();
                format!(
                    "no interface is {} (OXSHMEM_OFI_INTERFACE); there are {others}",
                    wanted.join(" or ")
                )
            }
            (None, None) if !self.others.is_empty() => {
                let launcher = match settings.host_address {
                    Some(address) => format!("; none has {address} (OXSHMEM_HOST_ADDRESS)"),
                    None => String::new(),
                };
                format!(
                    "an ordinary network is used only if its interface is named, such as OXSHMEM_OFI_INTERFACE=eth0, or joins the \
                     hosts of oxshmem run --hosts; there are {others}{launcher}{hidden}"
                )
            }
            _ => format!(
                "libfabric {}.{} has none of the providers {} with an interface here{hidden}; fi_info lists those that \
                 there are",
                version.0,
                version.1,
                named.join(", ")
            ),
        }
    }
}

/// Whether an interface may be used. Those of ordinary networks are named, or are the one by which the launcher has joined the
/// hosts.
fn is_allowed(settings: &Settings, facts: &Facts) -> bool {
    let Some(interfaces) = &settings.interfaces else {
        let joins = settings.host_address.is_some() && settings.host_address == facts.address;
        return joins || !facts.is_ordinary_network();
    };
    let names = [facts.domain.as_str(), facts.nic.as_deref().unwrap_or("")];
    interfaces
        .iter()
        .any(|one| one.includes(&names, facts.address))
}

fn describe(facts: &Facts) -> String {
    match facts.address {
        Some(address) => format!("{} ({address})", facts.domain),
        None => facts.domain.clone(),
    }
}

/// A way as users see it. A fabric's NIC has its own name, by which its place in the machine is known.
fn device(facts: &Facts) -> Device {
    let name = match (facts.uses_sockets(), facts.address, &facts.nic) {
        (true, Some(address), _) => format!("{} {address}", facts.domain),
        (false, _, Some(nic)) => nic.clone(),
        _ => facts.domain.clone(),
    };
    let speed = match facts.megabits {
        0 => String::new(),
        megabits => format!(", {} Gb/s", megabits / 1000),
    };
    Device {
        name,
        description: format!(
            "libfabric's provider {} on {}{speed}",
            facts.provider,
            describe(facts)
        ),
        megabits: facts.megabits,
        networks: networks(facts),
    }
}

/// The networks of a way, each of one provider. A fabric joins all its NICs; a network of IP joins those of one subnet, and
/// routers may join subnets.
fn networks(facts: &Facts) -> Vec<Network> {
    let provider = &facts.provider;
    let certain = |name: String| Network {
        name,
        uncertain: false,
    };
    let Some(address) = facts.address else {
        return vec![certain(provider.clone())];
    };
    // All links have the same subnet of such addresses.
    if is_link_local(address) {
        return vec![Network {
            name: format!("{provider} {}", facts.fabric),
            uncertain: true,
        }];
    }
    let mut networks = vec![certain(format!("{provider} {}", facts.fabric))];
    if !facts.is_on_this_host_only() {
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        networks.push(Network {
            name: format!("{provider} over {family}"),
            uncertain: true,
        });
    }
    networks
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Of an interface's addresses, those of the best family: IPv4, else IPv6, else IPv6 within the link.
fn prefer_families(found: &mut Vec<Candidate>) {
    let rank = |facts: &Facts| match facts.address {
        Some(address) if is_link_local(address) => 3,
        Some(IpAddr::V6(_)) => 2,
        _ => 1,
    };
    let of = |candidate: &Candidate| {
        let facts = candidate.info.facts();
        let key = (facts.core_provider().to_owned(), facts.domain.clone());
        (key, rank(facts))
    };
    let ranks: Vec<_> = found.iter().map(of).collect();
    let best = |key: &(String, String)| {
        let same = ranks.iter().filter(|(other, _)| other == key);
        same.map(|(_, rank)| *rank).min()
    };
    let mut keep = ranks.iter().map(|(key, rank)| best(key) == Some(*rank));
    found.retain(|_| keep.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::of_dump;

    fn tcp() -> Facts {
        of_dump(include_str!("../tests/fixtures/tcp-rxm-1.17.txt"))
    }

    #[test]
    fn an_ordinary_network_is_used_only_where_its_interface_is_named() {
        let named = |text: &str| Settings {
            interfaces: Some(vec![Interface::Name(text.into())]),
            ..Settings::default()
        };
        assert!(!is_allowed(&Settings::default(), &tcp()));
        assert!(is_allowed(&named("eth0"), &tcp()));
        assert!(!is_allowed(&named("eth1"), &tcp()));
        let fabric = Facts {
            provider: "cxi".into(),
            domain: "cxi0".into(),
            address: None,
            ..tcp()
        };
        assert!(is_allowed(&Settings::default(), &fabric));
        assert!(!is_allowed(&named("eth0"), &fabric));
        // Providers that may use sockets where they have no NIC, and those that nobody here knows.
        for provider in ["psm3", "ucx", "net", "udp;ofi_rxd", "sockets", "lnx", "new"] {
            let facts = Facts {
                provider: provider.into(),
                domain: "psm3_0".into(),
                address: None,
                ..tcp()
            };
            assert!(!is_allowed(&Settings::default(), &facts), "{provider}");
            assert!(is_allowed(&named("psm3_0"), &facts), "{provider}");
        }
        for provider in ["efa", "opx", "psm2", "verbs;ofi_rxm", "shm", "sm2"] {
            let facts = Facts {
                provider: provider.into(),
                ..tcp()
            };
            assert!(is_allowed(&Settings::default(), &facts), "{provider}");
        }
    }

    #[test]
    fn the_interface_by_which_the_launcher_joined_the_hosts_counts_as_named_unless_others_are() {
        let at = |address: [u8; 4]| Settings {
            host_address: Some(address.into()),
            ..Settings::default()
        };
        assert!(is_allowed(&at([192, 0, 2, 2]), &tcp()));
        assert!(!is_allowed(&at([192, 0, 2, 3]), &tcp()));
        let other = Settings {
            interfaces: Some(vec![Interface::Name("eth1".into())]),
            ..at([192, 0, 2, 2])
        };
        assert!(!is_allowed(&other, &tcp()));
    }

    #[test]
    fn net_comes_before_tcp_unless_atomics_of_the_provider_are_wanted() {
        let place = |list: &[&str], name| list.iter().position(|one| *one == name);
        for atomics in [Atomics::Auto, Atomics::Messages] {
            let list = defaults(atomics);
            assert!(place(&list, "net").unwrap() < place(&list, "tcp").unwrap());
        }
        let list = defaults(Atomics::Provider);
        assert!(place(&list, "net").is_none() && place(&list, "tcp").is_some());
    }

    #[test]
    fn a_subnet_joins_for_certain_and_routers_may_join_more() {
        let device = device(&tcp());
        assert_eq!(device.name, "eth0 192.0.2.2");
        let names: Vec<_> = device
            .networks
            .iter()
            .map(|n| (&*n.name, n.uncertain))
            .collect();
        assert_eq!(
            names,
            [
                ("tcp;ofi_rxm 192.0.2.0/24", false),
                ("tcp;ofi_rxm over IPv4", true)
            ]
        );
    }

    #[test]
    fn addresses_of_one_link_join_hosts_perhaps_as_every_link_has_the_same() {
        let facts = Facts {
            fabric: "fe80::/64".into(),
            address: "fe80::1".parse().ok(),
            ..tcp()
        };
        let networks = device(&facts).networks;
        assert!(networks.len() == 1 && networks[0].uncertain, "{networks:?}");
    }

    #[test]
    fn a_search_without_result_says_what_there_is_and_what_to_set() {
        let search = Search {
            others: vec!["eth0 (192.0.2.2)".into()],
            ..Search::default()
        };
        let explain = |settings: &Settings| search.explain(settings, &["tcp"], (1, 17));
        let why = explain(&Settings::default());
        assert!(
            why.contains("OXSHMEM_OFI_INTERFACE=eth0")
                && why.contains("there are eth0 (192.0.2.2)"),
            "{why}"
        );
        let wrong = Settings {
            interfaces: Some(vec![Interface::Name("eth7".into())]),
            ..Settings::default()
        };
        let why = explain(&wrong);
        assert!(why.contains("no interface is eth7"), "{why}");
        let hidden = Settings {
            hidden_by: Some("verbs".into()),
            ..Settings::default()
        };
        let why = Search::default().explain(&hidden, &["tcp"], (1, 17));
        assert!(
            why.contains("FI_PROVIDER=verbs") && why.contains("tcp"),
            "{why}"
        );
    }
}
