//! The table.

use crate::types::Set;

/// A family of functions.
#[derive(Debug)]
pub struct Row {
    /// The function's name. `@` is where `ctx_` stands in the form that takes a context, if there is
    /// one, and `%` where the type does.
    pub name: &'static str,
    /// The types that there is a function of.
    pub types: Set,
    /// The type that it returns, in C, where `T` is the type of elements.
    pub returns: &'static str,
    /// Its parameters in C, without the context.
    pub params: &'static str,
    /// The Rust function that implements it, which is given the call's name, a context if it
    /// implements a form with one, and the parameters.
    pub call: &'static str,
    /// The name of the C11 macro and of the C++ overloads, if it has them.
    pub generic: Option<&'static str>,
    /// The version that deprecated it, if one did.
    pub deprecated: Option<&'static str>,
    /// Whether OpenSHMEM has no functions of these types, and other libraries do.
    pub others_have: bool,
}

const fn row(
    name: &'static str,
    types: Set,
    returns: &'static str,
    params: &'static str,
    call: &'static str,
) -> Row {
    Row {
        name,
        types,
        returns,
        params,
        call,
        generic: None,
        deprecated: None,
        others_have: false,
    }
}

impl Row {
    const fn generic(self, name: &'static str) -> Self {
        Row {
            generic: Some(name),
            ..self
        }
    }

    const fn old(self, version: &'static str) -> Self {
        Row {
            deprecated: Some(version),
            ..self
        }
    }

    const fn like_others(self) -> Self {
        Row {
            others_have: true,
            ..self
        }
    }

    /// Whether the Rust function is given a context, this family's default one if it has no form with one.
    pub(crate) fn takes_context(&self) -> bool {
        let mut same = ROWS.iter().filter(|row| row.call == self.call);
        same.any(|row| row.name.contains('@'))
    }
}

const PUT: &str = "T *dest, const T *source, size_t nelems, int pe";
const STRIDED: &str =
    "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe";
const BLOCKS: &str =
    "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe";
const PUT_SIGNAL: &str = "T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe";
const COLLECTIVE: &str = "shmem_team_t team, T *dest, const T *source, size_t nelems";
const BROADCAST: &str = "shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root";
const STRIDED_COLLECTIVE: &str =
    "shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems";
const REDUCE: &str = "shmem_team_t team, T *dest, const T *source, size_t nreduce";
const SET_OF_OLD: &str = "T *dest, const T *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync";
const OLD_BROADCAST: &str = "T *dest, const T *source, size_t nelems, int PE_root, int PE_start, int logPE_stride, int PE_size, long *pSync";
const OLD_STRIDED: &str = "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync";
const TO_ALL: &str = "T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync";
const OLD_SYNC: &str = "int PE_start, int logPE_stride, int PE_size, long *pSync";
const WAIT: &str = "T *ivar, int cmp, T cmp_value";
const WAIT_SET: &str = "T *ivars, size_t nelems, const int *status, int cmp, T cmp_value";
const WAIT_SOME: &str =
    "T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value";
const WAIT_VECTOR: &str =
    "T *ivars, size_t nelems, const int *status, int cmp, const T *cmp_values";
const WAIT_SOME_VECTOR: &str =
    "T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const T *cmp_values";

use Set::{
    Bitwise, Extended, Mem, OldExtended, OldReduceBits, OldReduceOrder, OldReduceSum, OldSizes,
    OldStandard, OldWait, OldWaits, ReduceBits, ReduceSum, Rma, Sizes, Standard,
};

/// All families.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    // Setup, exit, queries.
    row("shmem_init", Set::None, "void", "", "setup::init"),
    row("shmem_init_thread", Set::None, "int", "int requested, int *provided", "setup::init_thread"),
    row("shmem_query_thread", Set::None, "void", "int *provided", "setup::query_thread"),
    row("shmem_query_initialized", Set::None, "void", "int *initialized", "setup::query_initialized"),
    row("shmem_finalize", Set::None, "void", "", "setup::finalize"),
    row("shmem_global_exit", Set::None, "void", "int status", "setup::global_exit"),
    row("shmem_my_pe", Set::None, "int", "", "setup::my_pe"),
    row("shmem_n_pes", Set::None, "int", "", "setup::n_pes"),
    row("shmem_pe_accessible", Set::None, "int", "int pe", "query::pe_accessible"),
    row("shmem_addr_accessible", Set::None, "int", "const void *addr, int pe", "query::addr_accessible"),
    row("shmem_ptr", Set::None, "void *", "const void *dest, int pe", "query::ptr"),
    row("shmem_team_ptr", Set::None, "void *", "shmem_team_t team, const void *dest, int pe", "query::team_ptr"),
    row("shmem_info_get_version", Set::None, "void", "int *major, int *minor", "query::version"),
    row("shmem_info_get_name", Set::None, "void", "char *name", "query::name"),
    row("shmem_pcontrol", Set::None, "void", "int level, ...", "query::pcontrol"),
    row("shmemx_wtime", Set::None, "double", "", "query::wtime"),
    row("shmemx_cuda_init", Set::None, "int", "", "cuda::init"),
    row("shmemx_cuda_device", Set::None, "int", "", "cuda::device"),
    row("shmemx_cuda_check", Set::None, "int", "", "cuda::check"),
    row("shmemx_cuda_malloc", Set::None, "void *", "size_t size", "cuda::malloc"),
    row("shmemx_cuda_ptr", Set::None, "void *", "const void *dest, int pe", "cuda::ptr"),
    row("shmemx_cuda_resume", Set::None, "int", "", "cuda::resume"),
    row("shmemx_cuda_reserve_teams", Set::None, "int", "int teams", "cuda::reserve_teams"),
    row("shmemx_cuda_team", Set::None, "int", "shmem_team_t team", "cuda::team"),
    row("start_pes", Set::None, "void", "int npes", "setup::start_pes").old("1.2"),
    row("_my_pe", Set::None, "int", "", "setup::my_pe").old("1.2"),
    row("_num_pes", Set::None, "int", "", "setup::n_pes").old("1.2"),
    // Memory.
    row("shmem_malloc", Set::None, "void *", "size_t size", "memory::malloc"),
    row("shmem_free", Set::None, "void", "void *ptr", "memory::free"),
    row("shmem_realloc", Set::None, "void *", "void *ptr, size_t size", "memory::realloc"),
    row("shmem_align", Set::None, "void *", "size_t alignment, size_t size", "memory::align"),
    row("shmem_malloc_with_hints", Set::None, "void *", "size_t size, long hints", "memory::malloc_with_hints"),
    row("shmem_calloc", Set::None, "void *", "size_t count, size_t size", "memory::calloc"),
    row("shmalloc", Set::None, "void *", "size_t size", "memory::malloc").old("1.2"),
    row("shfree", Set::None, "void", "void *ptr", "memory::free").old("1.2"),
    row("shrealloc", Set::None, "void *", "void *ptr, size_t size", "memory::realloc").old("1.2"),
    row("shmemalign", Set::None, "void *", "size_t alignment, size_t size", "memory::align").old("1.2"),
    // Teams.
    row("shmem_team_my_pe", Set::None, "int", "shmem_team_t team", "teams::my_pe"),
    row("shmem_team_n_pes", Set::None, "int", "shmem_team_t team", "teams::n_pes"),
    row("shmem_team_get_config", Set::None, "int", "shmem_team_t team, long config_mask, shmem_team_config_t *config", "teams::get_config"),
    row("shmem_team_translate_pe", Set::None, "int", "shmem_team_t src_team, int src_pe, shmem_team_t dest_team", "teams::translate_pe"),
    row("shmem_team_split_strided", Set::None, "int", "shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team", "teams::split_strided"),
    row("shmem_team_split_2d", Set::None, "int", "shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team", "teams::split_2d"),
    row("shmem_team_destroy", Set::None, "void", "shmem_team_t team", "teams::destroy"),
    // Contexts.
    row("shmem_ctx_create", Set::None, "int", "long options, shmem_ctx_t *ctx", "contexts::create"),
    row("shmem_team_create_ctx", Set::None, "int", "shmem_team_t team, long options, shmem_ctx_t *ctx", "contexts::create_of_team"),
    row("shmem_ctx_destroy", Set::None, "void", "shmem_ctx_t ctx", "contexts::destroy"),
    row("shmem_ctx_get_team", Set::None, "int", "shmem_ctx_t ctx, shmem_team_t *team", "contexts::get_team"),
    row("shmem_ctx_session_start", Set::None, "void", "shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask", "contexts::session_start"),
    row("shmem_ctx_session_stop", Set::None, "void", "shmem_ctx_t ctx", "contexts::session_stop"),
    // Put and get.
    row("shmem_@%_put", Rma, "void", PUT, "rma::put").generic("shmem_put"),
    row("shmem_@put%", Sizes, "void", PUT, "rma::put"),
    row("shmem_@put%", Mem, "void", PUT, "rma::put"),
    row("shmem_@%_p", Rma, "void", "T *dest, T value, int pe", "rma::p").generic("shmem_p"),
    row("shmem_@%_iput", Rma, "void", STRIDED, "rma::iput").generic("shmem_iput"),
    row("shmem_@iput%", Sizes, "void", STRIDED, "rma::iput"),
    row("shmem_@%_ibput", Rma, "void", BLOCKS, "rma::ibput").generic("shmem_ibput"),
    row("shmem_@ibput%", Sizes, "void", BLOCKS, "rma::ibput"),
    row("shmem_@%_get", Rma, "void", PUT, "rma::get").generic("shmem_get"),
    row("shmem_@get%", Sizes, "void", PUT, "rma::get"),
    row("shmem_@get%", Mem, "void", PUT, "rma::get"),
    row("shmem_@%_g", Rma, "T", "const T *source, int pe", "rma::g").generic("shmem_g"),
    row("shmem_@%_iget", Rma, "void", STRIDED, "rma::iget").generic("shmem_iget"),
    row("shmem_@iget%", Sizes, "void", STRIDED, "rma::iget"),
    row("shmem_@%_ibget", Rma, "void", BLOCKS, "rma::ibget").generic("shmem_ibget"),
    row("shmem_@ibget%", Sizes, "void", BLOCKS, "rma::ibget"),
    row("shmem_@%_put_nbi", Rma, "void", PUT, "rma::put_nbi").generic("shmem_put_nbi"),
    row("shmem_@put%_nbi", Sizes, "void", PUT, "rma::put_nbi"),
    row("shmem_@put%_nbi", Mem, "void", PUT, "rma::put_nbi"),
    row("shmem_@%_get_nbi", Rma, "void", PUT, "rma::get_nbi").generic("shmem_get_nbi"),
    row("shmem_@get%_nbi", Sizes, "void", PUT, "rma::get_nbi"),
    row("shmem_@get%_nbi", Mem, "void", PUT, "rma::get_nbi"),
    // Atomics.
    row("shmem_@%_atomic_fetch", Extended, "T", "const T *source, int pe", "atomics::fetch").generic("shmem_atomic_fetch"),
    row("shmem_@%_atomic_set", Extended, "void", "T *dest, T value, int pe", "atomics::set").generic("shmem_atomic_set"),
    row("shmem_@%_atomic_compare_swap", Standard, "T", "T *dest, T cond, T value, int pe", "atomics::compare_swap").generic("shmem_atomic_compare_swap"),
    row("shmem_@%_atomic_swap", Extended, "T", "T *dest, T value, int pe", "atomics::swap").generic("shmem_atomic_swap"),
    row("shmem_@%_atomic_fetch_inc", Standard, "T", "T *dest, int pe", "atomics::fetch_inc").generic("shmem_atomic_fetch_inc"),
    row("shmem_@%_atomic_inc", Standard, "void", "T *dest, int pe", "atomics::inc").generic("shmem_atomic_inc"),
    row("shmem_@%_atomic_fetch_add", Standard, "T", "T *dest, T value, int pe", "atomics::fetch_add").generic("shmem_atomic_fetch_add"),
    row("shmem_@%_atomic_add", Standard, "void", "T *dest, T value, int pe", "atomics::add").generic("shmem_atomic_add"),
    row("shmem_@%_atomic_fetch_and", Bitwise, "T", "T *dest, T value, int pe", "atomics::fetch_and").generic("shmem_atomic_fetch_and"),
    row("shmem_@%_atomic_and", Bitwise, "void", "T *dest, T value, int pe", "atomics::and").generic("shmem_atomic_and"),
    row("shmem_@%_atomic_fetch_or", Bitwise, "T", "T *dest, T value, int pe", "atomics::fetch_or").generic("shmem_atomic_fetch_or"),
    row("shmem_@%_atomic_or", Bitwise, "void", "T *dest, T value, int pe", "atomics::or").generic("shmem_atomic_or"),
    row("shmem_@%_atomic_fetch_xor", Bitwise, "T", "T *dest, T value, int pe", "atomics::fetch_xor").generic("shmem_atomic_fetch_xor"),
    row("shmem_@%_atomic_xor", Bitwise, "void", "T *dest, T value, int pe", "atomics::xor").generic("shmem_atomic_xor"),
    row("shmem_@%_atomic_fetch_nbi", Extended, "void", "T *fetch, const T *source, int pe", "atomics::fetch_nbi").generic("shmem_atomic_fetch_nbi"),
    row("shmem_@%_atomic_compare_swap_nbi", Standard, "void", "T *fetch, T *dest, T cond, T value, int pe", "atomics::compare_swap_nbi").generic("shmem_atomic_compare_swap_nbi"),
    row("shmem_@%_atomic_swap_nbi", Extended, "void", "T *fetch, T *dest, T value, int pe", "atomics::swap_nbi").generic("shmem_atomic_swap_nbi"),
    row("shmem_@%_atomic_fetch_inc_nbi", Standard, "void", "T *fetch, T *dest, int pe", "atomics::fetch_inc_nbi").generic("shmem_atomic_fetch_inc_nbi"),
    row("shmem_@%_atomic_fetch_add_nbi", Standard, "void", "T *fetch, T *dest, T value, int pe", "atomics::fetch_add_nbi").generic("shmem_atomic_fetch_add_nbi"),
    row("shmem_@%_atomic_fetch_and_nbi", Bitwise, "void", "T *fetch, T *dest, T value, int pe", "atomics::fetch_and_nbi").generic("shmem_atomic_fetch_and_nbi"),
    row("shmem_@%_atomic_fetch_or_nbi", Bitwise, "void", "T *fetch, T *dest, T value, int pe", "atomics::fetch_or_nbi").generic("shmem_atomic_fetch_or_nbi"),
    row("shmem_@%_atomic_fetch_xor_nbi", Bitwise, "void", "T *fetch, T *dest, T value, int pe", "atomics::fetch_xor_nbi").generic("shmem_atomic_fetch_xor_nbi"),
    row("shmem_%_fetch", OldExtended, "T", "const T *source, int pe", "atomics::fetch").generic("shmem_fetch").old("1.4"),
    row("shmem_%_set", OldExtended, "void", "T *dest, T value, int pe", "atomics::set").generic("shmem_set").old("1.4"),
    row("shmem_%_cswap", OldStandard, "T", "T *dest, T cond, T value, int pe", "atomics::compare_swap").generic("shmem_cswap").old("1.4"),
    row("shmem_%_swap", OldExtended, "T", "T *dest, T value, int pe", "atomics::swap").generic("shmem_swap").old("1.4"),
    row("shmem_%_finc", OldStandard, "T", "T *dest, int pe", "atomics::fetch_inc").generic("shmem_finc").old("1.4"),
    row("shmem_%_inc", OldStandard, "void", "T *dest, int pe", "atomics::inc").generic("shmem_inc").old("1.4"),
    row("shmem_%_fadd", OldStandard, "T", "T *dest, T value, int pe", "atomics::fetch_add").generic("shmem_fadd").old("1.4"),
    row("shmem_%_add", OldStandard, "void", "T *dest, T value, int pe", "atomics::add").generic("shmem_add").old("1.4"),
    // Signals.
    row("shmem_@%_put_signal", Rma, "void", PUT_SIGNAL, "signals::put_signal").generic("shmem_put_signal"),
    row("shmem_@put%_signal", Sizes, "void", PUT_SIGNAL, "signals::put_signal"),
    row("shmem_@put%_signal", Mem, "void", PUT_SIGNAL, "signals::put_signal"),
    row("shmem_@%_put_signal_nbi", Rma, "void", PUT_SIGNAL, "signals::put_signal_nbi").generic("shmem_put_signal_nbi"),
    row("shmem_@put%_signal_nbi", Sizes, "void", PUT_SIGNAL, "signals::put_signal_nbi"),
    row("shmem_@put%_signal_nbi", Mem, "void", PUT_SIGNAL, "signals::put_signal_nbi"),
    row("shmem_@signal_add", Set::None, "void", "uint64_t *sig_addr, uint64_t signal, int pe", "signals::add").generic("shmem_signal_add"),
    row("shmem_@signal_set", Set::None, "void", "uint64_t *sig_addr, uint64_t signal, int pe", "signals::set").generic("shmem_signal_set"),
    row("shmem_signal_fetch", Set::None, "uint64_t", "const uint64_t *sig_addr", "signals::fetch"),
    row("shmem_signal_wait_until", Set::None, "uint64_t", "uint64_t *sig_addr, int cmp, uint64_t cmp_value", "signals::wait_until"),
    // Collectives.
    row("shmem_barrier_all", Set::None, "void", "", "collectives::barrier_all"),
    row("shmem_sync_all", Set::None, "void", "", "collectives::sync_all"),
    row("shmem_team_sync", Set::None, "int", "shmem_team_t team", "collectives::sync").generic("shmem_sync"),
    row("shmem_%_alltoall", Rma, "int", COLLECTIVE, "collectives::alltoall").generic("shmem_alltoall"),
    row("shmem_alltoall%", Mem, "int", COLLECTIVE, "collectives::alltoall"),
    row("shmem_%_alltoalls", Rma, "int", STRIDED_COLLECTIVE, "collectives::alltoalls").generic("shmem_alltoalls"),
    row("shmem_alltoalls%", Mem, "int", STRIDED_COLLECTIVE, "collectives::alltoalls"),
    row("shmem_%_broadcast", Rma, "int", BROADCAST, "collectives::broadcast").generic("shmem_broadcast"),
    row("shmem_broadcast%", Mem, "int", BROADCAST, "collectives::broadcast"),
    row("shmem_%_collect", Rma, "int", COLLECTIVE, "collectives::collect").generic("shmem_collect"),
    row("shmem_collect%", Mem, "int", COLLECTIVE, "collectives::collect"),
    row("shmem_%_fcollect", Rma, "int", COLLECTIVE, "collectives::fcollect").generic("shmem_fcollect"),
    row("shmem_fcollect%", Mem, "int", COLLECTIVE, "collectives::fcollect"),
    row("shmem_%_and_reduce", ReduceBits, "int", REDUCE, "collectives::and_reduce").generic("shmem_and_reduce"),
    row("shmem_%_or_reduce", ReduceBits, "int", REDUCE, "collectives::or_reduce").generic("shmem_or_reduce"),
    row("shmem_%_xor_reduce", ReduceBits, "int", REDUCE, "collectives::xor_reduce").generic("shmem_xor_reduce"),
    row("shmem_%_and_reduce", OldReduceBits, "int", REDUCE, "collectives::and_reduce").generic("shmem_and_reduce").like_others(),
    row("shmem_%_or_reduce", OldReduceBits, "int", REDUCE, "collectives::or_reduce").generic("shmem_or_reduce").like_others(),
    row("shmem_%_xor_reduce", OldReduceBits, "int", REDUCE, "collectives::xor_reduce").generic("shmem_xor_reduce").like_others(),
    row("shmem_%_max_reduce", Rma, "int", REDUCE, "collectives::max_reduce").generic("shmem_max_reduce"),
    row("shmem_%_min_reduce", Rma, "int", REDUCE, "collectives::min_reduce").generic("shmem_min_reduce"),
    row("shmem_%_sum_reduce", ReduceSum, "int", REDUCE, "collectives::sum_reduce").generic("shmem_sum_reduce"),
    row("shmem_%_prod_reduce", ReduceSum, "int", REDUCE, "collectives::prod_reduce").generic("shmem_prod_reduce"),
    row("shmem_%_sum_inscan", ReduceSum, "int", REDUCE, "collectives::sum_inscan").generic("shmem_sum_inscan"),
    row("shmem_%_sum_exscan", ReduceSum, "int", REDUCE, "collectives::sum_exscan").generic("shmem_sum_exscan"),
    // Collectives of active sets.
    row("shmem_barrier", Set::None, "void", OLD_SYNC, "active_sets::barrier").old("1.5"),
    row("shmem_sync", Set::None, "void", OLD_SYNC, "active_sets::sync").old("1.5"),
    row("shmem_alltoall%", OldSizes, "void", SET_OF_OLD, "active_sets::alltoall").old("1.5"),
    row("shmem_alltoalls%", OldSizes, "void", OLD_STRIDED, "active_sets::alltoalls").old("1.5"),
    row("shmem_broadcast%", OldSizes, "void", OLD_BROADCAST, "active_sets::broadcast").old("1.5"),
    row("shmem_collect%", OldSizes, "void", SET_OF_OLD, "active_sets::collect").old("1.5"),
    row("shmem_fcollect%", OldSizes, "void", SET_OF_OLD, "active_sets::fcollect").old("1.5"),
    row("shmem_%_and_to_all", OldReduceBits, "void", TO_ALL, "active_sets::and_to_all").old("1.5"),
    row("shmem_%_or_to_all", OldReduceBits, "void", TO_ALL, "active_sets::or_to_all").old("1.5"),
    row("shmem_%_xor_to_all", OldReduceBits, "void", TO_ALL, "active_sets::xor_to_all").old("1.5"),
    row("shmem_%_max_to_all", OldReduceOrder, "void", TO_ALL, "active_sets::max_to_all").old("1.5"),
    row("shmem_%_min_to_all", OldReduceOrder, "void", TO_ALL, "active_sets::min_to_all").old("1.5"),
    row("shmem_%_sum_to_all", OldReduceSum, "void", TO_ALL, "active_sets::sum_to_all").old("1.5"),
    row("shmem_%_prod_to_all", OldReduceSum, "void", TO_ALL, "active_sets::prod_to_all").old("1.5"),
    // Waits and tests.
    row("shmem_%_wait_until", Standard, "void", WAIT, "waits::wait_until").generic("shmem_wait_until"),
    row("shmem_%_wait_until", OldWaits, "void", WAIT, "waits::wait_until").generic("shmem_wait_until").old("1.5"),
    row("shmem_%_wait_until_all", Standard, "void", WAIT_SET, "waits::wait_until_all").generic("shmem_wait_until_all"),
    row("shmem_%_wait_until_all", OldWaits, "void", WAIT_SET, "waits::wait_until_all").generic("shmem_wait_until_all").like_others(),
    row("shmem_%_wait_until_any", Standard, "size_t", WAIT_SET, "waits::wait_until_any").generic("shmem_wait_until_any"),
    row("shmem_%_wait_until_any", OldWaits, "size_t", WAIT_SET, "waits::wait_until_any").generic("shmem_wait_until_any").like_others(),
    row("shmem_%_wait_until_some", Standard, "size_t", WAIT_SOME, "waits::wait_until_some").generic("shmem_wait_until_some"),
    row("shmem_%_wait_until_some", OldWaits, "size_t", WAIT_SOME, "waits::wait_until_some").generic("shmem_wait_until_some").like_others(),
    row("shmem_%_wait_until_all_vector", Standard, "void", WAIT_VECTOR, "waits::wait_until_all_vector").generic("shmem_wait_until_all_vector"),
    row("shmem_%_wait_until_all_vector", OldWaits, "void", WAIT_VECTOR, "waits::wait_until_all_vector").generic("shmem_wait_until_all_vector").like_others(),
    row("shmem_%_wait_until_any_vector", Standard, "size_t", WAIT_VECTOR, "waits::wait_until_any_vector").generic("shmem_wait_until_any_vector"),
    row("shmem_%_wait_until_any_vector", OldWaits, "size_t", WAIT_VECTOR, "waits::wait_until_any_vector").generic("shmem_wait_until_any_vector").like_others(),
    row("shmem_%_wait_until_some_vector", Standard, "size_t", WAIT_SOME_VECTOR, "waits::wait_until_some_vector").generic("shmem_wait_until_some_vector"),
    row("shmem_%_wait_until_some_vector", OldWaits, "size_t", WAIT_SOME_VECTOR, "waits::wait_until_some_vector").generic("shmem_wait_until_some_vector").like_others(),
    row("shmem_%_test", Standard, "int", WAIT, "waits::test").generic("shmem_test"),
    row("shmem_%_test", OldWaits, "int", WAIT, "waits::test").generic("shmem_test").old("1.5"),
    row("shmem_%_test_all", Standard, "int", WAIT_SET, "waits::test_all").generic("shmem_test_all"),
    row("shmem_%_test_all", OldWaits, "int", WAIT_SET, "waits::test_all").generic("shmem_test_all").like_others(),
    row("shmem_%_test_any", Standard, "size_t", WAIT_SET, "waits::test_any").generic("shmem_test_any"),
    row("shmem_%_test_any", OldWaits, "size_t", WAIT_SET, "waits::test_any").generic("shmem_test_any").like_others(),
    row("shmem_%_test_some", Standard, "size_t", WAIT_SOME, "waits::test_some").generic("shmem_test_some"),
    row("shmem_%_test_some", OldWaits, "size_t", WAIT_SOME, "waits::test_some").generic("shmem_test_some").like_others(),
    row("shmem_%_test_all_vector", Standard, "int", WAIT_VECTOR, "waits::test_all_vector").generic("shmem_test_all_vector"),
    row("shmem_%_test_all_vector", OldWaits, "int", WAIT_VECTOR, "waits::test_all_vector").generic("shmem_test_all_vector").like_others(),
    row("shmem_%_test_any_vector", Standard, "size_t", WAIT_VECTOR, "waits::test_any_vector").generic("shmem_test_any_vector"),
    row("shmem_%_test_any_vector", OldWaits, "size_t", WAIT_VECTOR, "waits::test_any_vector").generic("shmem_test_any_vector").like_others(),
    row("shmem_%_test_some_vector", Standard, "size_t", WAIT_SOME_VECTOR, "waits::test_some_vector").generic("shmem_test_some_vector"),
    row("shmem_%_test_some_vector", OldWaits, "size_t", WAIT_SOME_VECTOR, "waits::test_some_vector").generic("shmem_test_some_vector").like_others(),
    row("shmem_wait_until", Set::None, "void", "long *ivar, int cmp, long cmp_value", "waits::wait_until").old("1.4"),
    row("shmem_wait", Set::None, "void", "long *ivar, long cmp_value", "waits::wait").old("1.4"),
    row("shmem_%_wait", OldWait, "void", "T *ivar, T cmp_value", "waits::wait").old("1.4"),
    // Order.
    row("shmem_@fence", Set::None, "void", "", "order::fence"),
    row("shmem_@quiet", Set::None, "void", "", "order::quiet"),
    row("shmem_@pe_quiet", Set::None, "void", "const int *target_pes, size_t npes", "order::pe_quiet"),
    // Locks.
    row("shmem_set_lock", Set::None, "void", "long *lock", "locks::set"),
    row("shmem_clear_lock", Set::None, "void", "long *lock", "locks::clear"),
    row("shmem_test_lock", Set::None, "int", "long *lock", "locks::test"),
];
