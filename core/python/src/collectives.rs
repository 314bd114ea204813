//! Collective calls of teams, on blocks.
//!
//! Calls that move data take elements of a width, so that a mismatch is told in elements. Reductions have the element's type by its name.

use oxshmem::{Complex, Fold, Reducible, Sym, Team, bf16, f16};
use pyo3::prelude::*;

use crate::block::Block;
use crate::errors::{Done, Failure};
use crate::job::Job;

/// A part of a block as a call names it: its offset and its bytes.
type Part = (usize, usize);

/// Waits for all members of a team, and completes this PE's operations on the default context.
#[pyfunction]
pub(crate) fn barrier(py: Python<'_>, job: &Job, team: u64) -> PyResult<()> {
    job.run(py, |live| {
        live.default_context().quiet()?;
        live.with_team(team, |team| Ok(team.barrier()?))
    })
}

/// Waits for all members of a team, and completes nothing.
#[pyfunction]
pub(crate) fn sync(py: Python<'_>, job: &Job, team: u64) -> PyResult<()> {
    job.run(py, |live| live.with_team(team, |team| Ok(team.sync()?)))
}

/// Calls something with both objects, of elements of a width.
macro_rules! by_width {
    ($width:ident, |$dst:ident, $src:ident| $body:expr) => {{
        macro_rules! of {
            ($type:ty) => {{
                let ($dst, $src): (Sym<$type>, Sym<$type>) = ($dst.cast()?, $src.cast()?);
                $body
            }};
        }
        match $width {
            2 => of!(u16),
            4 => of!(u32),
            8 => of!(u64),
            16 => of!([u64; 2]),
            _ => of!(u8),
        }
    }};
}

/// The alignment of elements of a width.
fn align_of_width(width: usize) -> usize {
    match width {
        2 | 4 | 8 => width,
        16 => 8,
        _ => 1,
    }
}

/// The objects of a collective call: both parts, in live blocks and aligned.
fn parts(
    call: &'static str,
    (dst, to): (&Block, Part),
    (src, of): (&Block, Part),
    align: usize,
) -> Done<(Sym<u8>, Sym<u8>)> {
    let dst = dst.part(call, to.0, to.1)?;
    let src = src.part(call, of.0, of.1)?;
    for part in [dst, src] {
        let offset = part.offset();
        if !part.is_empty() && !offset.is_multiple_of(align as u64) {
            return Err(oxshmem::Error::Misaligned {
                call,
                offset,
                align,
            }
            .into());
        }
    }
    Ok((dst, src))
}

/// Makes a call of a team on two objects. A PE whose arguments make no sense refuses the call, so that it fails on the others, which are in the
/// call already or will be.
fn on_both<R: Send>(
    py: Python<'_>,
    job: &Job,
    call: &'static str,
    team: u64,
    dst: (&Block, Part),
    src: (&Block, Part),
    align: usize,
    act: impl FnOnce(&Team<'_>, Sym<u8>, Sym<u8>) -> Done<R> + Send,
) -> PyResult<R> {
    job.run(py, |live| {
        let parts = parts(call, dst, src, align);
        live.with_team(team, |team| {
            let (refused, failure) = match parts {
                Ok((dst, src)) => match act(team, dst, src) {
                    // These come before the library's call.
                    Err(failure @ Failure::Argument(..)) => (true, failure),
                    Err(failure) => (false, failure),
                    Ok(result) => return Ok(result),
                },
                Err(failure) => (true, failure),
            };
            if refused {
                let why = format!(
                    "PE {} gave a bad argument: {}",
                    team.my_pe(),
                    failure.words()
                );
                // It always fails; the error of this PE is the one to tell here.
                let _ = team.refuse(call, why);
            }
            Err(failure)
        })
    })
}

/// Takes the place of a collective call of which this PE's arguments make no sense, so that it fails on the others, too.
#[pyfunction]
pub(crate) fn refuse(
    py: Python<'_>,
    job: &Job,
    call: &str,
    team: u64,
    why: String,
) -> PyResult<()> {
    const CALLS: [&str; 9] = [
        "broadcast",
        "fcollect",
        "collect",
        "alltoall",
        "alltoalls",
        "reduce",
        "reduce_scatter",
        "inscan",
        "exscan",
    ];
    let known = CALLS.into_iter().find(|known| *known == call);
    job.run(py, |live| {
        live.with_team(team, |team| {
            let why = format!("PE {} gave a bad argument: {why}", team.my_pe());
            // It always fails; the caller raises the reason.
            let _ = team.refuse(known.unwrap_or("collective call"), why);
            Ok(())
        })
    })
}

/// Calls of a team that move elements of a width.
macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident $call:literal ($($more:ident: $type:ty)?) -> $result:ty;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        pub(crate) fn $name(
            py: Python<'_>,
            job: &Job,
            team: u64,
            dst: &Block,
            to: Part,
            src: &Block,
            of: Part,
            width: usize,
            $($more: $type,)?
        ) -> PyResult<$result> {
            let (dst, src) = ((dst, to), (src, of));
            let align = align_of_width(width);
            on_both(py, job, $call, team, dst, src, align, |team, dst, src| {
                by_width!(width, |dst, src| Ok(team.$name(dst, src $(, $more)?)?))
            })
        }
    )*};
}
moves! {
    /// One member's elements for all.
    broadcast "broadcast" (root: usize) -> ();
    /// All members' elements for all, the same number of each.
    fcollect "fcollect" () -> ();
    /// All members' elements for all, any number of each. Gives the number of this PE's bytes that come before it.
    collect "collect" () -> usize;
    /// A part of each member's elements for each.
    alltoall "alltoall" () -> ();
}

/// A part of each member's elements for each, with strides, in elements.
#[pyfunction]
pub(crate) fn alltoalls(
    py: Python<'_>,
    job: &Job,
    team: u64,
    dst: &Block,
    to: Part,
    src: &Block,
    of: Part,
    width: usize,
    strides: (usize, usize, usize),
) -> PyResult<()> {
    let (dst_stride, src_stride, count) = strides;
    let (dst, src) = ((dst, to), (src, of));
    on_both(
        py,
        job,
        "alltoalls",
        team,
        dst,
        src,
        align_of_width(width),
        |team, dst, src| {
            if !matches!(width, 1 | 2 | 4 | 8 | 16) {
                let what = format!(
                    "elements of {width} bytes; give those of 1, 2, 4, 8 or 16 bytes, or use alltoall"
                );
                return Err(Failure::Argument("alltoalls", what));
            }
            by_width!(width, |dst, src| Ok(
                team.alltoalls(dst, src, dst_stride, src_stride, count)?
            ))
        },
    )
}

/// An operation of a reduction by its name.
pub(crate) fn fold(call: &'static str, name: &str) -> Done<Fold> {
    let found = Fold::ALL.into_iter().find(|fold| fold.name() == name);
    found.ok_or_else(|| {
        let what = format!("{name:?} is no operation; give sum, prod, min, max, and, or, or xor");
        Failure::Argument(call, what)
    })
}

/// The alignment of elements of a type, by its name.
fn align_of_type(dtype: &str) -> usize {
    match dtype {
        "int16" | "uint16" | "float16" | "bfloat16" => 2,
        "int32" | "uint32" | "float32" | "complex64" => 4,
        "int64" | "uint64" | "float64" | "complex128" => 8,
        _ => 1,
    }
}

/// The calls that fold.
#[derive(Clone, Copy)]
enum Call {
    Reduce,
    Scatter,
    Inscan,
    Exscan,
}

fn folded<T: Reducible>(
    call: Call,
    team: &Team<'_>,
    dst: Sym<u8>,
    src: Sym<u8>,
    fold: Fold,
) -> Done {
    let (dst, src): (Sym<T>, Sym<T>) = (dst.cast()?, src.cast()?);
    Ok(match call {
        Call::Reduce => team.reduce(dst, src, fold),
        Call::Scatter => team.reduce_scatter(dst, src, fold),
        Call::Inscan => team.inscan(dst, src, fold),
        Call::Exscan => team.exscan(dst, src, fold),
    }?)
}

/// A reduction of all members' elements: `reduce`, `reduce_scatter`, `inscan` or `exscan`.
#[pyfunction]
pub(crate) fn reduce(
    py: Python<'_>,
    job: &Job,
    call: &str,
    team: u64,
    dst: &Block,
    to: Part,
    src: &Block,
    of: Part,
    dtype: &str,
    name: &str,
) -> PyResult<()> {
    let (call, kind) = match call {
        "reduce_scatter" => ("reduce_scatter", Call::Scatter),
        "inscan" => ("inscan", Call::Inscan),
        "exscan" => ("exscan", Call::Exscan),
        _ => ("reduce", Call::Reduce),
    };
    let (dst, src) = ((dst, to), (src, of));
    let align = align_of_type(dtype);
    on_both(py, job, call, team, dst, src, align, |team, dst, src| {
        let fold = fold(call, name)?;
        match dtype {
            "int8" => folded::<i8>(kind, team, dst, src, fold),
            "int16" => folded::<i16>(kind, team, dst, src, fold),
            "int32" => folded::<i32>(kind, team, dst, src, fold),
            "int64" => folded::<i64>(kind, team, dst, src, fold),
            "uint8" => folded::<u8>(kind, team, dst, src, fold),
            "uint16" => folded::<u16>(kind, team, dst, src, fold),
            "uint32" => folded::<u32>(kind, team, dst, src, fold),
            "uint64" => folded::<u64>(kind, team, dst, src, fold),
            "float16" => folded::<f16>(kind, team, dst, src, fold),
            "bfloat16" => folded::<bf16>(kind, team, dst, src, fold),
            "float32" => folded::<f32>(kind, team, dst, src, fold),
            "float64" => folded::<f64>(kind, team, dst, src, fold),
            "complex64" => folded::<Complex<f32>>(kind, team, dst, src, fold),
            "complex128" => folded::<Complex<f64>>(kind, team, dst, src, fold),
            other => {
                let what = format!(
                    "{other} has no sums; use a type of integers, floats or complex numbers"
                );
                Err(Failure::Argument(call, what))
            }
        }
    })
}
