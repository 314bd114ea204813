//! Order and visibility where several paths lead to one PE: for each pair of paths, over simulated
//! machines that are as weak as is permitted, under many schedules. Each test also fails when the
//! order that it needs is left out.

#![allow(clippy::unwrap_used, reason = "tests")]

mod atomics;
mod completion;
mod counters;
mod explore;
mod gpu;
mod locks;
mod mapping;
mod pairs;
mod path;
mod reads;
mod signals;
mod teams;
mod visibility;
