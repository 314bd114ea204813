//! PEs of several hosts that cannot register their heaps with a transport: the job takes another, or ends everywhere.

use std::sync::Arc;

use oxshmem::{Atomics, Builder, Result, World};
use oxshmem_example_tiny_transport::{Step, Tiny};
use oxshmem_transport::{Device, Domain, Job, Pe, RegionId, Transport};

use crate::setting::{DEADLINE, ends, on_each};

const MIB: usize = 1 << 20;
const PES: usize = 3;

/// The example transport by another name, with a table of its own.
#[derive(Debug)]
struct Slow(Tiny);

// SAFETY: all of it is the example transport's.
unsafe impl Transport for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn probe(&self) -> oxshmem_transport::Result<Vec<Device>> {
        self.0.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> oxshmem_transport::Result<Arc<dyn Domain>> {
        self.0.open(device, job)
    }
}

/// PEs of as many hosts, of which these cannot register their heaps with the transport `tiny`.
fn hosts(refused: &[u32], others: Vec<Arc<dyn Transport>>) -> Vec<Builder> {
    let tiny = Tiny::nic();
    for &pe in refused {
        tiny.refuse(Step::Register, Pe(pe), RegionId(0), true);
    }
    let mut transports: Vec<Arc<dyn Transport>> = vec![Arc::new(tiny)];
    transports.extend(others);
    let builder = World::builder()
        .transports(transports)
        .timeout(DEADLINE)
        .heap_limit(32 * MIB);
    let host = |pe| builder.clone().host_id(format!("host-{pe}"));
    (0..PES).map(host).collect()
}

/// Puts, atomics and growth among all PEs.
fn exchange(world: &World) -> Result<()> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    let sum = world.alloc_zeroed::<u64>(1)?;
    for round in 0..3 {
        // Each time the heap grows into another extent.
        let len = (2 * MIB) << round;
        let words = world.alloc_zeroed::<u64>(len / 8)?;
        let at = |pe: usize| words.range(len / 8 - 100 * (pe + 1)..len / 8 - 100 * pe);
        for pe in 0..pes {
            world.put(at(me)?, &[me as u64 + 1; 100], pe)?;
            world.fetch_add(sum, 1, pe)?;
            world.add(sum, 1, pe)?;
        }
        world.barrier_all()?;
        for pe in 0..pes {
            let mut seen = [0; 100];
            world.get(&mut seen, at(pe)?, (me + 1) % pes)?;
            assert_eq!(seen, [pe as u64 + 1; 100], "of PE {pe}");
        }
        assert_eq!(world.fetch(sum, me)?, 2 * (round + 1) * pes as u64);
        world.barrier_all()?;
    }
    Ok(())
}

#[test]
fn pes_that_cannot_register_take_another_transport_and_the_others_keep_theirs() {
    for atomics in [Atomics::Auto, Atomics::Cpu, Atomics::Nic] {
        for refused in [&[1][..], &[0], &[1, 2], &[0, 1, 2]] {
            let builders = hosts(refused, vec![Arc::new(Slow(Tiny::nic()))]);
            let builders = builders.into_iter().map(|b| b.atomics(atomics));
            on_each(builders.collect(), |world| {
                let me = world.my_pe();
                for pe in (0..PES).filter(|pe| *pe != me) {
                    let failed = |pe: usize| refused.contains(&(pe as u32));
                    let routes = world.explain(pe)?;
                    let expected = match failed(me) || failed(pe) {
                        true => "slow",
                        false => "tiny",
                    };
                    for route in [&routes.host, &routes.host_atomics] {
                        assert_eq!(route.transport, Some(expected), "{me} to {pe}: {route:?}");
                    }
                    let why = &routes.host.considered[0].answer;
                    let told = ["could not register its heap", "refused on demand"];
                    let tells = told.iter().all(|word| why.contains(word));
                    assert_eq!(tells, expected == "slow", "{why}");
                }
                exchange(world)
            });
        }
    }
}

/// Fails unless every PE has an error with all of these words.
fn every_pe_says(words: &[&str], errors: Vec<String>) {
    assert_eq!(errors.len(), PES, "{errors:#?}");
    for error in errors {
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}

#[test]
fn without_another_transport_every_pe_names_the_one_that_could_not_register() {
    let words = [
        "PE 1 cannot be reached from PE 0",
        "the PE could not register its heap",
        "refused on demand",
    ];
    every_pe_says(&words, ends(hosts(&[1], Vec::new()), |_| Ok(())));
}

#[test]
fn atomics_of_nics_that_a_pe_cannot_offer_are_refused_on_every_pe_with_its_reason() {
    let builders = hosts(&[1], vec![Arc::new(Slow(Tiny::default()))]);
    let builders = builders.into_iter().map(|b| b.atomics(Atomics::Nic));
    let words = [
        "OXSHMEM_ATOMICS",
        "PE 1 could not register its heap with tiny",
        "refused on demand",
        "choose auto or cpu",
    ];
    every_pe_says(&words, ends(builders.collect(), |_| Ok(())));
}
