//! The order and visibility that a transport promises.

/// The meaning of a completion counted by [`Counters::completed`](crate::Counters) for a put, from the weakest
/// to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Completion {
    /// The source may be reused; the data may still be in flight.
    SourceReusable,
    /// The remote NIC has accepted the data, which may not be in memory yet.
    Accepted,
    /// The data is in the target's memory, visible to its CPU.
    Placed,
}

/// The action that makes data that arrived in GPU memory visible to that GPU (M27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuFlush {
    /// Nothing more is needed.
    None,
    /// A flush that the target runs.
    Target,
}

/// The promises of a transport about order and visibility, for one kind of memory at the target. Each stands
/// by itself: `false` leaves the transport free, and the order engine then inserts a
/// flush where the contract needs the order (M17 to M27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// On one lane, towards one PE, a later put or put-with-signal lands after an earlier put.
    pub put_put: bool,
    /// On one lane, towards one PE, a later atomic is performed after an earlier put has landed.
    pub put_atomic: bool,
    /// On one lane, towards one PE, a later put lands after an earlier atomic was performed.
    pub atomic_put: bool,
    /// On one lane, towards one PE, atomics are performed in the order posted.
    pub atomic_atomic: bool,
    /// On one lane, towards one PE, a message is served after an earlier put has landed.
    pub put_message: bool,
    /// On one lane, a get reads what an earlier put to the same PE wrote.
    pub put_get: bool,
    /// On one lane, gets (and fetching atomics) from one PE read in the order posted.
    pub get_get: bool,
    /// All of the above hold between different lanes too.
    pub across_lanes: bool,
    /// On one lane, towards one PE, a put or put-with-signal that is posted after a [fence](crate::Lane::fence) lands
    /// after the puts posted before it. Transports with [`put_put`](Self::put_put) need no fence, and promise both.
    pub put_fence_put: bool,
    /// The meaning of a put's completion.
    pub completion: Completion,
    /// The flush that GPU memory needs at the target.
    pub gpu_flush: GpuFlush,
}

impl Guarantees {
    /// No promise at all.
    pub const NONE: Guarantees = Guarantees {
        put_put: false,
        put_fence_put: false,
        put_atomic: false,
        atomic_put: false,
        atomic_atomic: false,
        put_message: false,
        put_get: false,
        get_get: false,
        across_lanes: false,
        completion: Completion::SourceReusable,
        gpu_flush: GpuFlush::None,
    };

    /// The promises between operations before a [fence](crate::Lane::fence) and operations after it.
    #[must_use]
    pub fn with_fence(self) -> Guarantees {
        Guarantees {
            put_put: self.put_put || self.put_fence_put,
            ..self
        }
    }

    /// The promises that both make.
    #[must_use]
    pub fn both(self, other: Guarantees) -> Guarantees {
        Guarantees {
            put_put: self.put_put && other.put_put,
            put_fence_put: self.put_fence_put && other.put_fence_put,
            put_atomic: self.put_atomic && other.put_atomic,
            atomic_put: self.atomic_put && other.atomic_put,
            atomic_atomic: self.atomic_atomic && other.atomic_atomic,
            put_message: self.put_message && other.put_message,
            put_get: self.put_get && other.put_get,
            get_get: self.get_get && other.get_get,
            across_lanes: self.across_lanes && other.across_lanes,
            completion: self.completion.min(other.completion),
            gpu_flush: match (self.gpu_flush, other.gpu_flush) {
                (GpuFlush::None, GpuFlush::None) => GpuFlush::None,
                _ => GpuFlush::Target,
            },
        }
    }
}
