//! Litmus programs of kernels: threads of GPUs that make the device library's calls.
//!
//! ```
//! use oxshmem_litmus::kernels::{Kernels, model};
//!
//! let kernels = Kernels::parse(
//!     "name put-signal+block
//!      about Both lanes put; who sees the signal sees all words.
//!      rules M22 G1
//!      vars d[2] y
//!      expect forbidden r0=0
//!      PE 0 block 0 lanes 2:
//!        block put_signal d@1 1 2 then set y 1
//!      PE 1 block 0:
//!        wait_until y == 1
//!        r0 = read d[1]",
//! )?;
//! let all: Vec<_> = model::outcomes(&kernels)?.iter().map(ToString::to_string).collect();
//! assert_eq!(all, ["r0=2"]);
//! # Ok::<(), oxshmem_litmus::Error>(())
//! ```
//!
//! # The format
//!
//! The header is that of other [litmus programs](crate). Then come blocks of threads, `PE 0 block 1 lanes 4:`, and the calls that
//! each of their threads makes, one a line. Without `lanes` a block is one thread. `lane 2` before a call: that thread makes it
//! alone, as by an `if`. A register is filled by lane 0 where the whole block makes the call, and a call of single threads that
//! fills registers needs `lane` in a block of several.
//!
//! `warp` or `block` before a call: all threads of the block make it together (G1).
//!
//! | statement | also |
//! |---|---|
//! | `put d@1 1 2`, `put d@1 from s` (the words of `s` here) | `put_nbi`; `warp`, `block` |
//! | `r0 r1 = get d@1` | `get_nbi`, whose registers are filled by the next `quiet`; `warp`, `block` |
//! | `iput d@1 from s`, `r0 r1 = iget d@1` (with strides of 1) | `warp`, `block` |
//! | `p x@1 5`, `r0 = g x@1` | |
//! | `set x@1 5`, `add`, `and`, `or`, `xor` (atomics) | |
//! | `r0 = fetch x@1`, `swap x@1 5`, `compare_swap x@1 0 5`, `fetch_add`, `fetch_and`, `fetch_or`, `fetch_xor` | |
//! | `put_signal d@1 1 2 then set y 1` | `then add`; `from s`; `put_signal_nbi`; `warp`, `block` |
//! | `signal set y@1 1`, `signal add y@1 1` | |
//! | `write x 1`, `r0 = read x` (this PE's own, by plain accesses) | |
//! | `wait_until y == 1`, `r0 = test y == 1`, `r0 = signal_fetch y` | `r0 = signal_wait_until y == 1` |
//! | `r0 = wait_until_any d >= 1` (the index), `wait_until_all d >= 1`, `r0 = wait_until_some d >= 1` (how many) | `test_any`, `test_all`, `test_some` |
//! | `fence`, `quiet`, `flush` | |
//! | `barrier_all`, `sync_all` | `warp`, `block` |
//! | `broadcast d from s@0`, `fcollect d from s`, `alltoall d from s`, `sum d from s` | `warp`, `block` |
//! | `syncwarp`, `syncthreads` (CUDA's own) | |
//! | `next_kernel` (all threads of the PE: their kernel ends, and the stream's next one begins) | |
//! | `threadfence block`, `threadfence gpu`, `threadfence system` | |
//! | `r0 = atomic_add gpu x 1` (CUDA's own, relaxed, on this PE's word), `spin gpu x == 1` (relaxed loads, no fence) | `block`, `system` |
//!
//! [`model`] computes the outcomes that the contract allows.

pub mod library;
pub mod model;
mod print;
pub mod program;

pub use program::Kernels;
