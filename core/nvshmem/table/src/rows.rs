//! The table.

use crate::types::Set;

/// A form of a family's call: where it can be made, and by which threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// On the host alone.
    Host,
    /// On the host, and by one thread of a kernel.
    Both,
    /// By one thread of a kernel alone.
    Device,
    /// By a warp.
    Warp,
    /// By the four warps of a warp group.
    Warpgroup,
    /// By a block.
    Block,
    /// On the host, in the order of a stream.
    OnStream,
    /// By one thread, through a queue pair.
    Qp,
    /// By a warp, through a queue pair.
    QpWarp,
    /// By a block, through a queue pair.
    QpBlock,
}

impl Form {
    /// Behind the name of a function of this form.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Host | Both | Device | Qp => "",
            Warp | QpWarp => "_warp",
            Warpgroup => "_warpgroup",
            Block | QpBlock => "_block",
            OnStream => "_on_stream",
        }
    }

    /// Whether the call goes through a queue pair.
    #[must_use]
    pub fn has_qp(self) -> bool {
        matches!(self, Qp | QpWarp | QpBlock)
    }

    /// Whether the host can make the call.
    #[must_use]
    pub fn on_host(self) -> bool {
        matches!(self, Host | Both | OnStream)
    }

    /// Whether kernels can make the call.
    #[must_use]
    pub fn in_kernels(self) -> bool {
        !matches!(self, Host | OnStream)
    }

    /// The threads of a kernel that make the call together.
    #[must_use]
    pub fn scope(self) -> &'static str {
        match self {
            Warp | QpWarp => "oxshmem::warp()",
            Warpgroup => "nvshmem_ox::warpgroup()",
            Block | QpBlock => "oxshmem::block()",
            Host | Both | Device | OnStream | Qp => "oxshmem::thread()",
        }
    }
}

use Form::{Block, Both, Device, Host, OnStream, Qp, QpBlock, QpWarp, Warp, Warpgroup};

/// A family of functions.
#[derive(Debug)]
pub struct Row {
    /// The name of its form for the host or one thread, with `%` in place of the type.
    pub name: &'static str,
    /// The types that there is a function of.
    pub types: Set,
    /// Its forms.
    pub forms: &'static [Form],
    /// The type that it returns, in C, where `T` is the type of elements.
    pub returns: &'static str,
    /// Its parameters in C, without stream and queue pair.
    pub params: &'static str,
    /// The Rust function that implements it on the host. On a stream it is the function of that name in `streams`. Behind a
    /// space: arguments between the call's name and the parameters.
    pub host: &'static str,
    /// The body in kernels, in C++: `{S}` is the scope, `{T}` the type of elements, `{C}` its [canonical] type, `{W}` the word of its
    /// size, `{I}` the same with 16 bytes, too, `{N}` its number of bytes.
    ///
    /// [canonical]: crate::types::Type::canonical
    pub device: &'static str,
    /// Whether its functions are templates in kernels, which a compiler makes when they are called: they have code of their own
    /// for each type.
    pub lazy: bool,
}

const fn row(
    name: &'static str,
    types: Set,
    forms: &'static [Form],
    returns: &'static str,
    params: &'static str,
    host: &'static str,
    device: &'static str,
) -> Row {
    Row {
        name,
        types,
        forms,
        returns,
        params,
        host,
        device,
        lazy: false,
    }
}

const fn lazy(row: Row) -> Row {
    Row { lazy: true, ..row }
}

const PUT: &str = "T *dest, const T *source, size_t nelems, int pe";
const MEM: &str = "T *dest, const T *source, size_t bytes, int pe";
const STRIDED: &str =
    "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe";
const PUT_SIGNAL: &str = "T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe";
const MEM_SIGNAL: &str = "T *dest, const T *source, size_t bytes, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe";
const COLLECTIVE: &str = "nvshmem_team_t team, T *dest, const T *source, size_t nelems";
const BROADCAST: &str = "nvshmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root";
const REDUCE: &str = "nvshmem_team_t team, T *dest, const T *source, size_t nreduce";
const ATOMIC: &str = "T *dest, T value, int pe";
const SIGNAL: &str = "uint64_t *sig_addr, uint64_t signal, int sig_op, int pe";
const WAIT: &str = "T *ivar, int cmp, T cmp_value";
const WAIT_SET: &str = "T *ivars, size_t nelems, const int *status, int cmp, T cmp_value";
const WAIT_SOME: &str =
    "T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value";
const WAIT_VECTOR: &str = "T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values";
const WAIT_SOME_VECTOR: &str =
    "T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T *cmp_values";
const QPS: &str = "int pe, nvshmemx_qp_handle_t *qp_handle, int num_qps";

const SCOPED: &[Form] = &[Both, Warp, Block, OnStream];
const ALL: &[Form] = &[Both, Warp, Block, OnStream, Qp, QpWarp, QpBlock];
const SIGNALLED: &[Form] = &[Device, Warp, Block, OnStream];
const ALL_SIGNALLED: &[Form] = &[Device, Warp, Block, OnStream, Qp, QpWarp, QpBlock];

/// All families.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    // Setup, exit, queries.
    row("nvshmem_init", Set::None, &[Host], "void", "", "setup::init", ""),
    row("nvshmem_init_thread", Set::None, &[Host], "int", "int requested, int *provided", "setup::init_thread", ""),
    row("nvshmem_query_thread", Set::None, &[Host], "void", "int *provided", "setup::query_thread", ""),
    row("nvshmem_finalize", Set::None, &[Host], "void", "", "setup::finalize", ""),
    row("nvshmem_global_exit", Set::None, &[Both], "void", "int status", "setup::global_exit", "nvshmem_ox::global_exit(status);"),
    row("nvshmem_my_pe", Set::None, &[Both], "int", "", "setup::my_pe", "return oxshmem::my_pe();"),
    row("nvshmem_n_pes", Set::None, &[Both], "int", "", "setup::n_pes", "return oxshmem::n_pes();"),
    row("nvshmem_info_get_version", Set::None, &[Both], "void", "int *major, int *minor", "setup::info_get_version", "nvshmem_ox::version(major, minor);"),
    row("nvshmem_info_get_name", Set::None, &[Both], "void", "char *name", "setup::info_get_name", "nvshmem_ox::name(name);"),
    row("nvshmemx_vendor_get_version_info", Set::None, &[Both], "void", "int *major, int *minor, int *patch", "setup::vendor_get_version_info", "nvshmem_ox::vendor_version(major, minor, patch);"),
    row("nvshmemx_init_attr", Set::None, &[Host], "int", "unsigned int flags, nvshmemx_init_attr_t *attributes", "setup::init_attr", ""),
    row("nvshmemx_init_status", Set::None, &[Host], "int", "", "setup::init_status", ""),
    row("nvshmemx_hostlib_init_attr", Set::None, &[Host], "int", "unsigned int flags, nvshmemx_init_attr_t *attr", "setup::hostlib_init_attr", ""),
    row("nvshmemx_hostlib_finalize", Set::None, &[Host], "void", "", "setup::hostlib_finalize", ""),
    row("nvshmemid_hostlib_init_attr", Set::None, &[Host], "int", "int requested, int *provided, unsigned int bootstrap_flags, nvshmemx_init_attr_t *attr, nvshmemi_version_t nvshmem_device_lib_version, nvshmemx_device_lib_init_cb cb", "setup::id_hostlib_init_attr", ""),
    row("nvshmemid_hostlib_finalize", Set::None, &[Host], "void", "void *device_ctx, void *transport_device_ctx", "setup::id_hostlib_finalize", ""),
    row("nvshmemid_init_status", Set::None, &[Host], "int", "", "setup::init_status", ""),
    row("nvshmemx_status_string", Set::None, &[Host], "const char *", "int status", "setup::status_string", ""),
    row("nvshmemx_get_uniqueid", Set::None, &[Host], "int", "nvshmemx_uniqueid_t *uniqueid", "attributes::get_uniqueid", ""),
    row("nvshmemx_set_attr_uniqueid_args", Set::None, &[Host], "int", "const int myrank, const int nranks, const nvshmemx_uniqueid_t *uniqueid, nvshmemx_init_attr_t *attr", "attributes::set_attr_uniqueid_args", ""),
    row("nvshmemx_set_attr_mpi_comm_args", Set::None, &[Host], "int", "void *mpi_comm, nvshmemx_init_attr_t *nvshmem_attr", "attributes::set_attr_mpi_comm_args", ""),
    row("nvshmemx_cumodule_init", Set::None, &[Host], "int", "CUmodule module", "modules::cumodule_init", ""),
    row("nvshmemx_cumodule_finalize", Set::None, &[Host], "int", "CUmodule module", "modules::cumodule_finalize", ""),
    row("nvshmemx_culibrary_init", Set::None, &[Host], "int", "CUlibrary library", "modules::culibrary_init", ""),
    row("nvshmemx_culibrary_finalize", Set::None, &[Host], "int", "CUlibrary library", "modules::culibrary_finalize", ""),

    // Kernels that run on all PEs together. The headers have them inline; the exports are for other languages.
    row("nvshmemx_collective_launch", Set::None, &[Host], "int", "const void *func, dim3 gridDims, dim3 blockDims, void **args, size_t sharedMem, cudaStream_t stream", "launch::collective_launch", ""),
    row("nvshmemx_collective_launch_query_gridsize", Set::None, &[Host], "int", "const void *func, dim3 blockDims, void **args, size_t sharedMem, int *gridsize", "launch::collective_launch_query_gridsize", ""),
    row("nvshmemx_collective_launch_attr", Set::None, &[Host], "int", "const nvshmemx_collective_launch_attr_t *attr, const void *func, void **args", "launch::collective_launch_attr", ""),

    // Memory.
    row("nvshmem_malloc", Set::None, &[Host], "void *", "size_t size", "memory::malloc", ""),
    row("nvshmem_calloc", Set::None, &[Host], "void *", "size_t count, size_t size", "memory::calloc", ""),
    row("nvshmem_align", Set::None, &[Host], "void *", "size_t alignment, size_t size", "memory::align", ""),
    row("nvshmem_free", Set::None, &[Host], "void", "void *ptr", "memory::free", ""),
    row("nvshmem_ptr", Set::None, &[Both], "void *", "const void *ptr, int pe", "memory::ptr", "return oxshmem::ptr((char *)ptr, pe);"),
    row("nvshmemx_mc_ptr", Set::None, &[Both], "void *", "nvshmem_team_t team, const void *ptr", "memory::mc_ptr", "return nvshmem_ox::mc_ptr(team, ptr);"),
    row("nvshmemx_buffer_register", Set::None, &[Host], "int", "void *addr, size_t length", "memory::buffer_register", ""),
    row("nvshmemx_buffer_unregister", Set::None, &[Host], "int", "void *addr", "memory::buffer_unregister", ""),
    row("nvshmemx_buffer_unregister_all", Set::None, &[Host], "void", "", "memory::buffer_unregister_all", ""),
    row("nvshmemx_buffer_register_symmetric", Set::None, &[Host], "void *", "void *buf_ptr, size_t size, int flags", "memory::buffer_register_symmetric", ""),
    row("nvshmemx_buffer_register_symmetric_at_preferred_address", Set::None, &[Host], "void *", "void *buf_ptr, size_t size, void *preferred_addr, int flags", "memory::buffer_register_symmetric_at_preferred_address", ""),
    row("nvshmemx_buffer_unregister_symmetric", Set::None, &[Host], "int", "void *mmap_ptr, size_t size", "memory::buffer_unregister_symmetric", ""),

    // Teams.
    row("nvshmem_team_my_pe", Set::None, &[Both], "int", "nvshmem_team_t team", "teams::my_pe", "return nvshmem_ox::team_my_pe(team);"),
    row("nvshmem_team_n_pes", Set::None, &[Both], "int", "nvshmem_team_t team", "teams::n_pes", "return nvshmem_ox::team_n_pes(team);"),
    row("nvshmem_team_translate_pe", Set::None, &[Both], "int", "nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team", "teams::translate_pe", "return nvshmem_ox::team_translate_pe(src_team, src_pe, dest_team);"),
    row("nvshmem_team_get_config", Set::None, &[Host], "void", "nvshmem_team_t team, nvshmem_team_config_t *config", "teams::get_config", ""),
    row("nvshmem_team_split_strided", Set::None, &[Host], "int", "nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size, const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team", "teams::split_strided", ""),
    row("nvshmem_team_split_2d", Set::None, &[Host], "int", "nvshmem_team_t parent_team, int xrange, const nvshmem_team_config_t *xaxis_config, long xaxis_mask, nvshmem_team_t *xaxis_team, const nvshmem_team_config_t *yaxis_config, long yaxis_mask, nvshmem_team_t *yaxis_team", "teams::split_2d", ""),
    row("nvshmem_team_destroy", Set::None, &[Host], "void", "nvshmem_team_t team", "teams::destroy", ""),
    row("nvshmemx_team_get_uniqueid", Set::None, &[Host], "int", "nvshmemx_team_uniqueid_t *uniqueid", "teams::get_uniqueid", ""),
    row("nvshmemx_team_init", Set::None, &[Host], "int", "nvshmem_team_t *team, nvshmem_team_config_t *config, long config_mask, int npes, int pe_idx_in_team", "teams::init", ""),

    // Order, and meetings.
    row("nvshmem_fence", Set::None, &[Both], "void", "", "rma::fence", "oxshmem::fence();"),
    row("nvshmem_quiet", Set::None, &[Both, OnStream], "void", "", "rma::quiet", "oxshmem::quiet();"),
    row("nvshmemx_flush", Set::None, &[Both, Warp, Block, OnStream], "void", "", "rma::flush", "nvshmem_ox::flush({S});"),
    row("nvshmem_barrier", Set::None, &[Both, Warp, Warpgroup, Block, OnStream], "int", "nvshmem_team_t team", "collectives::barrier", "return nvshmem_ox::barrier({S}, team);"),
    row("nvshmem_barrier_all", Set::None, SCOPED, "void", "", "collectives::barrier_all", "oxshmem::barrier_all({S});"),
    row("nvshmem_team_sync", Set::None, SCOPED, "int", "nvshmem_team_t team", "collectives::sync", "return oxshmem::sync({S}, team);"),
    row("nvshmem_sync_all", Set::None, SCOPED, "void", "", "collectives::sync_all", "oxshmem::sync_all({S});"),
    row("nvshmemx_qp_fence", Set::None, &[Device, Warp, Block], "void", QPS, "", "nvshmem_ox::qp_fence({S});"),
    row("nvshmemx_qp_quiet", Set::None, &[Device, Warp, Block], "void", QPS, "", "nvshmem_ox::qp_quiet({S});"),
    row("nvshmemx_qp_create", Set::None, &[Host], "int", "int num_qps, nvshmemx_qp_handle_t **out_qp_array", "rma::qp_create", ""),

    // Put and get.
    row("nvshmem_%_put", Set::Rma, ALL, "void", PUT, "rma::put", "nvshmem_ox::put({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_put%", Set::Sizes, SCOPED, "void", PUT, "rma::put", "nvshmem_ox::put({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_put%", Set::Mem, SCOPED, "void", MEM, "rma::put", "nvshmem_ox::put({S}, dest, source, 1, bytes, pe);"),
    row("nvshmem_%_put_nbi", Set::Rma, ALL, "void", PUT, "rma::put_nbi", "nvshmem_ox::put_nbi({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_put%_nbi", Set::Sizes, SCOPED, "void", PUT, "rma::put_nbi", "nvshmem_ox::put_nbi({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_put%_nbi", Set::Mem, SCOPED, "void", MEM, "rma::put_nbi", "nvshmem_ox::put_nbi({S}, dest, source, 1, bytes, pe);"),
    row("nvshmem_%_get", Set::Rma, ALL, "void", PUT, "rma::get", "nvshmem_ox::get({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_get%", Set::Sizes, SCOPED, "void", PUT, "rma::get", "nvshmem_ox::get({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_get%", Set::Mem, SCOPED, "void", MEM, "rma::get", "nvshmem_ox::get({S}, dest, source, 1, bytes, pe);"),
    row("nvshmem_%_get_nbi", Set::Rma, ALL, "void", PUT, "rma::get_nbi", "nvshmem_ox::get_nbi({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_get%_nbi", Set::Sizes, SCOPED, "void", PUT, "rma::get_nbi", "nvshmem_ox::get_nbi({S}, dest, source, {N}, nelems, pe);"),
    row("nvshmem_get%_nbi", Set::Mem, SCOPED, "void", MEM, "rma::get_nbi", "nvshmem_ox::get_nbi({S}, dest, source, 1, bytes, pe);"),
    row("nvshmem_%_iput", Set::Rma, SCOPED, "void", STRIDED, "rma::iput", "oxshmem::iput({S}, ({I} *)dest, (const {I} *)source, dst, sst, nelems, pe);"),
    row("nvshmem_iput%", Set::Sizes, SCOPED, "void", STRIDED, "rma::iput", "oxshmem::iput({S}, ({I} *)dest, (const {I} *)source, dst, sst, nelems, pe);"),
    row("nvshmem_%_iget", Set::Rma, SCOPED, "void", STRIDED, "rma::iget", "oxshmem::iget({S}, ({I} *)dest, (const {I} *)source, dst, sst, nelems, pe);"),
    row("nvshmem_iget%", Set::Sizes, SCOPED, "void", STRIDED, "rma::iget", "oxshmem::iget({S}, ({I} *)dest, (const {I} *)source, dst, sst, nelems, pe);"),
    row("nvshmem_%_p", Set::Rma, &[Both, OnStream, Qp], "void", "T *dest, const T value, int pe", "rma::p", "oxshmem::p(dest, value, pe);"),
    row("nvshmem_%_g", Set::Rma, &[Both, OnStream, Qp], "T", "const T *source, int pe", "rma::g", "return oxshmem::g(source, pe);"),

    // Signals.
    row("nvshmem_%_put_signal", Set::Rma, ALL_SIGNALLED, "void", PUT_SIGNAL, "rma::put_signal", "nvshmem_ox::put_signal({S}, dest, source, {N}, nelems, sig_addr, signal, sig_op, pe);"),
    row("nvshmem_put%_signal", Set::Sizes, SIGNALLED, "void", PUT_SIGNAL, "rma::put_signal", "nvshmem_ox::put_signal({S}, dest, source, {N}, nelems, sig_addr, signal, sig_op, pe);"),
    row("nvshmem_put%_signal", Set::Mem, SIGNALLED, "void", MEM_SIGNAL, "rma::put_signal", "nvshmem_ox::put_signal({S}, dest, source, 1, bytes, sig_addr, signal, sig_op, pe);"),
    row("nvshmem_put%_signal", Set::Misspelt, &[Warp, Block], "void", PUT_SIGNAL, "rma::put_signal", "nvshmem_ox::put_signal({S}, dest, source, {N}, nelems, sig_addr, signal, sig_op, pe);"),
    row("nvshmem_%_put_signal_nbi", Set::Rma, ALL_SIGNALLED, "void", PUT_SIGNAL, "rma::put_signal_nbi", "nvshmem_ox::put_signal_nbi({S}, dest, source, {N}, nelems, sig_addr, signal, sig_op, pe);"),
    row("nvshmem_put%_signal_nbi", Set::Sizes, SIGNALLED, "void", PUT_SIGNAL, "rma::put_signal_nbi", "nvshmem_ox::put_signal_nbi({S}, dest, source, {N}, nelems, sig_addr, signal, sig_op, pe);"),
    row("nvshmem_put%_signal_nbi", Set::Mem, SIGNALLED, "void", MEM_SIGNAL, "rma::put_signal_nbi", "nvshmem_ox::put_signal_nbi({S}, dest, source, 1, bytes, sig_addr, signal, sig_op, pe);"),
    row("nvshmem_put%_signal_nbi", Set::Misspelt, &[Warp, Block], "void", PUT_SIGNAL, "rma::put_signal_nbi", "nvshmem_ox::put_signal_nbi({S}, dest, source, {N}, nelems, sig_addr, signal, sig_op, pe);"),
    row("nvshmemx_signal_op", Set::None, &[Device, OnStream, Qp], "void", SIGNAL, "rma::signal_op", "nvshmem_ox::signal_op(sig_addr, signal, sig_op, pe);"),
    row("nvshmem_signal_fetch", Set::None, &[Both], "uint64_t", "uint64_t *sig_addr", "rma::signal_fetch", "return oxshmem::signal_fetch(sig_addr);"),
    row("nvshmem_signal_wait_until", Set::None, &[OnStream], "void", "uint64_t *sig_addr, int cmp, uint64_t cmp_value", "waits::signal_wait_until", ""),
    row("nvshmem_signal_wait_until", Set::None, &[Device], "uint64_t", "uint64_t *sig_addr, int cmp, uint64_t cmp_value", "", "return oxshmem::signal_wait_until(sig_addr, nvshmem_ox::compare(cmp), cmp_value);"),
    row("nvshmemx_signal_counted_reset", Set::None, &[Both], "void", "uint64_t *signal_addr", "rma::signal_counted_reset", "nvshmem_ox::signal_counted_reset(signal_addr);"),

    // Atomics. On the host each waits until it is performed.
    row("nvshmem_%_atomic_fetch", Set::Extended, &[Both], "T", "const T *source, int pe", "atomics::fetch", "return nvshmem_ox::atomic_fetch(source, pe);"),
    row("nvshmem_%_atomic_set", Set::Extended, &[Both], "void", ATOMIC, "atomics::set", "nvshmem_ox::atomic_set(dest, value, pe);"),
    row("nvshmem_%_atomic_swap", Set::Extended, &[Both], "T", ATOMIC, "atomics::swap", "return nvshmem_ox::atomic_swap(dest, value, pe);"),
    row("nvshmem_%_atomic_compare_swap", Set::Standard, &[Both], "T", "T *dest, T cond, T value, int pe", "atomics::compare_swap", "return (T)oxshmem::atomic_compare_swap(({W} *)dest, ({W})cond, ({W})value, pe);"),
    row("nvshmem_%_atomic_inc", Set::Standard, &[Both], "void", "T *dest, int pe", "atomics::inc", "oxshmem::atomic_inc(({W} *)dest, pe);"),
    row("nvshmem_%_atomic_fetch_inc", Set::Standard, &[Both], "T", "T *dest, int pe", "atomics::fetch_inc", "return (T)oxshmem::atomic_fetch_inc(({W} *)dest, pe);"),
    row("nvshmem_%_atomic_add", Set::Standard, &[Both], "void", ATOMIC, "atomics::add", "oxshmem::atomic_add(({W} *)dest, ({W})value, pe);"),
    row("nvshmem_%_atomic_fetch_add", Set::Standard, &[Both], "T", ATOMIC, "atomics::fetch_add", "return (T)oxshmem::atomic_fetch_add(({W} *)dest, ({W})value, pe);"),
    row("nvshmem_%_atomic_and", Set::Bitwise, &[Both], "void", ATOMIC, "atomics::and", "oxshmem::atomic_and(({W} *)dest, ({W})value, pe);"),
    row("nvshmem_%_atomic_fetch_and", Set::Bitwise, &[Both], "T", ATOMIC, "atomics::fetch_and", "return (T)oxshmem::atomic_fetch_and(({W} *)dest, ({W})value, pe);"),
    row("nvshmem_%_atomic_or", Set::Bitwise, &[Both], "void", ATOMIC, "atomics::or", "oxshmem::atomic_or(({W} *)dest, ({W})value, pe);"),
    row("nvshmem_%_atomic_fetch_or", Set::Bitwise, &[Both], "T", ATOMIC, "atomics::fetch_or", "return (T)oxshmem::atomic_fetch_or(({W} *)dest, ({W})value, pe);"),
    row("nvshmem_%_atomic_xor", Set::Bitwise, &[Both], "void", ATOMIC, "atomics::xor", "oxshmem::atomic_xor(({W} *)dest, ({W})value, pe);"),
    row("nvshmem_%_atomic_fetch_xor", Set::Bitwise, &[Both], "T", ATOMIC, "atomics::fetch_xor", "return (T)oxshmem::atomic_fetch_xor(({W} *)dest, ({W})value, pe);"),
    row("nvshmemx_%_atomic_add", Set::FloatAdd, &[Both], "void", ATOMIC, "atomics::add_float", "nvshmem_ox::atomic_add(dest, value, pe);"),
    row("nvshmemx_%_atomic_fetch_add", Set::FloatAdd, &[Both], "T", ATOMIC, "atomics::fetch_add_float", "return nvshmem_ox::atomic_fetch_add(dest, value, pe);"),

    // Waits and tests on this PE's own words.
    row("nvshmem_%_wait_until", Set::Wait, &[Device, OnStream], "void", WAIT, "waits::wait_until", "oxshmem::wait_until(({C} *)ivar, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_wait_until_all", Set::Wait, &[Device, OnStream], "void", WAIT_SET, "waits::wait_until_all", "oxshmem::wait_until_all(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_wait_until_all_vector", Set::Wait, &[Device, OnStream], "void", WAIT_VECTOR, "waits::wait_until_all_vector", "oxshmem::wait_until_all_vector(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), (const {C} *)cmp_values);"),
    row("nvshmem_%_wait_until_any", Set::Wait, &[Device], "size_t", WAIT_SET, "", "return oxshmem::wait_until_any(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_wait_until_any_vector", Set::Wait, &[Device], "size_t", WAIT_VECTOR, "", "return oxshmem::wait_until_any_vector(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), (const {C} *)cmp_values);"),
    row("nvshmem_%_wait_until_some", Set::Wait, &[Device], "size_t", WAIT_SOME, "", "return oxshmem::wait_until_some(({C} *)ivars, nelems, indices, status, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_wait_until_some_vector", Set::Wait, &[Device], "size_t", WAIT_SOME_VECTOR, "", "return oxshmem::wait_until_some_vector(({C} *)ivars, nelems, indices, status, nvshmem_ox::compare(cmp), (const {C} *)cmp_values);"),
    row("nvshmem_%_test", Set::Wait, &[Device], "int", WAIT, "", "return oxshmem::test(({C} *)ivar, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_test_all", Set::Wait, &[Device], "int", WAIT_SET, "", "return oxshmem::test_all(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_test_all_vector", Set::Wait, &[Device], "int", WAIT_VECTOR, "", "return oxshmem::test_all_vector(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), (const {C} *)cmp_values);"),
    row("nvshmem_%_test_any", Set::Wait, &[Device], "size_t", WAIT_SET, "", "return oxshmem::test_any(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_test_any_vector", Set::Wait, &[Device], "size_t", WAIT_VECTOR, "", "return oxshmem::test_any_vector(({C} *)ivars, nelems, status, nvshmem_ox::compare(cmp), (const {C} *)cmp_values);"),
    row("nvshmem_%_test_some", Set::Wait, &[Device], "size_t", WAIT_SOME, "", "return oxshmem::test_some(({C} *)ivars, nelems, indices, status, nvshmem_ox::compare(cmp), ({C})cmp_value);"),
    row("nvshmem_%_test_some_vector", Set::Wait, &[Device], "size_t", WAIT_SOME_VECTOR, "", "return oxshmem::test_some_vector(({C} *)ivars, nelems, indices, status, nvshmem_ox::compare(cmp), (const {C} *)cmp_values);"),

    // Collective calls.
    row("nvshmem_%_broadcast", Set::Rma, SCOPED, "int", BROADCAST, "collectives::broadcast", "return nvshmem_ox::broadcast({S}, team, dest, source, {N}, nelems, PE_root);"),
    row("nvshmem_broadcast%", Set::Mem, SCOPED, "int", BROADCAST, "collectives::broadcast", "return nvshmem_ox::broadcast({S}, team, dest, source, 1, nelems, PE_root);"),
    row("nvshmem_%_fcollect", Set::Rma, SCOPED, "int", COLLECTIVE, "collectives::fcollect", "return nvshmem_ox::fcollect({S}, team, dest, source, {N}, nelems);"),
    row("nvshmem_fcollect%", Set::Mem, SCOPED, "int", COLLECTIVE, "collectives::fcollect", "return nvshmem_ox::fcollect({S}, team, dest, source, 1, nelems);"),
    row("nvshmem_%_alltoall", Set::Rma, SCOPED, "int", COLLECTIVE, "collectives::alltoall", "return nvshmem_ox::alltoall({S}, team, dest, source, {N}, nelems);"),
    row("nvshmem_alltoall%", Set::Mem, SCOPED, "int", COLLECTIVE, "collectives::alltoall", "return nvshmem_ox::alltoall({S}, team, dest, source, 1, nelems);"),
    lazy(row("nvshmem_%_sum_reduce", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce Fold::Sum", "return oxshmem::reduce<oxshmem::Sum>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_sum_reducescatter", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce_scatter Fold::Sum", "return oxshmem::reduce_scatter<oxshmem::Sum>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_prod_reduce", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce Fold::Prod", "return oxshmem::reduce<oxshmem::Product>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_prod_reducescatter", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce_scatter Fold::Prod", "return oxshmem::reduce_scatter<oxshmem::Product>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_min_reduce", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce Fold::Min", "return oxshmem::reduce<oxshmem::Min>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_min_reducescatter", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce_scatter Fold::Min", "return oxshmem::reduce_scatter<oxshmem::Min>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_max_reduce", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce Fold::Max", "return oxshmem::reduce<oxshmem::Max>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_max_reducescatter", Set::Reduce, SCOPED, "int", REDUCE, "collectives::reduce_scatter Fold::Max", "return oxshmem::reduce_scatter<oxshmem::Max>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_and_reduce", Set::ReduceBits, SCOPED, "int", REDUCE, "collectives::reduce Fold::And", "return oxshmem::reduce<oxshmem::And>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_and_reducescatter", Set::ReduceBits, SCOPED, "int", REDUCE, "collectives::reduce_scatter Fold::And", "return oxshmem::reduce_scatter<oxshmem::And>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_or_reduce", Set::ReduceBits, SCOPED, "int", REDUCE, "collectives::reduce Fold::Or", "return oxshmem::reduce<oxshmem::Or>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_or_reducescatter", Set::ReduceBits, SCOPED, "int", REDUCE, "collectives::reduce_scatter Fold::Or", "return oxshmem::reduce_scatter<oxshmem::Or>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_xor_reduce", Set::ReduceBits, SCOPED, "int", REDUCE, "collectives::reduce Fold::Xor", "return oxshmem::reduce<oxshmem::Xor>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_%_xor_reducescatter", Set::ReduceBits, SCOPED, "int", REDUCE, "collectives::reduce_scatter Fold::Xor", "return oxshmem::reduce_scatter<oxshmem::Xor>({S}, team, ({C} *)dest, (const {C} *)source, nreduce);")),
    lazy(row("nvshmem_double2_maxloc_reduce", Set::None, &[Block], "int", "nvshmem_team_t team, double2 *dest, const double2 *source, size_t nreduce", "", "return oxshmem::reduce<nvshmem_ox::MaxLocation>({S}, team, dest, source, nreduce);")),

    // Hints and resources, which change nothing here: core/nvshmem/include/device/oxshmem_calls.cuh says why.
    row("nvshmemx_region_start", Set::None, &[Host, Block], "int", "nvshmemx_region_handle_t *handle, const nvshmemx_region_attrs_t *attrs", "regions::start", "return nvshmem_ox::region_start({S}, handle, attrs);"),
    row("nvshmemx_region_stop", Set::None, &[Host, Block], "int", "nvshmemx_region_handle_t handle", "regions::stop", "return nvshmem_ox::region_stop({S}, handle);"),
    row("nvshmemx_region_is_active", Set::None, &[Both], "int", "uint32_t hints, int *active", "regions::is_active", "return nvshmem_ox::region_is_active(hints, active);"),
    row("nvshmemx_give_smem", Set::None, &[Device], "void", "void *smem, size_t size", "", "nvshmem_ox::give_smem(smem, size);"),
    row("nvshmemx_ask_smem", Set::None, &[Device], "int", "nvshmemx_smem_amount_t flag", "", "return nvshmem_ox::ask_smem(flag);"),
    row("nvshmemx_release_smem", Set::None, &[Device], "void", "", "", "nvshmem_ox::release_smem();"),
];
