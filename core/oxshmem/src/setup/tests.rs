//! Tests of joining over several transports that reach the same memory, and of settings that differ.

use std::any::Any;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::nic_filter::Nics;
use oxshmem_bootstrap::{Bootstrap, InProcess};
use oxshmem_heap::Mapping;
use oxshmem_loopback::Loopback;
use oxshmem_transport::{
    AtomicLevel, AtomicTable, Capabilities, Device, Domain, Error, HostId, Job, MemoryKind,
    Network, Peer, Reach, RegionId, RemoteRegion, Result, Transport, forward,
};

use crate::builder::Builder;
use crate::config::Config;
use crate::options::Overrides;
use crate::registry::spec::Spec;
use crate::testing::spmd_with;
use crate::world::World;

/// Loopback, but its atomics are not the CPU's. Maps host memory at addresses of its own, or not at
/// all.
#[derive(Debug)]
struct Bridge {
    name: &'static str,
    maps: bool,
}

#[derive(Debug)]
struct BridgeDomain {
    maps: bool,
    capabilities: Capabilities,
    inner: Arc<dyn Domain>,
}

// SAFETY: its mappings are a shared memory's, kept by the value of keep_alive; all else is loopback's.
unsafe impl Transport for Bridge {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Result<Vec<Device>> {
        Loopback::new().probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let inner = Loopback::new().open(device, job)?;
        Ok(Arc::new(BridgeDomain {
            maps: self.maps,
            capabilities: Capabilities {
                atomics: AtomicTable::uniform(AtomicLevel::Nic),
                ..inner.capabilities().clone()
            },
            inner,
        }))
    }
}

impl Domain for BridgeDomain {
    forward!(address, guarantees, lane, peer_lost, register, shutdown => inner);

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match self.inner.reach(peer, kind) {
            Reach::Mapped { .. } if !self.maps => Reach::Remote,
            Reach::Mapped { .. } => Reach::Mapped { descriptor: true },
            reach => reach,
        }
    }

    fn wants_descriptor(&self, _: &Peer, _: MemoryKind) -> bool {
        true
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let fd = descriptor.as_ref().and_then(|fd| fd.try_clone().ok());
        let region = self.inner.import(peer, region, key, descriptor)?;
        let len = region.len();
        let mapping = fd.filter(|_| self.maps);
        let mapping = mapping.map(|fd| Arc::new(Mapping::of_descriptor(fd.as_fd(), len).unwrap()));
        Ok(Arc::new(BridgeRegion(mapping, region)))
    }
}

#[derive(Debug)]
struct BridgeRegion(Option<Arc<Mapping>>, Arc<dyn RemoteRegion>);

impl RemoteRegion for BridgeRegion {
    fn mapped(&self) -> Option<NonNull<u8>> {
        Some(self.0.as_ref()?.base())
    }

    fn len(&self) -> usize {
        self.1.len()
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        match &self.0 {
            Some(mapping) => Arc::clone(mapping) as _,
            None => self.1.keep_alive(),
        }
    }
}

/// The bridge, on a host where it cannot be opened.
#[derive(Debug)]
struct Unplugged;

// SAFETY: nothing comes from it.
unsafe impl Transport for Unplugged {
    fn name(&self) -> &'static str {
        "bridge"
    }

    fn probe(&self) -> Result<Vec<Device>> {
        Err(Error::Unavailable {
            transport: "bridge",
            why: "its port is down; plug the cable in".into(),
        })
    }

    fn open(&self, _: &Device, _: &Job) -> Result<Arc<dyn Domain>> {
        self.probe()?;
        unreachable!("its probe finds nothing")
    }
}

fn over(transports: Vec<Arc<dyn Transport>>) -> Builder {
    let builder = World::builder().transports(transports);
    builder.timeout(std::time::Duration::from_secs(60))
}

#[test]
fn m29_atomics_go_through_the_mapping_of_the_transport_that_has_those_of_a_cpu() {
    let bridge = Bridge {
        name: "bridge",
        maps: true,
    };
    let builder = over(vec![Arc::new(bridge), Arc::new(Loopback::new())]);
    spmd_with(builder, 2, |world| {
        let (me, other) = (world.my_pe(), 1 - world.my_pe());
        let routes = world.explain(other)?;
        assert_eq!(routes.host.transport, Some("bridge"));
        assert_eq!(routes.host_atomics.transport, Some("loopback"));
        let word = world.alloc::<u64>(1)?;
        let homes = world.alloc::<u64>(2)?;
        let home = world.pe.engine.own_base().as_ptr() as u64 + word.offset();
        for pe in 0..2 {
            world.p(homes.at(me)?, home, pe)?;
        }
        world.barrier_all()?;
        // Loopback has the memory of a PE of this process at the PE's own address, the bridge at another.
        let home = world.g(homes.at(other)?, me)?;
        let copies = world.worker.peers.span(word, other).unwrap();
        let atomics = world.worker.peers.word(word, other).unwrap();
        assert_eq!(atomics.as_ptr() as u64, home);
        assert_ne!(copies.as_ptr() as u64, home);
        world.p(word, 40, other)?;
        world.barrier_all()?;
        assert_eq!(world.fetch_add(word, 2, other)?, 40);
        world.barrier_all()?;
        assert_eq!(world.g(word, me)?, 42);
        Ok(())
    })
    .unwrap();
}

#[test]
fn m29_a_pe_does_atomics_on_its_own_memory_by_its_cpu_whatever_transports_are_open() {
    for maps in [true, false] {
        for check in [true, false] {
            let bridge = Bridge {
                name: "bridge",
                maps,
            };
            let builder = over(vec![Arc::new(bridge)]).check(check);
            spmd_with(builder, 2, |world| {
                let (me, other) = (world.my_pe(), 1 - world.my_pe());
                let word = world.alloc::<u64>(1)?;
                world.set(word, 40, me)?;
                assert_eq!(world.fetch_add(word, 2, me)?, 40);
                assert_eq!(world.g(word, me)?, 42);
                assert!(world.fetch_add(word, 2, other).is_err());
                let routes = world.explain(me)?;
                let own = |route: &crate::Route| {
                    let last = route.considered.last().unwrap();
                    assert_eq!(route.transport, Some("self"), "{routes:?}");
                    assert_eq!(last.answer, "chosen: own memory");
                    assert!(route.mapped);
                };
                own(&routes.host_atomics);
                if !maps {
                    own(&routes.host);
                    let routes = world.explain(other)?;
                    assert!(!routes.host.mapped, "{routes:?}");
                }
                world.barrier_all()
            })
            .unwrap();
        }
    }
}

/// The error of joining at each PE, if each has settings of its own.
fn errors(configs: [Config; 2]) -> [Option<String>; 2] {
    let group = InProcess::group(2);
    std::thread::scope(|threads| {
        let mut pes = group.into_iter().zip(configs).map(|(bootstrap, config)| {
            threads.spawn(move || {
                let overrides = Overrides {
                    bootstrap: Some(bootstrap as Arc<_>),
                    ..Overrides::default()
                };
                let config = Config {
                    heap_limit: Some(4 << 20),
                    ..config
                };
                super::join(config, &[], overrides)
                    .err()
                    .map(|e| e.to_string())
            })
        });
        let pes = [pes.next(), pes.next()];
        pes.map(|pe| pe.unwrap().join().unwrap())
    })
}

#[test]
fn a_transport_that_the_other_pe_could_not_open_is_refused_with_its_reason() {
    let group = InProcess::group(2);
    let errors = std::thread::scope(|threads| {
        let pes = group.into_iter().enumerate().map(|(pe, bootstrap)| {
            threads.spawn(move || {
                let transport: Arc<dyn Transport> = match pe {
                    0 => Arc::new(Bridge {
                        name: "bridge",
                        maps: false,
                    }),
                    _ => Arc::new(Unplugged),
                };
                let overrides = Overrides {
                    bootstrap: Some(bootstrap as Arc<_>),
                    transports: Some(vec![transport]),
                    ..Overrides::default()
                };
                super::join(Config::default(), &[], overrides)
                    .err()
                    .map(|e| e.to_string())
            })
        });
        let pes: Vec<_> = pes.collect();
        pes.into_iter()
            .map(|pe| pe.join().unwrap())
            .collect::<Vec<_>>()
    });
    let error = errors[0].as_deref().unwrap();
    assert!(
        error.contains(
            "has not opened it: bridge: not available here: its port is down; plug the cable in"
        ),
        "{error}"
    );
}

/// A NIC's transport for PEs of this process that play hosts. Devices reach each other within one network.
#[derive(Debug)]
struct Fabric {
    /// Names of devices, each with its network, its Gb/s and whether it can be opened.
    devices: Vec<(&'static str, &'static str, u32, bool)>,
}

#[derive(Debug)]
struct FabricDomain {
    network: &'static str,
    host: HostId,
    inner: Arc<dyn Domain>,
}

// SAFETY: all memory is loopback's.
unsafe impl Transport for Fabric {
    fn name(&self) -> &'static str {
        "fabric"
    }

    fn probe(&self) -> Result<Vec<Device>> {
        let device = |(name, network, gigabits, _): &(&str, &str, u32, bool)| Device {
            name: (*name).into(),
            description: String::new(),
            megabits: gigabits * 1000,
            networks: vec![Network {
                name: (*network).into(),
                uncertain: false,
            }],
        };
        Ok(self.devices.iter().map(device).collect())
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let found = self.devices.iter().find(|known| known.0 == device.name);
        let (_, network, _, opens) = *found.unwrap();
        if !opens {
            return Err(Error::Unavailable {
                transport: "fabric",
                why: "its firmware does not answer".into(),
            });
        }
        let loopback = Loopback::new();
        let memory = loopback.probe()?.remove(0);
        Ok(Arc::new(FabricDomain {
            network,
            host: job.host.clone(),
            inner: loopback.open(&memory, job)?,
        }))
    }
}

impl FabricDomain {
    /// The peer as loopback knows it, if it is in this network.
    fn inner_peer(&self, peer: &Peer) -> Option<Peer> {
        let address = peer.address.as_deref()?;
        Some(Peer {
            host: self.host.clone(),
            address: Some(address.strip_prefix(self.network.as_bytes())?.to_vec()),
            ..peer.clone()
        })
    }
}

impl Domain for FabricDomain {
    forward!(capabilities, guarantees, lane, peer_lost, register, shutdown => inner);

    fn address(&self) -> Vec<u8> {
        [self.network.as_bytes(), &self.inner.address()].concat()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match self.inner_peer(peer) {
            Some(peer) => self.inner.reach(&peer, kind),
            None => Reach::None("its network is another".into()),
        }
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let peer = self.inner_peer(peer).unwrap();
        self.inner.import(&peer, region, key, descriptor)
    }
}

const IB: (&str, &str, u32, bool) = ("ib0:1", "InfiniBand fe80::/64", 400, true);
const LOM: (&str, &str, u32, bool) = ("lom0:1", "RoCE 10.0.0.0/24", 25, true);

/// The device that each PE opens and the reason, or its error: one PE on each host, with these devices and settings.
fn devices_of_hosts<const N: usize>(
    hosts: [Vec<(&'static str, &'static str, u32, bool)>; N],
    nics: &Nics,
) -> [std::result::Result<(String, String), String>; N] {
    let mut group = InProcess::group(N as u32).into_iter();
    std::thread::scope(|threads| {
        let pes = hosts.map(|devices| {
            let bootstrap = group.next().unwrap();
            threads.spawn(move || {
                let overrides = Overrides {
                    transports: Some(vec![Arc::new(Fabric { devices })]),
                    bootstrap: Some(Arc::clone(&bootstrap) as Arc<_>),
                    ..Overrides::default()
                };
                let config = Config {
                    heap_limit: Some(4 << 20),
                    host_id: Some(format!("host{}", bootstrap.rank())),
                    nics: nics.clone(),
                    ..Config::default()
                };
                let setup = super::join(config, &[], overrides).map_err(|e| e.to_string())?;
                let opened = setup.peers.routes.opened.first().unwrap();
                let choice = opened.choice.as_deref().unwrap_or_default();
                Ok((opened.device.to_string(), choice.to_owned()))
            })
        });
        pes.map(|pe| pe.join().unwrap())
    })
}

#[test]
fn hosts_whose_first_nics_are_of_two_fabrics_meet_in_the_wider_one() {
    let hosts = [vec![IB, LOM], vec![LOM, IB]];
    for opened in devices_of_hosts(hosts, &Nics::Any) {
        let (device, choice) = opened.unwrap();
        assert_eq!(device, "ib0:1");
        let told = "in InfiniBand fe80::/64, in which every PE has a device (400 Gb/s a host); \
                    not in RoCE 10.0.0.0/24 (25 Gb/s a host)";
        assert!(choice.contains(told), "{choice}");
        assert!(choice.contains("one of 1, as near"), "{choice}");
    }
}

#[test]
fn a_host_with_one_nic_draws_the_others_into_its_network() {
    let hosts = [vec![IB, LOM], vec![LOM], vec![LOM, IB]];
    for opened in devices_of_hosts(hosts, &Nics::Any) {
        assert_eq!(opened.unwrap().0, "lom0:1");
    }
}

#[test]
fn nics_that_the_user_names_are_taken_though_another_network_is_wider() {
    for nics in [
        Nics::parse_list("lom0"),
        Nics::parse_list("^ib0"),
        Nics::parse_map("lom0:1:1"),
    ] {
        for opened in devices_of_hosts([vec![IB, LOM], vec![LOM, IB]], &nics.unwrap()) {
            assert_eq!(opened.unwrap().0, "lom0:1");
        }
    }
}

#[test]
fn a_nic_that_cannot_be_opened_gives_way_to_another_of_its_network() {
    let broken = ("ib1:1", "InfiniBand fe80::/64", 400, false);
    let hosts = [vec![broken, IB, LOM], vec![LOM, IB]];
    let [first, second] = devices_of_hosts(hosts, &Nics::Any);
    let (device, choice) = first.unwrap();
    assert_eq!(device, "ib0:1");
    assert!(
        choice.contains("ib1:1: fabric: not available here: its firmware"),
        "{choice}"
    );
    assert_eq!(second.unwrap().0, "ib0:1");
}

#[test]
fn hosts_without_a_common_network_are_told_which_device_is_where() {
    for error in devices_of_hosts([vec![IB], vec![LOM]], &Nics::Any) {
        let error = error.unwrap_err();
        let words = [
            "its network is another",
            "ib0:1 of host host0 is in InfiniBand fe80::/64",
            "lom0:1 of host host1 is in RoCE 10.0.0.0/24",
            "OXSHMEM_NIC",
        ];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn a_map_of_nics_with_too_few_places_is_told_to_every_pe_of_the_host() {
    let config = || Config {
        nics: Nics::parse_map("memory:1").unwrap(),
        ..Config::default()
    };
    for error in errors([config(), config()]) {
        let error = error.unwrap();
        let has_counts = error.contains("places for 1 PEs, and this host has 2");
        assert!(has_counts && error.contains("OXSHMEM_NIC_MAP"), "{error}");
    }
}

#[test]
fn pes_whose_seeds_or_lists_of_transports_differ_are_told_both() {
    let seeds = |seed| Config {
        seed,
        ..Config::default()
    };
    let lists = |list| Config {
        transports: Some(Spec::parse_list(list).unwrap()),
        ..Config::default()
    };
    for (configs, words) in [
        ([seeds(7), seeds(8)], ["OXSHMEM_SEED", "7", "8"]),
        (
            [lists("loopback"), lists("weak(loopback)")],
            ["OXSHMEM_TRANSPORT", "\"loopback\"", "weak(loopback)"],
        ),
    ] {
        for error in errors(configs) {
            let error = error.unwrap();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
    }
}
