//! M28 and M29: atomics on one word, by CPUs and by lanes.

use oxshmem::{Error, MemoryKind, World};
use oxshmem_transport::{AtomicLevel, AtomicOp, AtomicTable, Width};

use crate::explore::{Seen, explore};
use crate::path::{CPU, Class, NO_ATOMICS, Path, Setup, Slot};

/// PE 0 adds to PE 1's word by its CPU, PE 1 adds to its own, PE 2 from another host by messages.
fn adders(message_atomics: AtomicTable) {
    let mut setup = Setup::new(3, &[Path::Store, Path::Message]);
    setup.hosts = vec![0, 0, 1];
    setup.cpu_atomics = true;
    setup.message_atomics = message_atomics;
    let by = |path| Slot {
        path,
        kind: MemoryKind::Host,
        class: Class::Atomic,
    };
    let confirm = |world: &World| match world.my_pe() {
        2 => by(Path::Message).confirm(world, 1),
        _ => by(Path::Store).confirm(world, 1),
    };
    let found = explore(&setup, 200, confirm, |at| {
        let x = at.word(MemoryKind::Host, 0)?;
        let given = 10_u64.pow(at.me as u32);
        at.world.add(x, given, 1)?;
        let first = at.world.fetch_add(x, given, 1)?;
        let second = at.world.fetch_add(x, given, 1)?;
        at.world.barrier_all()?;
        let in_order = second >= first + given;
        let sum = at.world.fetch(x, 1)?;
        Ok(Seen::held(in_order && sum == 333))
    });
    assert!(found.broken.is_none() && found.held == 600, "{found:?}");
}

#[test]
fn m28_adders_by_cpu_and_by_message_lose_nothing() {
    adders(CPU);
}

#[test]
fn m28_adders_whose_messages_only_compare_and_swap_lose_nothing() {
    let swap = AtomicOp::CompareSwap;
    adders(NO_ATOMICS.with(swap, Width::W64, AtomicLevel::Cpu));
}

#[test]
fn m29_atomics_that_only_a_nic_keeps_exclusive_are_refused_and_told_why() {
    let mut setup = Setup::new(2, &[Path::Put]);
    setup.nic_atomics = AtomicTable::uniform(AtomicLevel::Nic);
    let confirm = |world: &World| {
        let told = world.explain(1 - world.my_pe()).unwrap();
        assert_eq!(told.host.transport, Some("weak(nic)"));
        assert_eq!(told.host_atomics.transport, None);
        let why = told.host_atomics.considered.iter();
        let mut why = why.filter(|c| c.transport == "weak(nic)");
        assert!(why.any(|c| c.answer.contains("(M29)")), "{told:?}");
    };
    let found = explore(&setup, 1, confirm, |at| {
        let x = at.word(MemoryKind::Host, 0)?;
        let other = 1 - at.me;
        let refused = [
            at.world.add(x, 1, other).unwrap_err(),
            at.world.fetch_add(x, 1, other).unwrap_err(),
        ];
        let clear = |error: &Error| {
            matches!(error, Error::Unreachable { .. })
                && error
                    .to_string()
                    .contains("atomics on its host memory as a CPU does")
        };
        // Puts still work.
        at.world.p(x, 1, other)?;
        Ok(Seen::held(refused.iter().all(clear)))
    });
    assert!(found.broken.is_none() && found.held == 2, "{found:?}");
}
