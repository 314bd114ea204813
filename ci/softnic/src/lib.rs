//! A software RDMA NIC: libibverbs' calls, over copies of memory between threads and processes of one host.
//!
//! Built as a shared library whose name inside is `libibverbs.so.1`. A thread, the engine, plays all devices that
//! the process has opened: each target's NIC performs peers' requests on the target's own memory, in any order
//! that the device's profile allows, by a seed. Requests travel in queues within the process, and by datagrams of
//! Unix sockets between processes. README.md lists the profiles, and shows the use.
//!
//! # Threads and failure
//!
//! Every exported function may be called from any thread, and none panics towards its caller. Memory is left alone
//! once its registration has ended, and so is that of a queue pair's requests once that is destroyed. A process
//! that ends leaves nothing behind.
//!
//! Nothing here is for Rust callers: the exported C functions are the interface.

#![allow(missing_docs, reason = "the exported calls are libibverbs' own")]

pub mod abi;
mod bytes;
mod command;
mod completion;
mod counters;
mod cuda;
mod device;
mod engine;
mod events;
mod failure;
mod faults;
mod keys;
mod memory;
mod network;
mod object;
mod pair;
mod profile;
mod random;
mod receive_queue;
mod requester;
mod responder;
mod send_queue;
mod settings;
mod sync;
mod verbs;
mod wire;
mod world;
