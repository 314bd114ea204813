//! One word, hit at once by PEs of every kind: the one that has it, one that maps it, and those of
//! another host, whose way is a lane and messages (M28, M29).

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use oxshmem::{AtomicBits, AtomicInt, Atomics, Builder, Cmp, Hints, Result, SignalOp, Sym, World};
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::Transport;

use crate::setting::{DEADLINE, HEAP, on_each};

const PES: usize = 4;

/// Two hosts of two PEs each, which map each other's memory within a host only.
fn two_hosts(atomics: Atomics) -> Vec<Builder> {
    let transports: Vec<Arc<dyn Transport>> =
        vec![Arc::new(Loopback::new()), Arc::new(Tiny::nic())];
    let builder = World::builder()
        .transports(transports)
        .atomics(atomics)
        .timeout(DEADLINE)
        .heap_limit(HEAP);
    let hosts = ["near", "near", "far", "far"];
    hosts.map(|host| builder.clone().host_id(host)).to_vec()
}

/// Words of both widths.
trait Number: AtomicInt + AtomicBits + Copy + PartialEq + Debug + oxshmem::Waitable {
    fn of(value: u64) -> Self;
    fn value(self) -> u64;
}

impl Number for u32 {
    fn of(value: u64) -> u32 {
        value as u32
    }
    fn value(self) -> u64 {
        self.into()
    }
}

impl Number for u64 {
    fn of(value: u64) -> u64 {
        value
    }
    fn value(self) -> u64 {
        self
    }
}

const ROUNDS: u64 = 60;
/// The words of a block: what each is for.
const SUM: usize = 0;
const TICKETS: usize = 1;
const OR_AND: usize = 2;
const LATE_OR_AND: usize = 3;
const XOR: usize = 4;
const SWAP: usize = 5;
const COMPARE: usize = 6;
/// One word for each PE that sets it while the others add.
const SET: usize = 7;
const WORDS: usize = SET + PES;
/// Values that are set are multiples of this; the sum of all that is added stays below it.
const TAG: u64 = 1 << 20;

/// The state that the PEs of one test share.
#[derive(Default)]
struct Shared {
    /// The sum of the values swapped in, less the sum of those swapped out.
    swapped: AtomicU64,
    /// How many have set their words.
    set: AtomicUsize,
}

/// Every PE changes the words at one PE by every operation.
fn hit<T: Number>(world: &World, x: Sym<T>, at: usize, shared: &Shared) -> Result<()> {
    let me = world.my_pe();
    let word = |index: usize| x.at(index);
    let bit = T::of(1 << (5 * me));
    let not = T::of(!(1_u64 << (5 * me)));
    let is_up = |value: T| value.value() & bit.value() != 0;
    let mut ticket = None;
    for round in 0..ROUNDS {
        world.add(word(SUM)?, T::of(1), at)?;
        world.fetch_add(word(SUM)?, T::of(2), at)?;
        world.inc(word(SUM)?, at)?;

        let drawn = world.fetch_inc(word(TICKETS)?, at)?.value();
        assert!(ticket.is_none_or(|last| last < drawn), "{ticket:?} {drawn}");
        ticket = Some(drawn);

        assert!(!is_up(world.fetch_or(word(OR_AND)?, bit, at)?));
        assert!(is_up(world.fetch_and(word(OR_AND)?, not, at)?));
        world.or(word(LATE_OR_AND)?, bit, at)?;
        world.fence()?;
        assert!(is_up(world.fetch(word(LATE_OR_AND)?, at)?));
        world.and(word(LATE_OR_AND)?, not, at)?;
        world.xor(word(XOR)?, bit, at)?;
        world.fence()?;
        assert!(is_up(world.fetch_xor(word(XOR)?, bit, at)?));

        let put = (me as u64 + 1) * 1000 + round;
        let taken = world.swap(word(SWAP)?, T::of(put), at)?.value();
        shared
            .swapped
            .fetch_add(put.wrapping_sub(taken), Ordering::SeqCst);

        let mut known = world.fetch(word(COMPARE)?, at)?;
        loop {
            let next = T::of(known.value() + 1);
            let old = world.compare_swap(word(COMPARE)?, known, next, at)?;
            if old == known {
                break;
            }
            known = old;
        }
    }
    for setter in 0..PES {
        let word = word(SET + setter)?;
        if setter == me {
            for round in 1..=ROUNDS {
                world.set(word, T::of(round * TAG), at)?;
                world.quiet()?;
                let seen = world.fetch(word, at)?.value();
                assert_eq!(seen / TAG, round, "what PE {me} has set is gone");
            }
            shared.set.fetch_add(1, Ordering::SeqCst);
        }
        // The others add for as long as one sets.
        let since = Instant::now();
        while shared.set.load(Ordering::SeqCst) <= setter {
            assert!(since.elapsed() < DEADLINE, "PE {setter} sets no more");
            world.fetch_add(word, T::of(1), at)?;
        }
    }
    world.quiet()?;
    if me == at {
        // Its wait sees what others' ways have done.
        let all = T::of(4 * ROUNDS * PES as u64);
        world.wait_until(word(SUM)?, Cmp::Eq, all)?;
    }
    world.barrier_all()?;
    if me == at {
        let mut end = vec![T::of(0); WORDS];
        world.read(&mut end, x)?;
        let all = ROUNDS * PES as u64;
        let kept = T::of(shared.swapped.load(Ordering::SeqCst));
        let (sum, none) = (T::of(4 * all), T::of(0));
        let expected = [sum, T::of(all), none, none, none, kept, T::of(all)];
        assert_eq!(end[..SET], expected);
        assert!(end[SET..].iter().all(|set| set.value() / TAG == ROUNDS));
    }
    world.barrier_all()
}

fn each_width_and_operation(atomics: Atomics, hints: Hints) {
    let shared: Vec<Shared> = (0..2 * PES).map(|_| Shared::default()).collect();
    on_each(two_hosts(atomics), |world| {
        for at in [0, 3] {
            let wide = world.alloc_with_hints::<u64>(WORDS, hints)?;
            let narrow = world.alloc_with_hints::<u32>(WORDS, hints)?;
            world.write(wide, &[0; WORDS])?;
            world.write(narrow, &[0; WORDS])?;
            world.barrier_all()?;
            hit(world, wide, at, &shared[at])?;
            hit(world, narrow, at, &shared[PES + at])?;
            world.free(narrow)?;
            world.free(wide)?;
        }
        Ok(())
    });
}

#[test]
fn m28_m29_every_atomic_excludes_every_other_whoever_does_it_in_the_cpus_domain() {
    each_width_and_operation(Atomics::Auto, Hints::NONE);
}

#[test]
fn m28_m29_every_atomic_excludes_every_other_whoever_does_it_in_the_nics_domain() {
    each_width_and_operation(Atomics::Auto, Hints::ATOMICS_REMOTE);
}

#[test]
fn m28_m29_every_atomic_excludes_every_other_where_all_are_the_cpus() {
    each_width_and_operation(Atomics::Cpu, Hints::ATOMICS_REMOTE);
}

#[test]
fn m28_m29_every_atomic_excludes_every_other_where_all_wide_ones_are_nics() {
    each_width_and_operation(Atomics::Nic, Hints::NONE);
}

#[test]
fn m22_m28_signals_of_both_hosts_add_up_and_come_after_their_data() {
    for hints in [Hints::NONE, Hints::ATOMICS_REMOTE] {
        on_each(two_hosts(Atomics::Auto), |world| {
            let me = world.my_pe();
            let signals = world.alloc_with_hints::<u64>(PES + 1, hints)?;
            let data = world.alloc_zeroed::<u64>(100 * PES)?;
            world.write(signals, &[0; PES + 1])?;
            world.barrier_all()?;
            let mine = data.range(100 * me..100 * (me + 1))?;
            for round in 1..=ROUNDS {
                for at in 0..PES {
                    let own = signals.at(me)?;
                    world.put_signal(mine, &[round; 100], own, 1, SignalOp::Add, at)?;
                    world.signal_add(signals.at(PES)?, 1, at)?;
                }
                for from in 0..PES {
                    let seen = world.signal_wait_until(signals.at(from)?, Cmp::Ge, round)?;
                    let mut copy = [0; 100];
                    world.read(&mut copy, data.range(100 * from..100 * (from + 1))?)?;
                    // The sender may be a round ahead by now, never behind.
                    assert!(copy.iter().all(|v| *v >= seen.min(round)), "{copy:?}");
                }
            }
            let all = ROUNDS * PES as u64;
            world.signal_wait_until(signals.at(PES)?, Cmp::Eq, all)?;
            world.barrier_all()?;
            world.free(data)?;
            world.free(signals)
        });
    }
}

#[test]
fn m17_an_atomic_of_either_domain_comes_before_what_follows_its_fence() {
    for hints in [Hints::NONE, Hints::ATOMICS_REMOTE] {
        on_each(two_hosts(Atomics::Auto), |world| {
            let x = world.alloc_with_hints::<u64>(1, hints)?;
            let flag = world.alloc_zeroed::<u64>(2)?;
            world.write(x, &[0])?;
            world.barrier_all()?;
            for round in 1..=10 * ROUNDS {
                match world.my_pe() {
                    0 => {
                        world.wait_until(flag.at(0)?, Cmp::Eq, round)?;
                        assert_eq!(world.fetch(x, 0)?, round);
                        world.p(flag.at(1)?, round, 2)?;
                    }
                    2 => {
                        world.add(x, 1, 0)?;
                        world.fence()?;
                        world.p(flag.at(0)?, round, 0)?;
                        world.wait_until(flag.at(1)?, Cmp::Eq, round)?;
                    }
                    _ => break,
                }
            }
            world.barrier_all()?;
            world.free(flag)?;
            world.free(x)
        });
    }
}
