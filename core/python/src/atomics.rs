//! Atomics, by their bits: words of 4 and 8 bytes.

use std::ptr::with_exposed_provenance_mut;

use oxshmem::{AtomicOp, Context, Sym};
use pyo3::prelude::*;

use crate::block::Block;
use crate::errors::{Done, Failure};
use crate::job::Job;

const CALL: &str = "atomic";

fn operation(name: &str) -> Done<AtomicOp> {
    Ok(match name {
        "fetch" => AtomicOp::Fetch,
        "set" => AtomicOp::Set,
        "swap" => AtomicOp::Swap,
        "compare_swap" => AtomicOp::CompareSwap,
        "add" | "fetch_add" => AtomicOp::Add,
        "and" | "fetch_and" => AtomicOp::And,
        "or" | "fetch_or" => AtomicOp::Or,
        "xor" | "fetch_xor" => AtomicOp::Xor,
        _ => {
            return Err(Failure::Argument(
                CALL,
                format!("{name:?} is no operation; use the methods of a context"),
            ));
        }
    })
}

/// Makes a call of a word's type.
macro_rules! perform {
    ($context:ident, $name:ident, $word:ident: $type:ty, $value:ident, $compare:ident, $pe:ident) => {{
        let (value, compare) = ($value as $type, $compare as $type);
        let old: oxshmem::Result<$type> = match $name {
            "fetch" => $context.fetch($word, $pe),
            "swap" => $context.swap($word, value, $pe),
            "compare_swap" => $context.compare_swap($word, compare, value, $pe),
            "fetch_add" => $context.fetch_add($word, value, $pe),
            "fetch_and" => $context.fetch_and($word, value, $pe),
            "fetch_or" => $context.fetch_or($word, value, $pe),
            "fetch_xor" => $context.fetch_xor($word, value, $pe),
            "set" => $context.set($word, value, $pe).map(|()| 0),
            "add" => $context.add($word, value, $pe).map(|()| 0),
            "and" => $context.and($word, value, $pe).map(|()| 0),
            "or" => $context.or($word, value, $pe).map(|()| 0),
            "xor" => $context.xor($word, value, $pe).map(|()| 0),
            _ => return operation($name).map(|_| 0),
        };
        Ok(u64::from(old?))
    }};
}

fn refuse_width(width: usize) -> Failure {
    Failure::Argument(
        CALL,
        format!(
            "atomics are of words of 4 and 8 bytes, not {width}; use int32, int64, uint32, uint64, float32 or float64"
        ),
    )
}

/// An atomic on a PE's word. Gives the old bits, or 0.
#[pyfunction]
pub(crate) fn atomic(
    py: Python<'_>,
    job: &Job,
    context: u64,
    name: &str,
    block: &Block,
    offset: usize,
    width: usize,
    value: u64,
    compare: u64,
    pe: usize,
) -> PyResult<u64> {
    job.run(py, |live| {
        let part = block.part(CALL, offset, width)?;
        let entry = live.context(context)?;
        let context = entry.lock();
        match width {
            4 => {
                let word: Sym<u32> = part.cast()?;
                perform!(context, name, word: u32, value, compare, pe)
            }
            8 => {
                let word: Sym<u64> = part.cast()?;
                perform!(context, name, word: u64, value, compare, pe)
            }
            _ => Err(refuse_width(width)),
        }
    })
}

/// An atomic whose old value is at an address after the context's next quiet.
#[pyfunction]
pub(crate) fn atomic_nbi(
    py: Python<'_>,
    job: &Job,
    context: u64,
    name: &str,
    block: &Block,
    offset: usize,
    width: usize,
    value: u64,
    compare: u64,
    pe: usize,
    result: (usize, Py<PyAny>),
) -> PyResult<()> {
    let (result, owner) = result;
    job.run(py, |live| {
        let op = operation(name)?;
        let part = block.part(CALL, offset, width)?;
        let entry = live.context(context)?;
        match width {
            4 => {
                let word: Sym<u32> = part.cast()?;
                entry.issue(owner, |context: &Context<'static>| {
                    let result = with_exposed_provenance_mut(result);
                    // SAFETY: the entry holds the result's owner until a quiet has completed the call.
                    unsafe {
                        context.atomic_nbi(op, result, word, value as u32, compare as u32, pe)
                    }
                })
            }
            8 => {
                let word: Sym<u64> = part.cast()?;
                entry.issue(owner, |context: &Context<'static>| {
                    let result = with_exposed_provenance_mut(result);
                    // SAFETY: as above.
                    unsafe { context.atomic_nbi(op, result, word, value, compare, pe) }
                })
            }
            _ => Err(refuse_width(width)),
        }
    })
}
