//! The declarations of the two kinds of this transport.

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Completion, GpuFlush, Guarantees, Limits,
    MemoryKind, SignalSupport, Width, WireUp,
};

/// The capabilities and guarantees of a table.
#[derive(Debug)]
pub(crate) struct Kind {
    pub capabilities: Capabilities,
    pub guarantees: Guarantees,
}

/// Operations towards one PE that a lane holds.
pub(crate) const DEPTH: usize = 8;
const LIMITS: Limits = Limits {
    max: 64 << 10,
    align: 1,
    unregistered: 1024,
    inline: 0,
    ordered: u64::MAX,
};
const CPU: AtomicLevel = AtomicLevel::Cpu;
const NIC: AtomicLevel = AtomicLevel::Nic;

/// Operations are performed by the CPU of the caller. A lane's queue keeps order; the queues of two lanes are
/// independent.
pub(crate) static PLAIN: Kind = Kind {
    capabilities: Capabilities {
        put: LIMITS,
        get: LIMITS,
        put_signal: SignalSupport::None,
        atomics: AtomicTable::uniform(AtomicLevel::None)
            .with(AtomicOp::Fetch, Width::W64, CPU)
            .with(AtomicOp::Set, Width::W64, CPU)
            .with(AtomicOp::Add, Width::W64, CPU)
            .with(AtomicOp::CompareSwap, Width::W64, CPU),
        memory: &[MemoryKind::Host],
        depth: Some(DEPTH as u32),
        wire_up: WireUp::PerLane,
        pins: false,
        batch: 1,
        message: 0,
        passive_target: true,
        moves_in_calls: false,
        acknowledges: true,
    },
    guarantees: Guarantees {
        put_put: true,
        put_fence_put: true,
        put_atomic: true,
        atomic_put: true,
        atomic_atomic: true,
        put_message: false,
        put_get: true,
        get_get: true,
        across_lanes: false,
        completion: Completion::Placed,
        gpu_flush: GpuFlush::None,
    },
};

/// As NICs of InfiniBand behave: a read-modify-write is exclusive among NICs only, and a completed operation may
/// still be in flight.
pub(crate) static NICS: Kind = Kind {
    capabilities: Capabilities {
        put: LIMITS,
        get: LIMITS,
        put_signal: SignalSupport::Native(NIC),
        atomics: AtomicTable::uniform(AtomicLevel::None)
            .with(AtomicOp::Fetch, Width::W64, CPU)
            .with(AtomicOp::Set, Width::W64, CPU)
            .with(AtomicOp::Add, Width::W64, NIC)
            .with(AtomicOp::CompareSwap, Width::W64, NIC),
        // Its NIC also copies from and to memory that stands for a GPU's.
        memory: &[MemoryKind::Host, MemoryKind::Cuda],
        depth: Some(DEPTH as u32),
        wire_up: WireUp::PerLane,
        pins: true,
        batch: 4,
        message: 64,
        passive_target: true,
        moves_in_calls: false,
        acknowledges: true,
    },
    guarantees: Guarantees {
        put_put: true,
        put_fence_put: true,
        put_atomic: true,
        atomic_put: false,
        atomic_atomic: true,
        put_message: true,
        put_get: true,
        get_get: true,
        across_lanes: false,
        completion: Completion::Accepted,
        gpu_flush: GpuFlush::None,
    },
};
