//! The flushes that one fence or quiet makes. Data only.

/// A flush of one endpoint towards one PE that a fence or quiet has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunFlush {
    /// The index of the endpoint.
    pub endpoint: usize,
    /// The PE, by its number in the world.
    pub pe: usize,
    pub state: FlushState,
}

/// The state of a flush that is not awaited yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushState {
    /// Nothing was in flight.
    Clean,
    /// Not posted yet: the lane is full.
    Full,
    /// Posted. It ends when so many operations to the PE have completed (0 if only messages are in flight) and all
    /// messages have their replies.
    Posted { target: u64 },
}
