//! Order and visibility where several ways lead to one PE: for each pair of ways, over simulated
//! machines that do the worst that is permitted, by many schedules; each shown to fail where what
//! orders it is taken away.

#![allow(clippy::unwrap_used, reason = "tests")]

mod atomics;
mod completion;
mod counters;
mod explore;
mod gpu;
mod locks;
mod mapping;
mod pairs;
mod reads;
mod signals;
mod teams;
mod visibility;
mod way;
