//! Symmetric segments, the deterministic allocator, and the one copy primitive.
pub mod copy;
