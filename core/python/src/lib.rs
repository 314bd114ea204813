//! The compiled part of the Python package `oxshmem`: the module `oxshmem._oxshmem`.
//!
//! Its functions take blocks, offsets and bytes, and addresses of local memory. The modules of `core/python/oxshmem` make them of arrays, and
//! keep what an address needs: so this module is private, and no program imports it.
//!
//! Each function lets other threads of the interpreter run while it works (`Job::run`). Errors are exceptions of `oxshmem.errors` that have
//! the fields of [`oxshmem::Error`] ([`errors`]). Nothing panics.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]
#![expect(
    clippy::too_many_arguments,
    reason = "the functions take what OpenSHMEM's calls do"
)]

mod atomics;
mod block;
mod collectives;
mod contexts;
mod dlpack;
mod errors;
mod exit;
mod gpu;
mod job;
mod order;
mod own_stream;
mod rma;
mod setup;
mod streams;
mod teams;
mod waits;

/// The module.
#[pyo3::pymodule]
mod _oxshmem {
    #[pymodule_export]
    use crate::atomics::{atomic, atomic_nbi};
    #[pymodule_export]
    use crate::block::{Block, Mapped, alloc, free, ptr};
    #[pymodule_export]
    use crate::collectives::{
        alltoall, alltoalls, barrier, broadcast, collect, fcollect, reduce, refuse, sync,
    };
    #[pymodule_export]
    use crate::contexts::{context_create, context_destroy};
    #[pymodule_export]
    use crate::dlpack::{Tensor, dlpack_export, dlpack_import};
    #[pymodule_export]
    use crate::gpu::{copy_gpu, gpu_number, gpu_put, open_device_library, own_stream, why_no_gpu};
    #[pymodule_export]
    use crate::job::Job;
    #[pymodule_export]
    use crate::order::{
        clear_lock, fence, is_accessible, progress, quiet, set_lock, signal_fetch, test_lock,
    };
    #[pymodule_export]
    use crate::rma::{
        g, get, get_blocks, get_into, get_nbi, p, put, put_blocks, put_from, put_nbi, put_signal,
        signal,
    };
    #[pymodule_export]
    use crate::setup::{abandon, acknowledge_lost, finalize, global_exit, init};
    #[pymodule_export]
    use crate::streams::{
        alltoall_on_stream, barrier_on_stream, broadcast_on_stream, fcollect_on_stream,
        g_on_stream, get_on_stream, put_on_stream, put_signal_on_stream, quiet_on_stream,
        reduce_on_stream, signal_on_stream, strided_on_stream, sync_on_stream, synchronize,
        wait_on_stream,
    };
    #[pymodule_export]
    use crate::teams::{
        team_destroy, team_device_number, team_leave, team_members, team_split_2d,
        team_split_colors, team_split_list, team_split_strided,
    };
    #[pymodule_export]
    use crate::waits::wait;
}
