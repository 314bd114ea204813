use crate::{AtomicOp, MemoryKind, Width};

/// Size limits of one kind of transfer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest single operation.
    pub max: u64,
    /// What both addresses must be a multiple of; 1 for none.
    pub align: u64,
    /// Up to this size the local bytes need no registration.
    pub unregistered: u64,
    /// Up to this size the local bytes may be reused as soon as `post` returns, if they lie in host
    /// memory.
    pub inline: u64,
}

/// How an atomic is carried out, which decides with what else it may share a word (M28, M29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicLevel {
    /// Not at all.
    None,
    /// By the NIC, exclusive against operations through that NIC only.
    Nic,
    /// By a CPU or coherently with one: exclusive against CPU instructions on the same word.
    Cpu,
}

/// For each operation and width, at what level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicTable([[AtomicLevel; Width::ALL.len()]; AtomicOp::ALL.len()]);

impl AtomicTable {
    /// All alike.
    #[must_use]
    pub const fn uniform(level: AtomicLevel) -> Self {
        AtomicTable([[level; Width::ALL.len()]; AtomicOp::ALL.len()])
    }

    /// This table with one entry changed.
    #[must_use]
    pub const fn with(mut self, op: AtomicOp, width: Width, level: AtomicLevel) -> Self {
        self.0[op as usize][width as usize] = level;
        self
    }

    /// The level of one operation at one width.
    #[must_use]
    pub const fn level(&self, op: AtomicOp, width: Width) -> AtomicLevel {
        self.0[op as usize][width as usize]
    }
}

/// Whether put-with-signal is an operation of its own here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalSupport {
    /// It is not: the caller puts, flushes, then updates the signal.
    None,
    /// It is, with data up to [`Capabilities::put`]'s limits; the signal's update is at this level.
    /// At [`AtomicLevel::Nic`] a signal that is set is written, in the order of puts.
    Native(AtomicLevel),
}

/// What must happen between two PEs before a lane carries operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireUp {
    /// Nothing.
    None,
    /// A lane's [`endpoint`](crate::Lane::endpoint) towards a PE is shown to that PE's domain, whose
    /// [answer](crate::Domain::accept) the lane is [`connect`](crate::Lane::connect)ed with. Each
    /// direction is connected by itself, when first used: the PE that answers need make no call.
    PerLane,
}

/// What a domain can do. A promise: the [conformance](crate::conformance) suite tries every entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Put.
    pub put: Limits,
    /// Get.
    pub get: Limits,
    /// Put-with-signal.
    pub put_signal: SignalSupport,
    /// Atomics.
    pub atomics: AtomicTable,
    /// The kinds of memory that can be registered.
    pub memory: &'static [MemoryKind],
    /// How many operations towards one PE a lane holds before it answers Full; none if it never
    /// does.
    pub depth: Option<u32>,
    /// What connects a lane with a PE.
    pub wire_up: WireUp,
    /// Whether registering memory pins it: then only what is in use should be registered.
    pub pins: bool,
    /// How many small operations towards one PE are worth posting at once; 1 if each for itself is as
    /// good.
    pub batch: u32,
    /// The longest [message](crate::Op::Message), in bytes; 0 if there are none.
    pub message: u32,
    /// Whether operations complete though the target makes no call (one-sided in fact).
    pub passive_target: bool,
}
