//! The transports over a simulated machine: that they are transports, and what is their own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use oxshmem_transport::{
    Accessor, AtomicLevel, AtomicOp, AtomicRequest, AtomicTable, Domain, HostId, Job, Lane, Local,
    LocalKey, Memory, MemoryKind, Op, Pe, Peer, Reach, RegionId, Remote, Schedule, SignalOp,
    SignalSupport, Status, Transport, Width, conformance,
};
use oxshmem_weak::{Choices, Environment, Machine, Mode, Seeded, Simulator, simulated_gpu_memory};

const HOST: &[MemoryKind] = &[MemoryKind::Host];
const ALL: &[MemoryKind] = &MemoryKind::ALL;

/// Never any choice but the tame one, in a mode that can be changed.
#[derive(Debug)]
struct In(Mutex<Mode>);

impl In {
    fn new(mode: Mode) -> Arc<In> {
        Arc::new(In(Mutex::new(mode)))
    }
}

impl Choices for In {
    fn choose(&self, _: usize) -> usize {
        0
    }

    fn mode(&self, _: Pe) -> Mode {
        *self.0.lock().unwrap()
    }
}

fn machine(pes: u32, mode: Mode) -> Arc<Machine> {
    Machine::new(pes, In::new(mode))
}

struct Harness(Simulator);

impl conformance::Harness for Harness {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }

    fn memory(&self, _pe: Pe, kind: MemoryKind, len: usize) -> Result<Memory, String> {
        match kind {
            MemoryKind::Host => conformance::host_memory(len),
            _ => simulated_gpu_memory(len).ok_or("no memory".into()),
        }
    }

    /// A machine goes word by word.
    fn largest(&self) -> u64 {
        (64 << 10) + 13
    }
}

#[test]
fn a_simulated_nic_passes_the_conformance_suite() {
    let nic = Simulator::nic(machine(8, Mode::Tame), "nic", ALL);
    let report = conformance::run(&Harness(nic));
    assert!(report.passed(), "{report}");
}

#[test]
fn one_that_can_do_less_passes_too() {
    let some =
        AtomicTable::uniform(AtomicLevel::None).with(AtomicOp::Add, Width::W64, AtomicLevel::Cpu);
    let nic = Simulator::nic(machine(8, Mode::Tame), "nic", HOST)
        .with_atomics(some)
        .with_put_signal(SignalSupport::None);
    let report = conformance::run(&Harness(nic));
    assert!(report.passed(), "{report}");
}

#[test]
fn the_mapping_simulator_passes_what_does_not_need_an_address() {
    let simulator = Simulator::new(machine(8, Mode::Tame));
    // The lanes are a NIC's: what they keep in order is tried above.
    let report = conformance::run_where(&Harness(simulator), |check| {
        check != "mapped_regions_are_the_peers_memory"
            && !check.starts_with("m22")
            && !check.contains("_then_")
    });
    assert!(report.passed(), "{report}");
    assert!(report.checks.len() > 20, "{report}");
}

/// Two PEs of a job, each with one registered piece of memory of each kind that the transport
/// carries, known to the other.
struct Pair {
    domains: [Arc<dyn Domain>; 2],
    memory: [Memory; 2],
    keys: [LocalKey; 2],
    /// Of PE 0's CPU: at its own and at PE 1's memory.
    accessors: Vec<Option<Arc<dyn Accessor>>>,
    _regions: Vec<Box<dyn oxshmem_transport::Region>>,
}

fn peer(pe: u32, domain: &dyn Domain) -> Peer {
    Peer {
        pe: Pe(pe),
        host: HostId("here".into()),
        address: Some(domain.address()),
    }
}

fn open(simulator: &Simulator, me: u32) -> Arc<dyn Domain> {
    let job = Job {
        me: Pe(me),
        size: 2,
        host_rank: 0,
        host: HostId("here".into()),
    };
    let devices = simulator.probe().unwrap();
    simulator.open(&devices[0], &job).unwrap()
}

fn pair_over(simulator: &Simulator, memory: [Memory; 2]) -> Pair {
    let domains = [open(simulator, 0), open(simulator, 1)];
    let regions: Vec<_> = domains
        .iter()
        .zip(&memory)
        .map(|(domain, memory)| domain.register(RegionId(0), memory).unwrap())
        .collect();
    let keys = [regions[0].local_key(), regions[1].local_key()];
    let mut accessors = Vec::new();
    for (me, importer) in domains.iter().enumerate() {
        for pe in 0..2u32 {
            let owner = peer(pe, &*domains[pe as usize]);
            let region = &regions[pe as usize];
            let imported = importer
                .import(&owner, RegionId(0), region.key(), None)
                .unwrap();
            assert!(imported.mapped().is_none());
            if me == 0 {
                accessors.push(imported.accessor());
            }
        }
    }
    Pair {
        domains,
        memory,
        keys,
        accessors,
        _regions: regions,
    }
}

fn pair(simulator: &Simulator) -> Pair {
    let memory = || conformance::host_memory(4096).unwrap();
    pair_over(simulator, [memory(), memory()])
}

fn post(lane: &mut dyn Lane, to: Pe, op: Op) {
    // SAFETY: each test keeps what its operations name until they have completed.
    let posted = unsafe { lane.post(to, &[op]) };
    assert!(matches!(posted.status, Status::All), "{posted:?}");
}

fn put(from: Local, offset: u64) -> Op {
    let region = RegionId(0);
    let to = Remote { region, offset };
    Op::Put { from, to }
}

fn private(word: &mut u64) -> Local {
    Local {
        addr: std::ptr::from_mut(word).cast(),
        len: 8,
        key: None,
    }
}

#[test]
fn a_put_waits_for_the_stores_before_the_last_fence() {
    let choices = In::new(Mode::Directed);
    let machine = Machine::new(2, choices);
    let simulator = Simulator::new(machine.clone());
    let pair = pair(&simulator);
    let cpu = pair.accessors[1].as_ref().unwrap();
    let mut lane = pair.domains[0].lane().unwrap();
    let (mut one, mut two) = (1, 2);

    cpu.store(0, &[1; 8]);
    post(&mut *lane, Pe(1), put(private(&mut one), 64));
    lane.progress().unwrap();
    assert_eq!(lane.counters(Pe(1)).completed, 1, "no fence holds it up");
    cpu.fence(Ordering::Release);
    post(&mut *lane, Pe(1), put(private(&mut two), 64));
    lane.progress().unwrap();
    assert_eq!(lane.counters(Pe(1)).completed, 1, "it overtook the store");
    assert!(machine.step(0).starts_with("CPU 0 drains"));
    lane.progress().unwrap();
    assert_eq!(lane.counters(Pe(1)).completed, 2);
    // Its completion tells the CPU of all that was before it.
    assert_eq!(cpu.load_word(64, Width::W64, Ordering::Relaxed), 2);
}

#[test]
fn near_sides_in_registered_memory_are_the_machines() {
    let machine = machine(2, Mode::Directed);
    let pair = pair(&Simulator::new(machine.clone()));
    let own = pair.accessors[0].as_ref().unwrap();
    let other = pair.accessors[1].as_ref().unwrap();
    let local = |offset: usize, key| Local {
        // SAFETY: inside the memory, of which nothing but the address is used.
        addr: unsafe { pair.memory[0].base().add(offset) }.as_ptr(),
        len: 8,
        key,
    };
    let mut lane = pair.domains[0].lane().unwrap();
    own.store_word(8, Width::W64, 77, Ordering::Relaxed);
    own.fence(Ordering::SeqCst);
    post(&mut *lane, Pe(1), put(local(8, Some(pair.keys[0])), 0));
    let region = RegionId(0);
    let from = Remote { region, offset: 0 };
    // Without its key it is the same memory.
    let into = local(16, None);
    post(&mut *lane, Pe(1), Op::Get { into, from });
    post(
        &mut *lane,
        Pe(1),
        Op::Atomic {
            op: AtomicOp::Add,
            width: Width::W64,
            on: from,
            operand: 1,
            compare: 0,
            fetch: Some(local(24, Some(pair.keys[0]))),
        },
    );
    while lane.counters(Pe(1)).completed < 3 {
        lane.progress().unwrap();
    }
    assert_eq!(other.load_word(0, Width::W64, Ordering::Relaxed), 78);
    for offset in [16, 24] {
        assert_eq!(own.load_word(offset, Width::W64, Ordering::Relaxed), 77);
    }
}

#[test]
fn a_store_before_a_put_from_the_same_memory_may_come_too_late() {
    let machine = machine(2, Mode::Directed);
    let pair = pair(&Simulator::new(machine));
    let own = pair.accessors[0].as_ref().unwrap();
    let local = Local {
        addr: pair.memory[0].base().as_ptr(),
        len: 8,
        key: Some(pair.keys[0]),
    };
    let mut lane = pair.domains[0].lane().unwrap();
    own.store_word(0, Width::W64, 5, Ordering::Relaxed);
    post(&mut *lane, Pe(1), put(local, 0));
    lane.progress().unwrap();
    assert_eq!(lane.counters(Pe(1)).completed, 1);
    let other = pair.accessors[1].as_ref().unwrap();
    assert_eq!(other.load_word(0, Width::W64, Ordering::SeqCst), 0);
}

#[test]
fn m22_a_signal_comes_with_its_data() {
    let machine = machine(2, Mode::Directed);
    let pair = pair(&Simulator::new(machine));
    let mut lane = pair.domains[0].lane().unwrap();
    let mut data = 9;
    let region = RegionId(0);
    let at = |offset| Remote { region, offset };
    let put_signal = Op::PutSignal {
        from: private(&mut data),
        to: at(0),
        signal: at(8),
        op: SignalOp::Add,
        value: 4,
    };
    post(&mut *lane, Pe(1), put_signal);
    lane.progress().unwrap();
    let other = pair.accessors[1].as_ref().unwrap();
    let load = |offset| other.load_word(offset, Width::W64, Ordering::Acquire);
    assert_eq!((load(8), load(0)), (4, 9));
}

#[test]
fn pes_on_other_hosts_are_left_to_other_transports() {
    let simulator = Simulator::new(machine(2, Mode::Tame)).on_hosts(vec![7, 8]);
    let pair = pair(&simulator);
    let reach = |pe: u32| {
        let peer = peer(pe, &*pair.domains[pe as usize]);
        pair.domains[0].reach(&peer, MemoryKind::Host)
    };
    assert_eq!(reach(0), Reach::Mapped { descriptor: false });
    assert!(matches!(reach(1), Reach::None(why) if why.contains("host")));
    let given: Vec<bool> = pair.accessors.iter().map(Option::is_some).collect();
    assert_eq!(given, [true, false]);
}

#[test]
fn two_transports_over_one_machine_mean_the_same_bytes() {
    let machine = machine(2, Mode::Directed);
    let memory = [0; 2].map(|_| conformance::host_memory(4096).unwrap());
    let nic = pair_over(
        &Simulator::nic(machine.clone(), "nic", HOST),
        memory.clone(),
    );
    let mapped = pair_over(&Simulator::new(machine), memory);
    let mut lane = nic.domains[0].lane().unwrap();
    let mut value = 12;
    post(&mut *lane, Pe(1), put(private(&mut value), 32));
    lane.progress().unwrap();
    let cpu = mapped.accessors[1].as_ref().unwrap();
    assert_eq!(cpu.load_word(32, Width::W64, Ordering::Relaxed), 12);
    let own = nic.accessors[0].as_ref().unwrap();
    own.store_word(0, Width::W64, 6, Ordering::Relaxed);
    let cpu = mapped.accessors[0].as_ref().unwrap();
    assert_eq!(
        cpu.load_word(0, Width::W64, Ordering::Relaxed),
        6,
        "one CPU, one buffer"
    );
    assert!(nic.accessors[1].is_none());
}

#[test]
fn a_machine_of_another_is_not_reached_nor_are_its_keys_taken() {
    let (one, two) = (machine(2, Mode::Tame), machine(2, Mode::Tame));
    let (me, other) = (open(&Simulator::new(one), 0), open(&Simulator::new(two), 1));
    let owner = peer(1, &*other);
    let Reach::None(why) = me.reach(&owner, MemoryKind::Host) else {
        panic!("reached");
    };
    assert!(why.contains("machine"), "{why}");
    let region = other
        .register(RegionId(0), &conformance::host_memory(4096).unwrap())
        .unwrap();
    assert!(me.import(&owner, RegionId(0), region.key(), None).is_err());
}

#[test]
fn a_job_larger_than_the_machine_is_refused() {
    let simulator = Simulator::new(machine(1, Mode::Tame));
    let job = Job {
        me: Pe(0),
        size: 2,
        host_rank: 0,
        host: HostId("here".into()),
    };
    let device = simulator.probe().unwrap().remove(0);
    let why = simulator.open(&device, &job).unwrap_err().to_string();
    assert!(why.contains("1 CPUs") && why.contains("2 PEs"), "{why}");
}

#[test]
fn m27_gpu_memory_is_registered_and_made_visible_by_its_own_pe() {
    let machine = Machine::new(2, Arc::new(Last));
    let memory = [0; 2].map(|_| simulated_gpu_memory(1).unwrap());
    let pair = pair_over(&Simulator::nic(machine.clone(), "nic", ALL), memory);
    assert!(
        pair.accessors.iter().all(Option::is_none),
        "a GPU's is not the CPU's"
    );
    let mut lane = pair.domains[0].lane().unwrap();
    let mut value = 3;
    post(&mut *lane, Pe(1), put(private(&mut value), 0));
    while lane.counters(Pe(1)).completed < 1 {
        lane.progress().unwrap();
    }
    let (storage, at) = {
        let base = pair.memory[1].base().addr().get();
        machine.registered(Pe(1), base, 8).unwrap()
    };
    let gpu = || machine.load_word(Pe(1), &storage, at, Width::W64, Ordering::Acquire);
    assert_eq!(gpu(), 0);
    pair.domains[0].make_visible(MemoryKind::Cuda).unwrap();
    assert_eq!(gpu(), 0, "that was the other PE's");
    pair.domains[1].make_visible(MemoryKind::Cuda).unwrap();
    assert_eq!(gpu(), 3);
}

/// The stalest value, the latest drain.
#[derive(Debug)]
struct Last;

impl Choices for Last {
    fn choose(&self, n: usize) -> usize {
        n - 1
    }

    fn mode(&self, _: Pe) -> Mode {
        Mode::Directed
    }
}

#[derive(Debug, Default)]
struct Counting {
    points: AtomicU32,
}

impl Schedule for Counting {
    fn yield_point(&self) {
        self.points.fetch_add(1, Ordering::Relaxed);
    }

    fn idle(&self) -> bool {
        false
    }
}

#[test]
fn each_access_is_a_point() {
    let machine = Machine::new(2, Arc::new(Last));
    let counting = Arc::new(Counting::default());
    let given = Arc::clone(&counting);
    let simulator = Simulator::new(machine.clone()).scheduled(move |_| given.clone() as _);
    let pair = pair(&simulator);
    let cpu = pair.accessors[1].as_ref().unwrap();
    let points = || counting.points.swap(0, Ordering::Relaxed);
    points();
    cpu.store(0, &[1; 100]);
    cpu.fence(Ordering::SeqCst);
    cpu.load(0, &mut [0; 100]);
    cpu.rmw_word(
        0,
        AtomicRequest::wide(AtomicOp::Add, 1, 0),
        Ordering::Relaxed,
    );
    assert_eq!(points(), 4);

    assert!(
        !pair.domains[0].schedule().unwrap().idle(),
        "it is the one that was given"
    );
}

#[test]
fn free_threads_pass_messages_by_a_mapped_store_and_a_nic() {
    for seed in 0..20 {
        let machine = Machine::new(2, Arc::new(Seeded::new(seed)));
        let pair = pair(&Simulator::new(machine.clone()));
        let cpu = pair.accessors[1].as_ref().unwrap();
        let base = pair.memory[1].base().addr().get();
        let (target, _) = machine.registered(Pe(1), base, 8).unwrap();
        let mut lane = pair.domains[0].lane().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=100 {
                    let acquire = Ordering::Acquire;
                    while machine.load_word(Pe(1), &target, 8, Width::W64, acquire) < round {
                        std::thread::yield_now();
                    }
                    let data = machine.load_word(Pe(1), &target, 0, Width::W64, Ordering::Relaxed);
                    assert!(
                        data >= round,
                        "seed {seed}: the flag {round}, the data {data}"
                    );
                }
            });
            for round in 1..=100 {
                let mut flag = round;
                cpu.store_word(0, Width::W64, round, Ordering::Relaxed);
                cpu.fence(Ordering::Release);
                post(&mut *lane, Pe(1), put(private(&mut flag), 8));
                while lane.counters(Pe(1)).completed < round {
                    lane.progress().unwrap();
                }
            }
        });
    }
}
