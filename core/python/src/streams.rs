//! Calls on streams: each only queues its operation. Buffers that it uses are held until the stream is synchronized.

use std::ptr::with_exposed_provenance_mut;

use oxshmem::cuda::{DevicePtr, Stream};
use oxshmem::{Error, Fold, GpuNumber, Sym, Team, World, bf16, bindings, f16};
use pyo3::prelude::*;

use crate::block::Block;
use crate::collectives::fold;
use crate::errors::{Done, Failure};
use crate::job::{DEFAULT, Job, Live};
use crate::own_stream::no_gpu;
use crate::rma::signal_op;
use crate::waits::comparison;

/// A part of a block as a call names it: its offset and its bytes.
type Part = (usize, usize);

/// The driver's stream of a handle.
fn borrow(call: &'static str, world: &World, handle: usize) -> Done<Stream> {
    let context = world.gpu_context().ok_or_else(|| no_gpu(call, world))?;
    // SAFETY: the program gives a stream of the driver's, and leaves it until its work is done (docs/python.md).
    let stream = unsafe { Stream::borrow(context, with_exposed_provenance_mut(handle)) };
    stream.map_err(|error| {
        Failure::Core(Error::Gpu {
            call,
            why: error.to_string(),
        })
    })
}

/// Does something on a stream.
fn on_stream<R>(
    live: &Live,
    call: &'static str,
    handle: usize,
    act: impl FnOnce(&World, &Stream) -> Done<R>,
) -> Done<R> {
    live.with_world(|world| act(world, &borrow(call, world, handle)?))
}

/// Queues a put.
#[pyfunction]
pub(crate) fn put_on_stream(
    py: Python<'_>,
    job: &Job,
    block: &Block,
    part: Part,
    source: usize,
    pe: usize,
    nonblocking: bool,
    stream: usize,
    owner: Py<PyAny>,
) -> PyResult<()> {
    const CALL: &str = "put_on_stream";
    job.run(py, |live| {
        let dst = block.part(CALL, part.0, part.1)?;
        live.keep_for_stream(stream, owner);
        on_stream(live, CALL, stream, |world, stream| {
            let (source, way) = (DevicePtr::from_raw(source as u64), (pe, nonblocking));
            // SAFETY: the source is the GPU's memory, whose owner is held until the stream is synchronized.
            Ok(unsafe { bindings::put_on_stream(world, CALL, dst, source, way, stream) }?)
        })
    })
}

/// Queues a get.
#[pyfunction]
pub(crate) fn get_on_stream(
    py: Python<'_>,
    job: &Job,
    block: &Block,
    part: Part,
    destination: usize,
    pe: usize,
    nonblocking: bool,
    stream: usize,
    owner: Py<PyAny>,
) -> PyResult<()> {
    const CALL: &str = "get_on_stream";
    job.run(py, |live| {
        let src = block.part(CALL, part.0, part.1)?;
        live.keep_for_stream(stream, owner);
        on_stream(live, CALL, stream, |world, stream| {
            let (to, way) = (DevicePtr::from_raw(destination as u64), (pe, nonblocking));
            // SAFETY: the destination is the GPU's memory, whose owner is held until the stream is synchronized.
            Ok(unsafe { bindings::get_on_stream(world, CALL, to, src, way, stream) }?)
        })
    })
}

/// Queues a put and the update of a signal behind it.
#[pyfunction]
pub(crate) fn put_signal_on_stream(
    py: Python<'_>,
    job: &Job,
    block: &Block,
    part: Part,
    source: usize,
    signal: (PyRef<'_, Block>, usize, u64, bool),
    pe: usize,
    nonblocking: bool,
    stream: usize,
    owner: Py<PyAny>,
) -> PyResult<()> {
    const CALL: &str = "put_signal_on_stream";
    let (word, at, value, is_add) = &signal;
    let (word, at, value, is_add) = (&**word, *at, *value, *is_add);
    job.run(py, |live| {
        let dst = block.part(CALL, part.0, part.1)?;
        let word = word.part(CALL, at, 8)?.cast::<u64>()?;
        live.keep_for_stream(stream, owner);
        on_stream(live, CALL, stream, |world, stream| {
            let copy = (dst, DevicePtr::from_raw(source as u64));
            let signal = (word, value, signal_op(is_add));
            let way = (pe, nonblocking);
            // SAFETY: the source is the GPU's memory, whose owner is held until the stream is synchronized.
            Ok(unsafe { bindings::put_signal_on_stream(world, CALL, copy, signal, way, stream) }?)
        })
    })
}

/// Queues the update of a signal.
#[pyfunction]
pub(crate) fn signal_on_stream(
    py: Python<'_>,
    job: &Job,
    block: &Block,
    offset: usize,
    value: u64,
    is_add: bool,
    pe: usize,
    stream: usize,
) -> PyResult<()> {
    const CALL: &str = "signal_on_stream";
    job.run(py, |live| {
        let word = block.part(CALL, offset, 8)?.cast::<u64>()?;
        on_stream(live, CALL, stream, |world, stream| {
            Ok(world.signal_on_stream(word, value, signal_op(is_add), pe, stream)?)
        })
    })
}

/// Queues a strided put or get, with strides in bytes.
#[pyfunction]
pub(crate) fn strided_on_stream(
    py: Python<'_>,
    job: &Job,
    is_get: bool,
    block: &Block,
    part: Part,
    stride: u64,
    local: (usize, u64),
    count: u64,
    width: u32,
    pe: usize,
    stream: usize,
    owner: Py<PyAny>,
) -> PyResult<()> {
    let call = if is_get {
        "iget_on_stream"
    } else {
        "iput_on_stream"
    };
    job.run(py, |live| {
        let symmetric = block.part(call, part.0, part.1)?;
        live.keep_for_stream(stream, owner);
        on_stream(live, call, stream, |world, stream| {
            let elements = bindings::StridedElements {
                symmetric,
                symmetric_stride: stride,
                local: DevicePtr::from_raw(local.0 as u64),
                local_stride: local.1,
                count,
                width,
            };
            // SAFETY: the elements are the GPU's memory, whose owner is held until the stream is synchronized.
            Ok(unsafe { bindings::strided_on_stream(world, call, is_get, elements, pe, stream) }?)
        })
    })
}

/// The bits of a PE's value, when the stream has reached the call.
#[pyfunction]
pub(crate) fn g_on_stream(
    py: Python<'_>,
    job: &Job,
    block: &Block,
    offset: usize,
    width: usize,
    pe: usize,
    stream: usize,
) -> PyResult<u64> {
    const CALL: &str = "g_on_stream";
    job.run(py, |live| {
        let part = block.part(CALL, offset, width)?;
        on_stream(live, CALL, stream, |world, stream| {
            Ok(match width {
                1 => u64::from(world.g_on_stream(part, pe, stream)?),
                2 => u64::from(world.g_on_stream(part.cast::<u16>()?, pe, stream)?),
                4 => u64::from(world.g_on_stream(part.cast::<u32>()?, pe, stream)?),
                8 => world.g_on_stream(part.cast::<u64>()?, pe, stream)?,
                _ => {
                    let what = format!("elements of {width} bytes; use get_on_stream");
                    return Err(Failure::Argument(CALL, what));
                }
            })
        })
    })
}

/// Queues a wait for all of this PE's words.
#[pyfunction]
pub(crate) fn wait_on_stream(
    py: Python<'_>,
    job: &Job,
    block: &Block,
    offset: usize,
    words: (usize, usize, bool),
    cmp: &str,
    value: u64,
    stream: usize,
) -> PyResult<()> {
    const CALL: &str = "wait_until_on_stream";
    let (count, width, is_signed) = words;
    job.run(py, |live| {
        let part = block.part(CALL, offset, count.saturating_mul(width))?;
        let cmp = comparison(CALL, cmp)?;
        if count == 1 && matches!(width, 4 | 8) {
            // One word needs no kernel of the device library.
            return on_stream(live, CALL, stream, |world, stream| {
                Ok(match (width, is_signed) {
                    (4, true) => {
                        world.wait_until_on_stream(part.cast()?, cmp, value as i32, stream)
                    }
                    (4, false) => {
                        world.wait_until_on_stream(part.cast()?, cmp, value as u32, stream)
                    }
                    (_, true) => {
                        world.wait_until_on_stream(part.cast()?, cmp, value as i64, stream)
                    }
                    (_, false) => world.wait_until_on_stream(part.cast()?, cmp, value, stream),
                }?)
            });
        }
        let awaited = bindings::WordsToAwait {
            words: part,
            count: count as u64,
            width: width as u32,
            is_signed,
            status: DevicePtr::from_raw(0),
            values: DevicePtr::from_raw(0),
            value,
            cmp,
        };
        on_stream(live, CALL, stream, |world, stream| {
            // SAFETY: there are neither statuses nor values.
            Ok(unsafe { bindings::wait_on_stream(world, CALL, awaited, stream) }?)
        })
    })
}

/// Queues the completion of the stream's operations.
#[pyfunction]
pub(crate) fn quiet_on_stream(py: Python<'_>, job: &Job, stream: usize) -> PyResult<()> {
    job.run(py, |live| {
        on_stream(live, "quiet_on_stream", stream, |world, stream| {
            Ok(world.quiet_on_stream(stream)?)
        })
    })
}

/// Waits for the stream's work, and gives up what that has used.
#[pyfunction]
pub(crate) fn synchronize(py: Python<'_>, job: &Job, stream: usize) -> PyResult<()> {
    job.run(py, |live| {
        on_stream(live, "synchronize", stream, |world, stream| {
            Ok(world.synchronize(stream)?)
        })?;
        live.is_synchronized(stream);
        Ok(())
    })
}

/// Makes a call of a team on a stream. The world's own calls need no device library where the team's do.
fn of_team(
    live: &Live,
    call: &'static str,
    team: u64,
    handle: usize,
    act: impl FnOnce(&Team<'_>, &Stream) -> Done,
) -> Done {
    live.with_team_and_world(team, |team, world| act(team, &borrow(call, world, handle)?))
}

/// Queues a barrier of a team.
#[pyfunction]
pub(crate) fn barrier_on_stream(
    py: Python<'_>,
    job: &Job,
    team: u64,
    stream: usize,
) -> PyResult<()> {
    const CALL: &str = "barrier_on_stream";
    job.run(py, |live| {
        if team == DEFAULT {
            return on_stream(live, CALL, stream, |world, stream| {
                Ok(world.barrier_all_on_stream(stream)?)
            });
        }
        of_team(live, CALL, team, stream, |team, stream| {
            Ok(team.barrier_on_stream(stream)?)
        })
    })
}

/// Queues a meeting of a team.
#[pyfunction]
pub(crate) fn sync_on_stream(py: Python<'_>, job: &Job, team: u64, stream: usize) -> PyResult<()> {
    const CALL: &str = "sync_on_stream";
    job.run(py, |live| {
        if team == DEFAULT {
            return on_stream(live, CALL, stream, |world, stream| {
                Ok(world.sync_all_on_stream(stream)?)
            });
        }
        of_team(live, CALL, team, stream, |team, stream| {
            Ok(team.sync_on_stream(stream)?)
        })
    })
}

/// Queues a call of a team that moves bytes.
macro_rules! moves {
    ($($(#[$doc:meta])* $name:ident $call:literal ($($more:ident: $type:ty)?);)*) => {$(
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
            $($more: $type,)?
            stream: usize,
        ) -> PyResult<()> {
            job.run(py, |live| {
                let dst = dst.part($call, to.0, to.1)?;
                let src = src.part($call, of.0, of.1)?;
                of_team(live, $call, team, stream, |team, stream| {
                    Ok(team.$name(dst, src, $($more,)? stream)?)
                })
            })
        }
    )*};
}
moves! {
    /// Queues a broadcast.
    broadcast_on_stream "broadcast_on_stream" (root: usize);
    /// Queues a collection of all members' bytes.
    fcollect_on_stream "fcollect_on_stream" ();
    /// Queues an exchange among all members.
    alltoall_on_stream "alltoall_on_stream" ();
}

fn folded<T: GpuNumber>(
    is_scatter: bool,
    team: &Team<'_>,
    (dst, src): (Sym<u8>, Sym<u8>),
    fold: Fold,
    stream: &Stream,
) -> Done {
    let (dst, src): (Sym<T>, Sym<T>) = (dst.cast()?, src.cast()?);
    Ok(match is_scatter {
        true => team.reduce_scatter_on_stream(dst, src, fold, stream),
        false => team.reduce_on_stream(dst, src, fold, stream),
    }?)
}

/// Queues a reduction.
#[pyfunction]
pub(crate) fn reduce_on_stream(
    py: Python<'_>,
    job: &Job,
    is_scatter: bool,
    team: u64,
    dst: &Block,
    to: Part,
    src: &Block,
    of: Part,
    dtype: &str,
    name: &str,
    stream: usize,
) -> PyResult<()> {
    const CALL: &str = "reduce_on_stream";
    job.run(py, |live| {
        let both = (dst.part(CALL, to.0, to.1)?, src.part(CALL, of.0, of.1)?);
        let fold = fold(CALL, name)?;
        of_team(live, CALL, team, stream, |team, stream| match dtype {
            "int8" => folded::<i8>(is_scatter, team, both, fold, stream),
            "int16" => folded::<i16>(is_scatter, team, both, fold, stream),
            "int32" => folded::<i32>(is_scatter, team, both, fold, stream),
            "int64" => folded::<i64>(is_scatter, team, both, fold, stream),
            "uint8" => folded::<u8>(is_scatter, team, both, fold, stream),
            "uint16" => folded::<u16>(is_scatter, team, both, fold, stream),
            "uint32" => folded::<u32>(is_scatter, team, both, fold, stream),
            "uint64" => folded::<u64>(is_scatter, team, both, fold, stream),
            "float16" => folded::<f16>(is_scatter, team, both, fold, stream),
            "bfloat16" => folded::<bf16>(is_scatter, team, both, fold, stream),
            "float32" => folded::<f32>(is_scatter, team, both, fold, stream),
            "float64" => folded::<f64>(is_scatter, team, both, fold, stream),
            other => {
                let what =
                    format!("{other} has no sums on a GPU; use a type of integers or floats");
                Err(Failure::Argument(CALL, what))
            }
        })
    })
}
