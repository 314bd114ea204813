//! Names that do less here than NVSHMEM's documentation says, or nothing, and the page that tells of them.

use std::fmt::Write;

use crate::tiles;

/// A limit: names, of which a `*` stands for any further letters, and what they do.
#[derive(Debug)]
pub struct Limit {
    /// The names.
    pub names: &'static [&'static str],
    /// Their effect, in a sentence.
    pub told: &'static str,
}

const fn limit(names: &'static [&'static str], told: &'static str) -> Limit {
    Limit { names, told }
}

/// Calls of the host that print the reason when they are made, and return a status or null.
#[rustfmt::skip]
pub const REFUSED_ON_HOST: &[Limit] = &[
    limit(&["nvshmemx_team_init", "nvshmemx_team_get_uniqueid"], "Teams are split from others, by `nvshmem_team_split_strided` or `_2d`."),
    limit(&["nvshmemx_buffer_register_symmetric*", "nvshmemx_buffer_unregister_symmetric"], "Memory of the program's own cannot become symmetric: allocate it by `nvshmem_malloc`."),
    limit(&["nvshmem_half_atomic_fetch", "nvshmem_half_atomic_set", "nvshmem_half_atomic_swap", "nvshmemx_half_atomic_add", "nvshmemx_half_atomic_fetch_add"], "The host's atomics are on words of 4 and 8 bytes. Kernels have these. On the host they end the job."),
];

/// Names that have no effect, or the effect of others.
#[rustfmt::skip]
pub const WITHOUT_EFFECT: &[Limit] = &[
    limit(&["nvshmemx_qp_*", "nvshmemx_qp_handle_t", "nvshmemx_qp_handle_index_t", "NVSHMEMX_QP_*"], "Every call goes the default way: all handles are one. `nvshmemx_qp_quiet` and `nvshmemx_qp_fence` are those of all PEs."),
    limit(&["nvshmemx_region_*", "NVSHMEMX_REGION_*"], "Regions are hints. Calls inside one are sent on as they come. `nvshmemx_region_is_active` tells on the host whether such a region is open; in kernels it gives 0."),
    limit(&["nvshmemx_give_smem", "nvshmemx_ask_smem", "nvshmemx_release_smem", "nvshmemx_smem_amount_t", "NVSHMEMX_SMEM_*"], "Kernels copy by loads and stores: `nvshmemx_ask_smem` asks for 0 bytes, and memory that is given is left alone."),
    limit(&["nvshmemx_tma_policy_t", "NVSHMEMX_TMA_*"], "There are no copies by the GPU's copy unit."),
    limit(&["nvshmemx_mc_ptr"], "No memory is multicast: the pointer is null."),
    limit(&["NVSHMEM_TEAM_MC_SHARED"], "No PEs share multicast memory: it is `NVSHMEM_TEAM_INVALID`."),
    limit(&["nvshmemx::NVLS_*", "nvshmemx::PEER_*", "nvshmemx::REMOTE_*", "nvshmemx::tile_algo_t", "nvshmemx::tile_coll_algo_t"], "All ways of a call on tiles are one: loads and stores, or requests to the host for PEs whose memory is not mapped."),
    limit(&["NVSHMEM_IBGDA_SUPPORT"], "It is not defined: GPUs post no requests to NICs."),
    limit(&["NVSHMEM_BOOTSTRAP_PLUGIN_*_VERSION", "NVSHMEM_TRANSPORT_PLUGIN_*_VERSION"], "There are no plugins. Programs can print the versions."),
    limit(&["NVSHMEM_ENABLE_ALL_DEVICE_INLINING"], "All calls inside kernels are in the header. There is nothing to link."),
];

/// Names whose effect differs.
#[rustfmt::skip]
pub const DIFFERENT: &[Limit] = &[
    limit(&["nvshmem_global_exit"], "In a kernel it prints its status and the PE, and the kernel fails. The error of the launch ends the program. On the host it ends the job with the status."),
    limit(&["nvshmem_info_get_name", "NVSHMEM_VENDOR_STRING"], "The name is oxshmem's."),
    limit(&["nvshmemx_signal_counted_reset"], "It sets a signal of this PE to 0."),
    limit(&["nvshmem_half_atomic_*", "nvshmemx_half_atomic_*"], "Half-precision atomics swap the 32-bit word in which the number lies, until nothing comes between. Atomics on the number beside it are safe."),
    limit(&["nvshmem_half_*_reduce", "nvshmem_bfloat16_*_reduce", "nvshmem_half_*_reducescatter", "nvshmem_bfloat16_*_reducescatter", "nvshmemx_half_*_reduce_*", "nvshmemx_bfloat16_*_reduce_*"], "Numbers of 16 bits are folded as 32-bit ones in the order of PEs, and the result is rounded once."),
    limit(&["nvshmemx_double2_maxloc_reduce_block"], "Of equal values the one with the smaller place is the result."),
    limit(&["nvshmemx_barrier_warpgroup", "nvshmemx::tile_*_warpgroup"], "A warp group meets at the GPU's barriers 8 to 15. A program that uses these by PTX cannot make the calls. On the emulation a block may have 128 threads then."),
    limit(&["nvshmemx::tile_put*", "nvshmemx::tile_get*"], "They are nonblocking: `nvshmem_quiet` completes them."),
    limit(&["nvshmemx::tile_broadcast*"], "The PE that calls gives its tile to all members. Behind `tile_collective_wait` of all members it is there."),
    limit(&["nvshmemx::tile_*_reduce*"], "Members meet first, and each reads the others' tiles. Sources may be changed behind `tile_collective_wait`. Elements have 1, 2, 4 or 8 bytes."),
    limit(&["nvshmemx::Tensor", "nvshmemx::Layout", "nvshmemx::shape", "nvshmemx::stride"], "Tiles have flat dimensions. A tile and its coordinates have as many; coordinates without a dimension leave no element out."),
    limit(&["nvshmemx_collective_launch*"], "The headers have these calls inline, by the program's own CUDA runtime. In a graph's capture the kernel is launched on the stream itself."),
    limit(&["nvshmemx_put6_signal*"], "NVSHMEM 3.5.1 has this name for `put16`. Both are there."),
];

/// Whether a name is one that a limit is for.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| matches(after, rest)))
        }),
    }
}

/// `docs/nvshmem-names.md`.
pub(crate) fn page() -> String {
    let mut text = String::from(
        "# NVSHMEM's names\n\n\
         <!-- Generated from oxshmem's table (core/nvshmem/table); do not edit. -->\n\n\
         oxshmem's `nvshmem.h` has every function, type, constant and macro of NVSHMEM 3.5.1 and 3.8.0. They do what NVSHMEM's documentation\n\
         says, but for those below.\n\n\
         ## Refused\n\n\
         A compiler refuses the call, with the reason.\n\n| name | reason |\n|---|---|\n",
    );
    for name in tiles::names() {
        if let Some(why) = tiles::refused(&name) {
            let _ = writeln!(text, "| `nvshmemx::{name}` | {why} |");
        }
    }
    text.push_str(
        "\nCalls of the host are refused when they are made, with the reason on stderr.\n",
    );
    for (title, limits) in [
        ("Refused on the host", REFUSED_ON_HOST),
        ("Without effect of their own", WITHOUT_EFFECT),
        ("With another effect", DIFFERENT),
    ] {
        let _ = write!(text, "\n## {title}\n\n| names | |\n|---|---|\n");
        for limit in limits {
            let names: Vec<_> = limit.names.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(text, "| {} | {} |", names.join(", "), limit.told);
        }
    }
    text
}
