//! Litmus programs for oxshmem's memory model: a text format, and an executable model that computes
//! the outcomes that the contract (`docs/memory-model.md`) allows.
//!
//! ```
//! use oxshmem_litmus::{MemoryModel, Program, model};
//!
//! let program = Program::parse(
//!     "name mp+fence
//!      about A PE that sees the flag sees the data.
//!      rules M17 M23
//!      vars x y                     # 64-bit words, 0 on every PE
//!      expect forbidden r0=0
//!      PE 0:
//!        put x@1 1
//!        fence
//!        put y@1 1
//!      PE 1:
//!        wait_until y == 1
//!        r0 = read x",
//! )?;
//! let outcomes = model::outcomes(&program, MemoryModel::Ordered)?;
//! let all: Vec<_> = outcomes.iter().map(ToString::to_string).collect();
//! assert_eq!(all, ["r0=1"]);
//! # Ok::<(), oxshmem_litmus::Error>(())
//! ```
//!
//! # The format
//!
//! One program per text; `#` begins a comment. First comes the header:
//!
//! | line | says |
//! |---|---|
//! | `name mp+fence` | the program's name (needed) |
//! | `about …` | its purpose; may be repeated |
//! | `rules M17 M23` | the rules that it exercises |
//! | `models ordered` | the memory models that it is meant for (default: `ordered relaxed`) |
//! | `vars x d[2]` | symmetric variables, 64-bit words or arrays of them, 0 on every PE (needed before use) |
//! | `observe x@1` | adds the last value of `x` on PE 1 to the outcome |
//! | `expect [ordered\|relaxed] allowed\|forbidden r0=1 [x@1]=2` | some outcome, or no outcome, has all these values |
//! | `expect … deadlock` | the same for the outcome in which all PEs that are left wait for ever |
//!
//! Then come `PE n:` and this PE's statements, one a line, named as the library's calls. A register is
//! written once. `x@1` is `x` on PE 1; `d` is all words of `d`, `d[1]` one of them.
//!
//! | statement | also |
//! |---|---|
//! | `put d@1 1 2` | `put_nbi` |
//! | `r0 r1 = get d@1` | `get_nbi` |
//! | `set x@1 5`, `add`, `and`, `or`, `xor` | |
//! | `r0 = fetch x@1` | `fetch_nbi` |
//! | `r0 = swap x@1 5`, `fetch_add`, `fetch_and`, `fetch_or`, `fetch_xor` | each with `_nbi` |
//! | `r0 = compare_swap x@1 0 5` (if it is 0, then 5) | `compare_swap_nbi` |
//! | `put_signal d@1 1 2 then set y 1` (`y` on the same PE) | `then add`; `put_signal_nbi` |
//! | `write x 1`, `r0 = read x` (this PE's own) | |
//! | `wait_until y == 1` (`!=`, `<`, `<=`, `>`, `>=`; this PE's own) | |
//! | `r0 = signal_wait_until y >= 1` | without a register |
//! | `r0 = test y == 1` (1 or 0), `r0 = signal_fetch y` | |
//! | `fence`, `quiet`, `pe_quiet 1 2` | |
//! | `put_counted d@1 1 2 in y` (`y` on the same PE), `wait_counted y 2` (this PE's own) | |
//! | `set_lock`, `clear_lock` (a program has one) | |
//! | `barrier_all`, `sync_all`, `team_sync` | |
//! | `reduce`, `reduce_scatter`, `inscan`, `exscan`, `fcollect`, `collect`, `alltoall`, `alltoalls` (of words of their own) | |
//! | `broadcast x from y@0` (`y` of PE 0 to `x` of every PE) | |
//!
//! Puts, gets, atomics, put-with-signal, counted puts, fence, quiet and pe_quiet may say `ctx1`, `ctx2` or `ctx3`
//! first; else they use the default context.
//!
//! Nonblocking reads fill their registers by the next quiet. When all statements are done, all
//! operations are completed; then the observed words are read.
//!
//! [`model`] defines the abstract machine. [`kernels`] has programs of kernels, whose threads are a GPU's.

pub mod directed;
mod error;
mod events;
pub mod free;
pub mod kernels;
pub mod library;
pub mod limits;
mod machine;
pub mod machines;
pub mod model;
mod outcome;
mod outcomes;
mod parse;
mod print;
mod program;
mod report;
pub mod run;
mod translate;

pub use error::Error;
pub use outcome::{Outcome, Step};
pub use outcomes::Outcomes;
/// A comparison of a word with a value: `word CMP value`.
pub use oxshmem::Cmp;
pub use program::{
    Context, Expectation, Fetching, Meeting, MemoryModel, Pattern, Place, Program, Register,
    SignalOp, Statement, Update, Variable, Verdict, Words,
};
pub use report::{ForbiddenOutcome, Report, Schedule};
