//! Properties of the simulated machine beside the litmus shapes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oxshmem_transport::{AtomicOp, AtomicRequest, Memory, MemoryKind, Pe, Width, conformance};
use oxshmem_weak::{Choices, Environment, Machine, Mode, Seeded, Storage};
use proptest::prelude::*;

const ME: Pe = Pe(0);
const OTHER: Pe = Pe(1);

/// Always the same choice (the last where there are fewer), in a mode that can be changed.
#[derive(Debug)]
struct Always {
    choice: usize,
    mode: Mutex<Mode>,
    asked: AtomicUsize,
}

impl Always {
    fn new(choice: usize, mode: Mode) -> Arc<Always> {
        Arc::new(Always {
            choice,
            mode: Mutex::new(mode),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Choices for Always {
    fn choose(&self, n: usize) -> usize {
        assert!(n >= 2, "nothing to choose");
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.choice.min(n - 1)
    }

    fn mode(&self, _: Pe) -> Mode {
        *self.mode.lock().unwrap()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Store(u64, Vec<u8>),
    StoreWord(u64, Width, u64, bool),
    Load(u64, usize),
    LoadWord(u64, Width),
    Update(u64, Width, AtomicOp, u64, u64),
    Fence(Ordering),
    Drain(usize),
}

fn width() -> impl Strategy<Value = Width> {
    prop::sample::select(&Width::ALL[..])
}

const FENCES: &[Ordering] = &[
    Ordering::Acquire,
    Ordering::Release,
    Ordering::AcqRel,
    Ordering::SeqCst,
];

fn step() -> impl Strategy<Value = Step> {
    let offset = 0..48u64;
    let ops = &AtomicOp::ALL[..];
    let operand = prop_oneof![0..4u64, any::<u64>()];
    prop_oneof![
        4 => (offset.clone(), prop::collection::vec(any::<u8>(), 0..16))
            .prop_map(|(at, bytes)| Step::Store(at, bytes)),
        4 => (0..6u64, width(), any::<u64>(), any::<bool>())
            .prop_map(|(word, width, value, release)| Step::StoreWord(8 * word, width, value, release)),
        4 => (offset, 0..16usize).prop_map(|(at, len)| Step::Load(at, len)),
        2 => (0..12u64, width()).prop_map(|(at, width)| {
            Step::LoadWord(4 * at / width.bytes() as u64 * width.bytes() as u64, width)
        }),
        2 => (0..12u64, width(), prop::sample::select(ops), operand.clone(), operand).prop_map(
            |(at, width, op, operand, compare)| {
                let at = 4 * at / width.bytes() as u64 * width.bytes() as u64;
                Step::Update(at, width, op, operand, compare)
            }
        ),
        1 => prop::sample::select(FENCES).prop_map(Step::Fence),
        6 => any::<usize>().prop_map(Step::Drain),
    ]
}

fn expected(op: AtomicOp, width: Width, old: u64, operand: u64, compare: u64) -> u64 {
    let mask = match width {
        Width::W32 => u64::from(u32::MAX),
        Width::W64 => u64::MAX,
    };
    mask & match op {
        AtomicOp::Fetch => old,
        AtomicOp::Set | AtomicOp::Swap => operand,
        AtomicOp::Add => old.wrapping_add(operand),
        AtomicOp::And => old & operand,
        AtomicOp::Or => old | operand,
        AtomicOp::Xor => old ^ operand,
        AtomicOp::CompareSwap if old == compare & mask => operand,
        AtomicOp::CompareSwap => old,
    }
}

fn word(bytes: &[u8], at: u64, width: Width) -> u64 {
    let at = at as usize;
    let mut word = [0; 8];
    word[..width.bytes()].copy_from_slice(&bytes[at..at + width.bytes()]);
    u64::from_le_bytes(word)
}

fn set_word(bytes: &mut [u8], at: u64, width: Width, value: u64) {
    let at = at as usize;
    bytes[at..at + width.bytes()].copy_from_slice(&value.to_le_bytes()[..width.bytes()]);
}

proptest! {
    /// Whatever drains when, one CPU alone sees its stores, of all sizes, as in plain memory; and
    /// that is what memory holds in the end.
    #[test]
    fn one_cpu_sees_its_own_stores_of_all_sizes_in_order(
        steps in prop::collection::vec(step(), 0..60),
        choice in 0..3usize,
    ) {
        let machine = Machine::new(2, Always::new(choice, Mode::Directed));
        let memory = machine.storage(OTHER, MemoryKind::Host, 64);
        let mut plain = [0u8; 64];
        for step in steps {
            match step {
                Step::Store(at, bytes) => {
                    machine.store(ME, &memory, at, &bytes);
                    plain[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                }
                Step::StoreWord(at, width, value, release) => {
                    let order = if release { Ordering::Release } else { Ordering::Relaxed };
                    machine.store_word(ME, &memory, at, width, value, order);
                    set_word(&mut plain, at, width, value);
                }
                Step::Load(at, len) => {
                    let mut bytes = vec![0; len];
                    machine.load(ME, &memory, at, &mut bytes);
                    prop_assert_eq!(&bytes[..], &plain[at as usize..at as usize + len]);
                }
                Step::LoadWord(at, width) => {
                    let seen = machine.load_word(ME, &memory, at, width, Ordering::Acquire);
                    prop_assert_eq!(seen, word(&plain, at, width));
                }
                Step::Update(at, width, op, operand, compare) => {
                    let request = AtomicRequest { op, width, operand, compare };
                    let old = machine.update(ME, &memory, at, request, Ordering::Relaxed);
                    prop_assert_eq!(old, word(&plain, at, width));
                    set_word(&mut plain, at, width, expected(op, width, old, operand, compare));
                }
                Step::Fence(order) => machine.fence(ME, order),
                Step::Drain(number) => {
                    if let Some(number) = number.checked_rem(machine.steps()) {
                        prop_assert!(machine.step(number).starts_with("CPU 0"));
                    }
                }
            }
        }
        machine.quiesce();
        prop_assert_eq!(machine.steps(), 0);
        let mut bytes = [0; 64];
        machine.nic_read(OTHER, &memory, 0, &mut bytes);
        prop_assert_eq!(bytes, plain);
    }

    /// Operations of NICs alone act as on plain memory, too, without a choice.
    #[test]
    fn nics_act_on_memory_at_once(steps in prop::collection::vec(step(), 0..60)) {
        let choices = Always::new(1, Mode::Directed);
        let machine = Machine::new(2, choices.clone());
        let memory = machine.storage(OTHER, MemoryKind::Cuda, 64);
        let mut plain = [0u8; 64];
        for (step, nic) in steps.into_iter().zip([ME, OTHER].into_iter().cycle()) {
            match step {
                Step::Store(at, bytes) => {
                    machine.nic_write(nic, &memory, at, &bytes);
                    plain[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                }
                Step::Load(at, len) => {
                    let mut bytes = vec![0; len];
                    machine.nic_read(nic, &memory, at, &mut bytes);
                    prop_assert_eq!(&bytes[..], &plain[at as usize..at as usize + len]);
                }
                Step::Update(at, width, op, operand, compare) => {
                    let request = AtomicRequest { op, width, operand, compare };
                    let old = machine.nic_update(nic, &memory, at, request);
                    prop_assert_eq!(old, word(&plain, at, width));
                    set_word(&mut plain, at, width, expected(op, width, old, operand, compare));
                }
                _ => {}
            }
        }
        prop_assert_eq!(choices.asked.load(Ordering::Relaxed), 0);
    }
}

fn load(machine: &Machine, cpu: Pe, memory: &Storage, order: Ordering) -> u64 {
    machine.load_word(cpu, memory, 0, Width::W64, order)
}

#[test]
fn a_tame_machine_is_sequentially_consistent_and_asks_nothing() {
    let choices = Always::new(1, Mode::Tame);
    let machine = Machine::new(2, choices.clone());
    let memory = machine.storage(OTHER, MemoryKind::Cuda, 64);
    for value in 1..100 {
        machine.store_word(ME, &memory, 0, Width::W64, value, Ordering::Relaxed);
        assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), value);
        machine.nic_write(ME, &memory, 0, &(value + 1000).to_le_bytes());
        assert_eq!(
            load(&machine, OTHER, &memory, Ordering::Relaxed),
            value + 1000
        );
    }
    assert_eq!(machine.steps(), 0);
    assert_eq!(choices.asked.load(Ordering::Relaxed), 0);
}

#[test]
fn what_a_run_left_under_way_is_done_when_all_are_tame_again() {
    let choices = Always::new(1, Mode::Directed);
    let machine = Machine::new(2, choices.clone());
    let memory = machine.storage(OTHER, MemoryKind::Host, 64);
    machine.store_word(ME, &memory, 0, Width::W64, 7, Ordering::Relaxed);
    assert_eq!(load(&machine, OTHER, &memory, Ordering::SeqCst), 0);
    *choices.mode.lock().unwrap() = Mode::Tame;
    assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), 7);
    // The next run begins with one truth.
    *choices.mode.lock().unwrap() = Mode::Directed;
    assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), 7);
}

#[test]
fn who_waits_long_enough_sees_the_newest_value() {
    let machine = Machine::new(2, Always::new(1, Mode::Directed));
    let memory = machine.storage(OTHER, MemoryKind::Host, 64);
    machine.nic_write(ME, &memory, 0, &5u64.to_le_bytes());
    assert_eq!(machine.steps(), 0, "nobody has looked");
    assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), 0);
    // As long as stores can drain there is something else to wait for.
    machine.store(ME, &memory, 32, &[1; 16]);
    assert_eq!(machine.steps(), 2);
    machine.fence(ME, Ordering::SeqCst);
    assert_eq!(machine.steps(), 1);
    let said = machine.step(0);
    assert!(said.starts_with("CPU 1 comes to see"), "{said}");
    assert_eq!(machine.steps(), 0);
    assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), 5);
}

#[test]
fn who_has_looked_again_need_not_wait() {
    let machine = Machine::new(2, Always::new(1, Mode::Directed));
    let memory = machine.storage(OTHER, MemoryKind::Host, 64);
    machine.nic_write(ME, &memory, 0, &5u64.to_le_bytes());
    assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), 0);
    assert_eq!(load(&machine, OTHER, &memory, Ordering::SeqCst), 5);
    assert_eq!(machine.steps(), 0);
}

#[test]
fn catching_up_at_one_place_says_nothing_about_another() {
    let machine = Machine::new(2, Always::new(1, Mode::Directed));
    let memory = machine.storage(OTHER, MemoryKind::Host, 64);
    machine.nic_write(ME, &memory, 8, &1u64.to_le_bytes());
    machine.nic_write(ME, &memory, 0, &1u64.to_le_bytes());
    assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), 0);
    let _said = machine.step(0);
    assert_eq!(load(&machine, OTHER, &memory, Ordering::Relaxed), 1);
    let data = || machine.load_word(OTHER, &memory, 8, Width::W64, Ordering::Relaxed);
    assert_eq!(
        data(),
        0,
        "relaxed loads order nothing, however long one waits"
    );
}

#[test]
fn a_store_buffer_holds_a_bounded_number() {
    let machine = Machine::new(2, Always::new(0, Mode::Directed));
    let memory = machine.storage(OTHER, MemoryKind::Host, 8 * 1000);
    machine.store(ME, &memory, 0, &[1; 8 * 1000]);
    assert!((2..100).contains(&machine.steps()), "{}", machine.steps());
}

#[test]
fn equal_addresses_of_one_pe_are_one_memory() {
    let machine = Machine::new(2, Always::new(0, Mode::Tame));
    let named = conformance::host_memory(4096).unwrap();
    let register = |pe| machine.register(pe, &named).unwrap();
    let (one, again) = (register(ME), register(ME));
    assert!(Arc::ptr_eq(&one, &again) && !Arc::ptr_eq(&one, &register(OTHER)));

    let base = named.base().addr().get();
    let found = |pe, addr, len| machine.registered(pe, addr, len).map(|(_, offset)| offset);
    assert_eq!(found(ME, base + 16, 4080), Some(16));
    assert_eq!(found(ME, base + 16, 4081), None);
    assert_eq!(found(ME, base - 1, 1), None);
    assert_eq!(found(Pe(7), base, 1), None);
    drop((one, again));
    assert_eq!(found(ME, base, 1), None, "nobody holds it any more");
}

#[test]
fn memory_that_is_not_whole_words_is_not_simulated() {
    let machine = Machine::new(1, Always::new(0, Mode::Tame));
    let whole = conformance::host_memory(4096).unwrap();
    for (skip, len) in [(0, 4095), (4, 4088)] {
        // SAFETY: inside the memory, which its owner keeps.
        let part = unsafe {
            let base = whole.base().add(skip);
            Memory::new(base, len, whole.kind(), None, whole.owner().clone())
        };
        assert!(machine.register(ME, &part).is_none());
    }
}

#[test]
fn outside_of_runs_host_memory_is_its_bytes_and_a_run_works_on_a_copy() {
    let choices = Always::new(0, Mode::Tame);
    let machine = Machine::new(1, choices.clone());
    let named = conformance::host_memory(4096).unwrap();
    let storage = machine.register(ME, &named).unwrap();
    // SAFETY: the first word of the memory, which `named` keeps; all accesses are atomic.
    let real = unsafe { AtomicU64::from_ptr(named.base().as_ptr().cast()) };
    real.store(3, Ordering::Relaxed);
    machine.store(ME, &storage, 1, &[2]);
    assert_eq!(real.load(Ordering::Relaxed), 0x203);

    *choices.mode.lock().unwrap() = Mode::Directed;
    machine.store_word(ME, &storage, 0, Width::W64, 9, Ordering::Relaxed);
    machine.fence(ME, Ordering::SeqCst);
    assert_eq!(real.load(Ordering::Relaxed), 0x203);
    machine.quiesce();
    assert_eq!(real.load(Ordering::Relaxed), 9);
}

/// Message passing between two free threads: whether a reader that saw the flag missed the data.
fn missed(seed: u64, ordered: bool) -> bool {
    const ROUNDS: u64 = 300;
    let (release, acquire) = if ordered {
        (Ordering::Release, Ordering::Acquire)
    } else {
        (Ordering::Relaxed, Ordering::Relaxed)
    };
    let machine = Machine::new(2, Arc::new(Seeded::new(seed)));
    let memory = machine.storage(OTHER, MemoryKind::Host, 64);
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                machine.store_word(ME, &memory, 8, Width::W64, round, Ordering::Relaxed);
                machine.store_word(ME, &memory, 0, Width::W64, round, release);
            }
        });
        let (mut flag, mut missed) = (0, false);
        while flag < ROUNDS {
            let seen = load(&machine, OTHER, &memory, acquire);
            let data = machine.load_word(OTHER, &memory, 8, Width::W64, Ordering::Relaxed);
            assert!(seen >= flag, "coherence: {flag}, then {seen}");
            assert!(Instant::now() < deadline, "the flag stays at {seen}");
            missed |= data < seen;
            flag = seen;
        }
        missed
    })
}

#[test]
fn free_threads_keep_an_order_that_is_asked_for_and_no_other() {
    assert!((0..20).all(|seed| !missed(seed, true)));
    assert!((0..20).any(|seed| missed(seed, false)));
}

#[test]
fn free_threads_updates_are_exclusive() {
    let machine = Machine::new(4, Arc::new(Seeded::new(3)));
    let memory = machine.storage(OTHER, MemoryKind::Host, 64);
    let add = AtomicRequest::wide(AtomicOp::Add, 1, 0);
    std::thread::scope(|scope| {
        for pe in 0..4 {
            let (machine, memory) = (&machine, &memory);
            scope.spawn(move || {
                for round in 0..500 {
                    let order = [Ordering::Relaxed, Ordering::AcqRel][round % 2];
                    if pe == 3 {
                        machine.nic_update(Pe(pe), memory, 0, add);
                    } else {
                        machine.update(Pe(pe), memory, 0, add, order);
                    }
                }
            });
        }
    });
    machine.quiesce();
    assert_eq!(load(&machine, ME, &memory, Ordering::Relaxed), 2000);
}

#[test]
fn a_nic_told_after_a_fence_gets_its_turn_though_no_cpu_does_anything() {
    let machine = Machine::new(1, Arc::new(Seeded::new(11)));
    let memory = machine.storage(ME, MemoryKind::Host, 64);
    let deadline = Instant::now() + Duration::from_secs(60);
    for _ in 0..50 {
        machine.store(ME, &memory, 0, &[1; 64]);
        machine.fence(ME, Ordering::Release);
        let doorbell = machine.doorbell(ME);
        while !machine.ready(ME, doorbell) {
            assert!(Instant::now() < deadline, "the stores never drain");
        }
    }
}
