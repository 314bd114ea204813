//! The capabilities of a domain.

use crate::memory::MemoryKind;
use crate::op::{AtomicOp, Width};

/// Size limits of one kind of transfer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest single operation.
    pub max: u64,
    /// The alignment of both addresses; 1 for none.
    pub align: u64,
    /// Up to this size the local buffer needs no registration.
    pub unregistered: u64,
    /// Up to this size the local buffer may be reused as soon as `post` returns, if they lie in host
    /// memory.
    pub inline: u64,
    /// Up to this size the [`Guarantees`](crate::Guarantees) hold. A longer operation keeps no order with any other of its
    /// lane, before it or after it, and a [fence](crate::Lane::fence) does not change that: only a
    /// [flush](crate::Op::Flush) comes after it. [`u64::MAX`] if all keep their order.
    pub ordered: u64,
}

impl Limits {
    /// Whether an operation of this size is longer than those that keep an order.
    #[inline]
    #[must_use]
    pub const fn is_long(&self, len: u64) -> bool {
        len > self.ordered
    }
}

/// The execution site of an atomic, which decides with which other accesses it may share a word (M28, M29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtomicLevel {
    /// Not at all.
    None,
    /// By the NIC, exclusive against operations through that NIC only.
    Nic,
    /// By a CPU or coherently with one: exclusive against CPU instructions on the same word.
    Cpu,
}

/// The level of each operation at each width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicTable([[AtomicLevel; Width::ALL.len()]; AtomicOp::ALL.len()]);

impl AtomicTable {
    /// A table of one level.
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

    /// The operations that both tables have: the lesser level of each entry.
    #[must_use]
    pub fn both(&self, other: &AtomicTable) -> AtomicTable {
        let mut table = *self;
        for (ours, theirs) in table.0.iter_mut().zip(&other.0) {
            for (level, other) in ours.iter_mut().zip(theirs) {
                *level = (*level).min(*other);
            }
        }
        table
    }

    /// The level of one operation at one width.
    #[must_use]
    pub const fn level(&self, op: AtomicOp, width: Width) -> AtomicLevel {
        self.0[op as usize][width as usize]
    }
}

/// Whether put-with-signal is an operation of its own here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignalSupport {
    /// It is not: the caller puts, flushes, then updates the signal.
    None,
    /// It is, with data up to [`Capabilities::put`]'s limits; the signal's update is at this level.
    /// At [`AtomicLevel::Nic`] a signal that is set is written, in the order of puts.
    Native(AtomicLevel),
}

/// The wire-up between two PEs before a lane takes operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireUp {
    /// Nothing.
    None,
    /// A lane's [`endpoint`](crate::Lane::endpoint) towards a PE is given to that PE's domain, which
    /// [accepts](crate::Domain::accept) it, and the lane [`connect`](crate::Lane::connect)s with the answer. Each
    /// direction is connected by itself, at its first use: the PE that accepts need make no call.
    PerLane,
}

/// The capabilities of a domain. They are promises: the [conformance](crate::conformance) suite tries every
/// entry.
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
    /// The number of operations towards one PE that a lane holds before it is Full; none if it never is.
    pub depth: Option<u32>,
    /// The wire-up that connects a lane with a PE.
    pub wire_up: WireUp,
    /// Whether registration pins memory: then only memory in use should be registered.
    pub pins: bool,
    /// The number of small operations towards one PE that are worth one post; 1 if a batch gains nothing.
    pub batch: u32,
    /// The longest [message](crate::Op::Message), in bytes; 0 if there are none.
    pub message: u32,
    /// Whether operations complete though the target makes no call (truly one-sided).
    pub passive_target: bool,
    /// Whether data that arrive here move only inside calls. They do so late if only the transport's own thread makes
    /// such: a caller that waits [drives](crate::Lane::progress) its lane although nothing of its own is in flight.
    pub moves_in_calls: bool,
    /// Whether operations are counted as completed soon after they are, by [progress](crate::Lane::progress) alone: no flush and no
    /// [request](crate::Lane::request_completion) hurries that. The suite, which makes no requests, waits for completions so.
    pub acknowledges: bool,
}
