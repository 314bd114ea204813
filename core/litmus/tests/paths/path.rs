//! The paths to a PE, and worlds whose routes have exactly these paths.

use std::sync::Arc;

use oxshmem::{Builder, FenceSite, MemoryKind, MemoryModel, Result, Sym, World};
use oxshmem_litmus::machines::IN_ORDER;
use oxshmem_transport::{
    AtomicLevel, AtomicTable, Completion, Guarantees, SignalSupport, Transport,
};
use oxshmem_weak::{Machine, Scheduler, Settings, Simulator, Weak, simulated_gpu_memory};

use crate::mapping::Mapping;

/// The path of an operation to a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A store by this PE's CPU.
    Store,
    /// A put by the NIC.
    Put,
    /// An atomic by the NIC.
    Atomic,
    /// An atomic by a message to the target, on a lane of its own that has no order with puts.
    Message,
    /// A copy to GPU memory, on a lane without order whose completions mean placement.
    Copy,
}

pub const ALL: [Path; 5] = [
    Path::Store,
    Path::Put,
    Path::Atomic,
    Path::Message,
    Path::Copy,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Put,
    Atomic,
}

/// The library's name for an operation, so that it takes its path.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub path: Path,
    pub kind: MemoryKind,
    pub class: Class,
}

impl Slot {
    /// Sets a word of a PE to 1.
    pub fn issue(self, world: &World, word: Sym<u64>, pe: usize) -> Result<()> {
        match self.class {
            Class::Put => world.p(word, 1, pe),
            Class::Atomic => world.set(word, 1, pe),
        }
    }

    /// For the world's own PE 0: checks that its route to PE 1 has the path.
    pub fn confirm_0_to_1(self, world: &World) {
        if world.my_pe() == 0 {
            self.confirm(world, 1);
        }
    }

    /// Checks that this PE's route has the path.
    pub fn confirm(self, world: &World, pe: usize) {
        let told = world.explain(pe).unwrap();
        let route = match (self.kind, self.class) {
            (MemoryKind::Host, Class::Put) => {
                assert_eq!(world.routes()[pe], told.host);
                told.host
            }
            (MemoryKind::Host, Class::Atomic) => told.host_atomics,
            (_, Class::Put) => told.gpu.unwrap(),
            (_, Class::Atomic) => told.gpu_atomics.unwrap(),
        };
        let (transport, mapped) = match self.path {
            Path::Store => ("simulator", true),
            Path::Put | Path::Atomic => ("weak(nic)", false),
            Path::Message => ("weak(am)", false),
            Path::Copy => ("weak(gpu)", false),
        };
        assert_eq!(
            (route.transport, route.mapped),
            (Some(transport), mapped),
            "{self:?}: {route:?}"
        );
    }
}

/// The settings of a world.
#[derive(Clone, Debug)]
pub struct Setup {
    pub pes: usize,
    pub model: MemoryModel,
    /// The paths that exist.
    pub paths: Vec<Path>,
    /// The simulated host of each PE: PEs of one host load and store each other's memory.
    pub hosts: Vec<u32>,
    /// The NIC's guarantees.
    pub nic: Guarantees,
    /// The largest source, in bytes, that the lanes copy at once.
    pub inline: u64,
    pub put_signal: SignalSupport,
    /// The atomics of the NIC, if some use it, and those by messages.
    pub nic_atomics: AtomicTable,
    pub message_atomics: AtomicTable,
    /// Whether CPUs do atomics on memory that they map.
    pub cpu_atomics: bool,
    pub omit: Option<FenceSite>,
}

pub const WORST: Guarantees = Guarantees::NONE;
pub const NICS: [(&str, Guarantees); 2] = [("worst", WORST), ("in order", IN_ORDER)];

const MESSAGES: Guarantees = Guarantees {
    atomic_atomic: true,
    put_message: false,
    ..WORST
};
const COPIES: Guarantees = Guarantees {
    completion: Completion::Placed,
    ..WORST
};
pub const CPU: AtomicTable = AtomicTable::uniform(AtomicLevel::Cpu);
pub const NO_ATOMICS: AtomicTable = AtomicTable::uniform(AtomicLevel::None);
const HEAP: usize = 1 << 20;
const GPU_HEAP: usize = 4096;

impl Setup {
    pub fn new(pes: usize, paths: &[Path]) -> Setup {
        let lanes = [Path::Put, Path::Atomic, Path::Message];
        // Host memory that no lane carries is mapped.
        let mapped = paths.contains(&Path::Store) || !lanes.iter().any(|w| paths.contains(w));
        let host = |pe| if mapped { 0 } else { pe };
        Setup {
            pes,
            model: MemoryModel::Ordered,
            paths: paths.to_vec(),
            hosts: (0..pes as u32).map(host).collect(),
            nic: WORST,
            inline: u64::MAX,
            put_signal: SignalSupport::Native(AtomicLevel::Cpu),
            nic_atomics: if paths.contains(&Path::Atomic) {
                CPU
            } else {
                NO_ATOMICS
            },
            message_atomics: CPU,
            cpu_atomics: !paths.contains(&Path::Atomic) && !paths.contains(&Path::Message),
            omit: None,
        }
    }

    fn has(&self, path: Path) -> bool {
        self.paths.contains(&path)
    }

    /// Two lanes cannot both have atomics on one kind of memory; those by messages are then on GPU
    /// memory.
    fn messages_to_gpus(&self) -> bool {
        self.has(Path::Atomic) && self.has(Path::Message)
    }

    pub fn has_gpus(&self) -> bool {
        self.has(Path::Copy) || self.messages_to_gpus()
    }

    /// The settings that make an operation take a path.
    pub fn slot(&self, path: Path) -> Slot {
        use MemoryKind::{Cuda, Host};
        let (kind, class) = match path {
            // If puts use the NIC, the CPU's stores are those of atomics.
            Path::Store if self.has(Path::Put) => (Host, Class::Atomic),
            Path::Store | Path::Put => (Host, Class::Put),
            Path::Message if self.messages_to_gpus() => (Cuda, Class::Atomic),
            Path::Atomic | Path::Message => (Host, Class::Atomic),
            Path::Copy => (Cuda, Class::Put),
        };
        Slot { path, kind, class }
    }

    /// A machine, its scheduler, and the builder of its PEs' worlds.
    pub fn build(&self) -> Built {
        let scheduler = Scheduler::new(self.pes);
        let machine = Machine::new(self.pes as u32, Arc::clone(&scheduler) as _);
        scheduler.attach(Arc::downgrade(&machine) as _);
        let mut transports: Vec<Arc<dyn Transport>> = Vec::new();
        let lane = |name, memory: &'static [MemoryKind], atomics, guarantees| {
            let nic = Simulator::nic(Arc::clone(&machine), name, memory).with_atomics(atomics);
            let settings = Settings {
                guarantees,
                inline: self.inline,
                put_signal: self.put_signal,
                ..Settings::worst(0)
            };
            Arc::new(Weak::over_machine(nic, settings, &scheduler)) as Arc<dyn Transport>
        };
        const HOST: &[MemoryKind] = &[MemoryKind::Host];
        const CUDA: &[MemoryKind] = &[MemoryKind::Cuda];
        if self.has(Path::Put) || self.has(Path::Atomic) {
            transports.push(lane("nic", HOST, self.nic_atomics, self.nic));
        }
        if self.has(Path::Message) {
            let memory = if self.messages_to_gpus() { CUDA } else { HOST };
            transports.push(lane("am", memory, self.message_atomics, MESSAGES));
        }
        if self.has(Path::Copy) {
            transports.push(lane("gpu", CUDA, NO_ATOMICS, COPIES));
        }
        let schedules = Arc::clone(&scheduler);
        let mapping = Mapping(
            Simulator::new(Arc::clone(&machine))
                .on_hosts(self.hosts.clone())
                .with_atomics(if self.cpu_atomics { CPU } else { NO_ATOMICS })
                .scheduled(move |pe| schedules.schedule(pe)),
        );
        let last = self.has(Path::Put) && self.has(Path::Store);
        let place = if last { transports.len() } else { 0 };
        transports.insert(place, Arc::new(mapping));
        let mut builder = World::builder()
            .model(self.model)
            .heap_limit(HEAP)
            .check(false)
            .transports(transports);
        if let Some(omit) = self.omit {
            builder = builder.disable_fence(omit);
        }
        let gpu = self
            .has_gpus()
            .then(|| simulated_gpu_memory(GPU_HEAP).unwrap());
        if let Some(gpu) = &gpu {
            builder = builder.gpu_heap(gpu.clone());
        }
        Built {
            scheduler,
            machine,
            builder,
            gpu_base: gpu.map_or(0, |gpu| gpu.base().addr().get()),
        }
    }
}

/// The parts of a world.
#[derive(Debug)]
pub struct Built {
    pub scheduler: Arc<Scheduler>,
    pub machine: Arc<Machine>,
    pub builder: Builder,
    /// The address of each PE's GPU heap.
    pub gpu_base: usize,
}
