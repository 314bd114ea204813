//! M22: data by one path, its signal by another; and NICs' reads of this PE's own memory.

use oxshmem::{Cmp, FenceSite, MemoryKind, SignalOp};
use oxshmem_transport::SignalSupport;

use crate::explore::{Found, Seen, explore};
use crate::path::{Class, NICS, Path, Setup, Slot};

const DATA: [Path; 3] = [Path::Store, Path::Put, Path::Copy];
const SIGNALS: [Path; 3] = [Path::Store, Path::Atomic, Path::Message];

/// The slots of the data and of the signal.
pub fn slots(setup: &Setup, [data, word]: [Path; 2]) -> [Slot; 2] {
    let word = Slot {
        path: word,
        kind: MemoryKind::Host,
        class: Class::Atomic,
    };
    [setup.slot(data), word]
}

/// Every pair of paths of the data and of the signal, with every NIC, with and without its own puts
/// with signal.
pub fn every_setup(pes: usize, mut poll: impl FnMut(&Setup, [Path; 2], String)) {
    for data in DATA {
        for word in SIGNALS {
            for (name, nic) in NICS {
                for native in [true, false] {
                    let mut setup = Setup::new(pes, &[data, word]);
                    setup.nic = nic;
                    if !native {
                        setup.put_signal = SignalSupport::None;
                    }
                    let what = format!("{data:?}, {word:?}, NIC {name}, native {native}");
                    poll(&setup, [data, word], what);
                }
            }
        }
    }
}

/// Checks that the order breaks if the library leaves it out, where NICs have no puts with signal
/// of their own.
pub fn breaks_without(
    pes: usize,
    (inserted, data, word): (FenceSite, Path, Path),
    run: impl FnOnce(&Setup, [Path; 2], u64) -> Found,
) {
    let mut setup = Setup::new(pes, &[data, word]);
    setup.put_signal = SignalSupport::None;
    setup.omit = Some(inserted);
    let found = run(&setup, [data, word], 3000);
    let what = format!("{data:?}, {word:?} without {inserted:?}");
    assert!(found.broken.is_some(), "{what}: {found:?}");
}

fn put_signal(setup: &Setup, paths: [Path; 2], op: SignalOp, runs: u64) -> Found {
    let [data, signal] = slots(setup, paths);
    explore(
        setup,
        runs,
        |world| {
            data.confirm_0_to_1(world);
            signal.confirm_0_to_1(world);
        },
        |at| {
            let (x, y) = (at.words(data.kind, 0..2)?, at.word(signal.kind, 2)?);
            if at.me == 0 {
                at.world.put_signal(x, &[1, 1], y, 1, op, 1)?;
                return Ok(Seen::Nothing);
            }
            at.world.signal_wait_until(y, Cmp::Eq, 1)?;
            let mut words = [0; 2];
            at.world.read(&mut words, x)?;
            Ok(Seen::held(words == [1, 1]))
        },
    )
}

#[test]
fn m22_a_signal_is_seen_after_its_data_whatever_the_ways() {
    every_setup(2, |setup, paths, what| {
        for op in [SignalOp::Set, SignalOp::Add] {
            let found = put_signal(setup, paths, op, 40);
            assert!(found.broken.is_none(), "{what}: {found:?}");
            assert_eq!(found.held, 40, "{what}");
        }
    });
}

#[test]
fn m22_each_order_that_a_signal_needs_is_needed() {
    for needed in [
        (FenceSite::Signal, Path::Store, Path::Store),
        (FenceSite::Doorbell, Path::Store, Path::Atomic),
        (FenceSite::Doorbell, Path::Store, Path::Message),
        (FenceSite::SignalLane, Path::Put, Path::Atomic),
        (FenceSite::SignalLane, Path::Put, Path::Store),
        (FenceSite::SignalLane, Path::Put, Path::Message),
        (FenceSite::SignalLane, Path::Copy, Path::Store),
        (FenceSite::SignalLane, Path::Copy, Path::Message),
    ] {
        breaks_without(2, needed, |setup, paths, runs| {
            put_signal(setup, paths, SignalOp::Set, runs)
        });
    }
}

/// PE 0 stores to its own memory, and puts those words by the NIC.
fn put_of_own_words(omit: Option<FenceSite>, runs: u64) -> Found {
    let mut setup = Setup::new(2, &[Path::Put, Path::Put]);
    // The NIC reads the source only when it executes the request.
    setup.inline = 0;
    setup.omit = omit;
    let put = setup.slot(Path::Put);
    explore(
        &setup,
        runs,
        |world| put.confirm_0_to_1(world),
        |at| {
            let word = |index| at.word(MemoryKind::Host, index);
            let (x, source, y) = (word(0)?, word(1)?, word(2)?);
            if at.me == 0 {
                at.world.write(source, &[1])?;
                at.world.put_from(x, source, 1)?;
                at.world.fence()?;
                at.world.p(y, 1, 1)?;
                return Ok(Seen::Nothing);
            }
            at.world.wait_until(y, Cmp::Eq, 1)?;
            Ok(Seen::held(at.world.g(x, 1)? == 1))
        },
    )
}

#[test]
fn m15_a_nic_puts_what_this_pe_has_stored_before() {
    let found = put_of_own_words(None, 300);
    assert!(found.broken.is_none() && found.held == 300, "{found:?}");
    let found = put_of_own_words(Some(FenceSite::Doorbell), 3000);
    assert!(found.broken.is_some(), "{found:?}");
}
