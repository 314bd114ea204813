//! The simulated machines that programs run on.

use std::sync::Arc;

use oxshmem::{Builder, World};
use oxshmem_transport::{Completion, GpuFlush, Guarantees, Transport};
use oxshmem_weak::{Fenced, Scheduler, Settings, Simulator, Weak};

use crate::directed::Machine;
use crate::program::MemoryModel;

/// Bytes of each PE's heap: the library's own words, and a program's few.
const HEAP: usize = 1 << 20;

/// The guarantees of one reliable connection to each PE, as InfiniBand's and RoCE's are.
pub const IN_ORDER: Guarantees = Guarantees {
    put_put: true,
    put_fence_put: true,
    put_atomic: true,
    atomic_put: true,
    atomic_atomic: true,
    put_message: false,
    put_get: true,
    get_get: true,
    across_lanes: false,
    completion: Completion::Accepted,
    gpu_flush: GpuFlush::None,
};

fn machine(
    name: &'static str,
    scheduler: Arc<Scheduler>,
    model: MemoryModel,
    transport: impl Transport + 'static,
) -> Machine {
    let builder = builder(model).transports(vec![Arc::new(transport)]);
    Machine {
        name,
        scheduler,
        builder,
    }
}

fn builder(model: MemoryModel) -> Builder {
    World::builder().model(model.into()).heap_limit(HEAP)
}

/// Loopback's memory, reached by weak lanes with these settings.
#[must_use]
pub fn lanes(name: &'static str, pes: usize, model: MemoryModel, settings: Settings) -> Machine {
    let scheduler = Scheduler::new(pes);
    let loopback = Arc::new(oxshmem_loopback::Loopback::new());
    let weak = Weak::scheduled(loopback, settings, &scheduler);
    machine(name, scheduler, model, weak)
}

/// Loopback's memory, reached by lanes as of NICs that place writes out of order.
#[must_use]
pub fn reordering(pes: usize, model: MemoryModel) -> Machine {
    let name = "weak(loopback), writes placed out of order";
    lanes(name, pes, model, Settings::out_of_order(0))
}

/// Loopback's memory, reached by lanes as of NICs whose writes pass each other on the bus, but for those after a fence.
#[must_use]
pub fn fencing(pes: usize, model: MemoryModel) -> Machine {
    fencing_only(pes, model, Fenced::All)
}

/// The same, where the lane keeps only these puts behind those before a fence.
#[must_use]
pub fn fencing_only(pes: usize, model: MemoryModel, fenced: Fenced) -> Machine {
    let guarantees = Guarantees {
        put_fence_put: true,
        put_atomic: true,
        atomic_atomic: true,
        put_get: true,
        get_get: true,
        completion: Completion::Accepted,
        ..Guarantees::NONE
    };
    let settings = Settings {
        guarantees,
        fenced,
        ..Settings::worst(0)
    };
    lanes(
        "weak(loopback), puts in order after a fence",
        pes,
        model,
        settings,
    )
}

/// Loopback's memory, reached by lanes as of NICs with several queue pairs to a PE: by one of them goes all that is no
/// longer than a word, in order, and by the others what is longer, in no order.
#[must_use]
pub fn several_queue_pairs(pes: usize, model: MemoryModel) -> Machine {
    let settings = Settings::several_queue_pairs(0, 8);
    lanes("weak(loopback), several queue pairs", pes, model, settings)
}

/// Memory that every PE maps, on weak CPUs.
#[must_use]
pub fn mapped(pes: usize, model: MemoryModel) -> Machine {
    let scheduler = Scheduler::new(pes);
    let count = u32::try_from(pes).unwrap_or(u32::MAX);
    let memory = oxshmem_weak::Machine::new(count, Arc::clone(&scheduler) as _);
    scheduler.attach(Arc::downgrade(&memory) as _);
    let schedules = Arc::clone(&scheduler);
    let simulator = Simulator::new(memory).scheduled(move |pe| schedules.schedule(pe));
    machine("simulator", scheduler, model, simulator)
}

/// All variants of weak loopback: lanes that keep no order, lanes that keep all, lanes as of NICs that place writes out
/// of order, those whose long operations keep none, and mapped memory on weak CPUs. Together they show every outcome that the model allows.
#[must_use]
pub fn weak(pes: usize, model: MemoryModel) -> Vec<Machine> {
    let in_order = Settings {
        guarantees: IN_ORDER,
        ..Settings::worst(0)
    };
    vec![
        lanes("weak(loopback)", pes, model, Settings::worst(0)),
        lanes("weak(loopback), lanes in order", pes, model, in_order),
        reordering(pes, model),
        several_queue_pairs(pes, model),
        mapped(pes, model),
    ]
}
