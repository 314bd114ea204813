//! The executable model: the outcomes that the contract allows.
//!
//! An abstract machine has one memory of 64-bit words. Every word that a call reads or writes is
//! read or written at one moment, at which it is *performed*: visible to every PE (M24). All
//! executions of the machine are explored, so an outcome that is not found is forbidden. A PE makes its
//! calls in program order, and:
//!
//! - Puts, puts-with-signal, atomics that fetch nothing, stores to its own memory (`write`) and
//!   nonblocking operations are performed at any time after the call (M15), in any order, each word
//!   by itself, two puts to one word included; but a put-with-signal's signal after its data (M22).
//! - Gets, fetching atomics, waits and tests are performed before the call returns (M16).
//! - A `fence` puts earlier puts, puts-with-signal and atomics of its context before later ones of
//!   its context to the same PE; it puts earlier stores of the PE itself before later operations of
//!   its context to *any* PE, and before later stores (M17). Nonblocking updates count in the ordered
//!   model only (M18). Reads (get, `fetch`) are never ordered with writes by it.
//! - `quiet` returns when all operations of its context and all stores are performed (M19);
//!   `pe_quiet` waits for those towards the PEs named; `barrier_all` is a quiet of the default context
//!   and a meeting; `sync_all` waits for stores and meets, and so do `team_sync`, `reduce`, `reduce_scatter`,
//!   `fcollect`, `collect`, `alltoall` and `alltoalls`, in which each PE needs data of every other. In `inscan`
//!   and `exscan` a PE meets only those before it.
//! - `put_counted` is a put-with-signal that adds 1, `wait_counted` a wait for so many, which it subtracts again.
//!   `set_lock` is performed when no PE has the lock; `clear_lock` is a quiet of the default context, and then
//!   releases it.
//! - `broadcast` copies, word by word, the root's words at the time of its call. Each PE returns when its
//!   copy is done; the root waits for no PE. No PE writes those of the root's words meanwhile.
//! - In the ordered model reads that block are performed in program order (M20). In the relaxed model
//!   those of a run of them ([`Program::read_runs`]) are performed in any order, of one word too (M21).
//!   `fence` and every other call end a run. `wait_until`, `signal_wait_until`, `signal_fetch` and
//!   `test` are never part of one (M23).
//!
//! Visibility is global (M24): the outcomes that M25 permits in the relaxed model where a route crosses
//! a network are not in the sets. An outcome that only M16 forbids (as of `lb`) is forbidden in both
//! models: a read has returned before the next call is made.
//!
//! # A PE and its own writes
//!
//! Beyond the contract, a blocking read sees the blocking puts that its PE made to that word before,
//! on the same context, and its PE's own stores. It may see them early, as a processor sees what is in
//! its store buffer: the value of the PE's last write to the word, if that is a put, store or set that
//! is not yet performed. There is no such promise for atomics: `set x@1 1` and then `r0 = fetch x@1`
//! may give the old value, as may a get after an unfinished `add` or `put_nbi`.

use std::collections::{BTreeMap, HashSet};

use crate::error::Error;
use crate::machine::{Choice, Machine, State};
use crate::outcomes::Outcomes;
use crate::program::{MemoryModel, Program};

/// States that [`outcomes`] visits at most.
pub const STATES: usize = 500_000;

/// Bytes of all states at most.
const BYTES: usize = 512 * 1024 * 1024;

/// All outcomes that the contract allows for a program in this model.
///
/// # Errors
///
/// [`Error::TooManyStates`] beyond [`STATES`], or fewer where a program has many words.
pub fn outcomes(program: &Program, model: MemoryModel) -> Result<Outcomes<'_>, Error> {
    outcomes_within(program, model, STATES)
}

/// The same with a limit on the number of states.
///
/// # Errors
///
/// [`Error::TooManyStates`] beyond `states`, or fewer where a program has many words.
pub fn outcomes_within(
    program: &Program,
    model: MemoryModel,
    states: usize,
) -> Result<Outcomes<'_>, Error> {
    explore(Machine::of(program, model), model, states)
}

/// A state whose continuations are being explored.
struct Visit {
    state: State,
    choices: std::vec::IntoIter<Choice>,
}

/// Explores all states, depth first.
fn explore(machine: Machine<'_>, model: MemoryModel, states: usize) -> Result<Outcomes<'_>, Error> {
    let start = machine.start();
    let limit = states.min(BYTES / (2 * size_of_val(&*start.values) + 128));
    let mut allowed = BTreeMap::new();
    let mut path: Vec<Choice> = Vec::new();
    // Visits the state that a path leads to. If it is final, records its outcome.
    let mut visit = |state: State, path: &[Choice]| {
        let choices = machine.choices(&state);
        if choices.is_empty() {
            let outcome = machine.outcome(&state);
            allowed.entry(outcome).or_insert_with(|| path.into());
        }
        Visit {
            state,
            choices: choices.into_iter(),
        }
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut stack = vec![visit(start, &path)];
    while let Some(last) = stack.last_mut() {
        let Some(choice) = last.choices.next() else {
            stack.pop();
            path.pop();
            continue;
        };
        let state = machine.perform(&last.state, choice);
        if seen.contains(&state) {
            continue;
        }
        if seen.len() >= limit {
            return Err(Error::TooManyStates {
                name: machine.program.name().into(),
                states: limit,
            });
        }
        seen.insert(state.clone());
        path.push(choice);
        stack.push(visit(state, &path));
    }
    let states = seen.len();
    Ok(Outcomes {
        machine,
        model,
        allowed,
        states,
    })
}

#[cfg(test)]
mod tests;
