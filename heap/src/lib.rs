//! Symmetric segments, the deterministic allocator, and the one copy primitive.
//!
//! * [`Segment`] is a PE's heap memory: a memfd of fixed size, committed on demand, so that lack of
//!   memory is an error and not a signal. A [`Mapping`] shows a segment, this PE's or a peer's.
//! * [`Allocator`] says which bytes of a segment are whose. It sees offsets only, and gives the same
//!   answers on every PE that asks the same.
//! * [`limit`] reads a heap's size as users write it; [`available`] knows what the machine (or this
//!   process's control group) has.
//! * [`copy`] moves all bytes into and out of symmetric memory.
//!
//! # Threads and failure
//!
//! A `Mapping` may be used from any thread; `Segment` and `Allocator` have one owner at a time. No
//! call panics on a condition of the machine or on a peer's doing: it returns [`Error`].

mod allocator;
pub mod available;
pub mod copy;
mod error;
pub mod limit;
mod mapping;
mod segment;

pub use allocator::{Allocator, Block};
pub use error::{Error, Result};
pub use mapping::Mapping;
pub use segment::{AdviceOutcome, HugePages, Segment, SegmentOptions};
