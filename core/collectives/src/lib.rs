//! The collective calls of oxshmem below their public face: the members of a team meet, agree, and exchange data. No call
//! needs the user to synchronise between it and the next.
//!
//! A call has one of two [algorithms](select::CollectiveAlgorithm). *Eager*: each member copies its source to its
//! own scratch memory, arrives, and reads its part from the others'. They use that memory again two
//! arrivals later, when all have read. So there is one arrival, and objects are touched by their own PE
//! alone. That is for few bytes, where an arrival costs more than to move them twice. *Direct*: members arrive, read each
//! other's objects (or write them, where all are mapped and
//! each part is one member's), and arrive again, so that no program uses its object while another member accesses it.
//! Where each member loads a part of every other's object, and an arrival has one round, one arrival
//! [does for both](call::CollectiveCall::arrive_reading).
//!
//! In a team over several hosts, of which some have several members, a broadcast and fcollect take the data of
//! another host once to each host, and [reductions](algorithm::reduce_hierarchical) fold on each host first. Other calls do
//! not ask where members are. Each block of an alltoall is for one member, and crosses once as it is: to bring blocks
//! together on a host first would cost two more copies and arrivals. A member of a collect does not know where
//! fetched data belong before it knows all lengths, and others could read them there only after one more
//! arrival. For equal lengths, fcollect does that.
//!
//! Layers, from below: [`signature`], [`dissemination`], [`hierarchy`], [`layout`], [`fold`] and [`args`] are pure;
//! [`transfer`] copies; [`team`] and [`sync_area`] are the state; [`call`] is one call; [`slots`] makes teams; and
//! [`algorithm`] has the calls. Nothing here names the handles of the public face, or its settings.
//!
//! It is for the crate `oxshmem` alone, which checks the arguments of users' calls.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "readers of these pages read the source, too"
)]
#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

pub mod algorithm;
pub mod args;
mod atomics;
pub mod call;
pub mod dissemination;
pub mod elements;
pub mod error;
pub mod fold;
pub mod hierarchy;
pub mod layout;
#[cfg(target_arch = "x86_64")]
pub mod long_double;
pub mod select;
pub mod signature;
pub mod slots;
pub mod sync_area;
pub mod team;
pub mod transfer;
