// Checks of arguments, compiled in with OXSHMEM_CHECK: the first bad call of a kernel is recorded for the host, all
// waits end, and the host's next call gives the error. Without it a bad argument is undefined behaviour.
#pragma once

#include "spin.cuh"

namespace oxshmem {
namespace check {

// In the order of `Call` in core/device/src/fault.rs.
enum Call : u32 {
    CALL_PUT,
    CALL_GET,
    CALL_P,
    CALL_G,
    CALL_IPUT,
    CALL_IGET,
    CALL_PUT_SIGNAL,
    CALL_SIGNAL,
    CALL_ATOMIC,
    CALL_WAIT,
    CALL_TEST,
    CALL_TEAM,
    CALL_BROADCAST,
    CALL_FCOLLECT,
    CALL_ALLTOALL,
    CALL_REDUCE,
    CALL_REDUCE_SCATTER,
    CALL_SCAN,
    CALL_BARRIER,
};

// In the order of `Kind` in core/device/src/fault.rs.
enum Kind : u32 {
    KIND_PE,
    KIND_RANGE,
    KIND_ALIGNMENT,
    KIND_TEAM,
    KIND_ROOT,
    KIND_STRIDE,
};

#ifdef OXSHMEM_CHECK

OXSHMEM_OUTLINE void report(u32 call, u32 kind, i64 pe, const void* address, u64 bytes) {
    Fault* fault = oxshmem_state.fault;
    if (words::compare_swap(&fault->state, 0u, 1u) == 0) {
        fault->call = call;
        fault->kind = kind;
        fault->pe = pe;
        fault->address = (u64)address;
        fault->bytes = bytes;
        fault->block[0] = blockIdx.x, fault->block[1] = blockIdx.y, fault->block[2] = blockIdx.z;
        fault->thread[0] = threadIdx.x, fault->thread[1] = threadIdx.y, fault->thread[2] = threadIdx.z;
        words::store_release(&fault->state, 2u);
    }
    spin::stop_all(STOP_FAULT);
}

OXSHMEM_DEVICE bool pe(u32 call, int pe) {
    if (pe >= 0 && (u32)pe < oxshmem_state.n) return true;
    report(call, KIND_PE, pe, nullptr, 0);
    return false;
}

// Whether `bytes` bytes lie in the symmetric heap, from a multiple of `align` on.
OXSHMEM_DEVICE bool range(u32 call, int pe, const void* at, u64 bytes, u64 align) {
    const u64 offset = (u64)at - (u64)oxshmem_state.heap;
    if (offset > oxshmem_state.heap_bytes || bytes > oxshmem_state.heap_bytes - offset) {
        report(call, KIND_RANGE, pe, at, bytes);
        return false;
    }
    if ((u64)at % align != 0) {
        report(call, KIND_ALIGNMENT, pe, at, bytes);
        return false;
    }
    return true;
}

OXSHMEM_DEVICE bool target(u32 call, int pe, const void* at, u64 bytes, u64 align) {
    return check::pe(call, pe) && range(call, pe, at, bytes, align);
}

OXSHMEM_DEVICE bool team(u32 call, team_t team) {
    const bool exists = team >= 0 && (u32)team < words::load_relaxed(&oxshmem_state.shared->teams) &&
                        oxshmem_state.teams[team] != nullptr;
    if (!exists) report(call, KIND_TEAM, team, nullptr, 0);
    return exists;
}

OXSHMEM_DEVICE bool root(u32 call, int root, u32 n) {
    if (root >= 0 && (u32)root < n) return true;
    report(call, KIND_ROOT, root, nullptr, 0);
    return false;
}

OXSHMEM_DEVICE bool stride(u32 call, i64 stride) {
    if (stride >= 1) return true;
    report(call, KIND_STRIDE, stride, nullptr, 0);
    return false;
}

#else

OXSHMEM_DEVICE bool target(u32, int, const void*, u64, u64) { return true; }
OXSHMEM_DEVICE bool pe(u32, int) { return true; }
OXSHMEM_DEVICE bool range(u32, int, const void*, u64, u64) { return true; }
OXSHMEM_DEVICE bool team(u32, team_t) { return true; }
OXSHMEM_DEVICE bool root(u32, int, u32) { return true; }
OXSHMEM_DEVICE bool stride(u32, i64) { return true; }

#endif

}  // namespace check
}  // namespace oxshmem
