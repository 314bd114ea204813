//! Threads of kernels as fibers: each has a stack of its own, and gives way to others where it waits.
//!
//! The fibers of a block run on one thread of the host, so that only one of them runs at a time, and
//! so that the code between two waits is never interrupted. Blocks of one grid run on several.
//! A thread that ends without a wait needs no more than the one stack that its successor uses, too.

mod block;
mod calls;
mod grid;
mod room;
mod stack;
mod standing;
mod warp;
mod worker;

pub(crate) use calls::{CALLS, Calls, pause, syncthreads, warp};
pub(crate) use grid::{Grid, Progress};
pub(crate) use room::Room;
pub(crate) use worker::run;
