/* NVSHMEM's calls inside kernels in the terms of oxshmem.cuh: the numbers of operations, widths in place of types, and calls that have
   no counterpart there. */
#ifndef NVSHMEM_OXSHMEM_CALLS_CUH
#define NVSHMEM_OXSHMEM_CALLS_CUH

#include "../device_host/nvshmem_types.h"
#include <oxshmem.cuh>

#define NVSHMEMI_DEVICE static __device__ __forceinline__
/* Templates without a parameter that a call gives: a compiler makes code for those that are called. */
#define NVSHMEMI_LAZY template <int = 0>
#if defined(__CUDACC_RTC__)
#define NVSHMEMI_BOTH NVSHMEMI_DEVICE
#define NVSHMEMI_HALVES(device, host) { device; }
#elif defined(__CUDA_ARCH__)
#define NVSHMEMI_BOTH static __host__ __device__ __forceinline__
#define NVSHMEMI_HALVES(device, host) { device; }
#else
#define NVSHMEMI_BOTH static __host__ __device__ __forceinline__
#define NVSHMEMI_HALVES(device, host) { host; }
#endif
#define NVSHMEM_ENABLE_ALL_DEVICE_INLINING 1

#if NVSHMEMI_HAS_HALF
namespace oxshmem {
// By CUDA's functions: programs can do without the operators.
template <>
struct Computed<__half> {
    typedef float Type;
    OXSHMEM_DEVICE float of(__half value) { return __half2float(value); }
    OXSHMEM_DEVICE __half rounded(float value) { return __float2half(value); }
};
template <>
struct Computed<__nv_bfloat16> {
    typedef float Type;
    OXSHMEM_DEVICE float of(__nv_bfloat16 value) { return __bfloat162float(value); }
    OXSHMEM_DEVICE __nv_bfloat16 rounded(float value) { return __float2bfloat16(value); }
};
}  // namespace oxshmem
#endif

namespace nvshmem_ox {

using oxshmem::u16;
using oxshmem::u32;
using oxshmem::u64;

OXSHMEM_DEVICE oxshmem::Compare compare(int cmp) {
    // NVSHMEM has GE last, and LE in its place.
    return (oxshmem::Compare)(cmp == NVSHMEM_CMP_LE ? (int)oxshmem::CMP_LE : cmp == NVSHMEM_CMP_GE ? (int)oxshmem::CMP_GE : cmp);
}
OXSHMEM_DEVICE oxshmem::SignalOperation operation(int sig_op) { return sig_op == NVSHMEM_SIGNAL_ADD ? oxshmem::SIGNAL_ADD : oxshmem::SIGNAL_SET; }

// The four warps of a warp group. Their meeting is one of the hardware's barriers 8 to 15: a program that meets by these itself, by
// `bar.sync`, cannot make calls of a warp group.
struct warpgroup_scope {
    OXSHMEM_DEVICE u32 rank() { return oxshmem::thread_in_block() % 128; }
    OXSHMEM_DEVICE u32 size() {
        const u32 left = oxshmem::threads_of_block() - oxshmem::thread_in_block() / 128 * 128;
        return left < 128 ? left : 128;
    }
    OXSHMEM_DEVICE void sync() {
#if OXSHMEM_PTX
        const u32 threads = (size() + 31) / 32 * 32;
        asm volatile("barrier.sync %0, %1;" ::"r"(8 + oxshmem::thread_in_block() / 128), "r"(threads) : "memory");
#else
        if (oxshmem::threads_of_block() > 128) {
            printf("oxshmem: a warp group in a block of more than 128 threads cannot meet in the emulation\n");
            __trap();
        }
        __syncthreads();
#endif
    }
};
OXSHMEM_DEVICE warpgroup_scope warpgroup() { return warpgroup_scope(); }

// A call that one thread makes for its group, behind what all of them did before.
template <class Scope, class Call>
OXSHMEM_DEVICE void by_one(Scope scope, Call call) {
    scope.sync();
    if (scope.rank() == 0) call();
    scope.sync();
}
struct Fence {
    OXSHMEM_MEMBER void operator()() const { oxshmem::fence(); }
};
struct Quiet {
    OXSHMEM_MEMBER void operator()() const { oxshmem::quiet(); }
};
struct Flush {
    OXSHMEM_MEMBER void operator()() const { oxshmem::flush(); }
};
template <class Scope>
OXSHMEM_DEVICE void flush(Scope scope) {
    by_one(scope, Flush());
}
// All queue pairs are one.
template <class Scope>
OXSHMEM_DEVICE void qp_fence(Scope scope) {
    by_one(scope, Fence());
}
template <class Scope>
OXSHMEM_DEVICE void qp_quiet(Scope scope) {
    by_one(scope, Quiet());
}

template <class Scope>
OXSHMEM_DEVICE int barrier(Scope scope, nvshmem_team_t team) {
    return oxshmem::barrier(scope, team);
}
struct Barrier {
    nvshmem_team_t team;
    OXSHMEM_MEMBER void operator()() const { oxshmem::barrier(oxshmem::thread(), team); }
};
OXSHMEM_DEVICE int barrier(warpgroup_scope scope, nvshmem_team_t team) {
    by_one(scope, Barrier{team});
    return 0;
}

// Queries.
OXSHMEM_DEVICE void version(int *major, int *minor) {
    *major = NVSHMEM_MAJOR_VERSION;
    *minor = NVSHMEM_MINOR_VERSION;
}
OXSHMEM_DEVICE void vendor_version(int *major, int *minor, int *patch) {
    *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}
OXSHMEM_DEVICE void name(char *name) {
    const char text[] = NVSHMEM_VENDOR_STRING;
    for (u32 i = 0; i < sizeof text; ++i) name[i] = text[i];
}
OXSHMEM_DEVICE int team_my_pe(nvshmem_team_t team) { return team < 0 ? -1 : oxshmem::team_my_pe(team); }
OXSHMEM_DEVICE int team_n_pes(nvshmem_team_t team) { return team < 0 ? -1 : oxshmem::team_n_pes(team); }
OXSHMEM_DEVICE int team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to) {
    return from < 0 || to < 0 ? -1 : oxshmem::team_translate_pe(from, pe, to);
}
// No memory is multicast.
OXSHMEM_DEVICE void *mc_ptr(nvshmem_team_t, const void *) { return nullptr; }

// A kernel cannot hand a status to the job: it says so, and fails. The error of its launch ends the program.
OXSHMEM_OUTLINE void global_exit(int status) {
    printf("oxshmem: nvshmem_global_exit(%d) in a kernel of PE %d: the kernel fails\n", status, oxshmem::my_pe());
    __trap();
}

// Put and get, of `n` elements of so many bytes.
OXSHMEM_DEVICE u64 aligned(u32 width) { return width < 8 ? width : 8; }
template <class Scope>
OXSHMEM_DEVICE void put(Scope scope, void *dest, const void *source, u32 width, size_t n, int pe) {
    oxshmem::rma::put(scope, oxshmem::check::CALL_PUT, dest, source, n * width, aligned(width), pe, true);
}
template <class Scope>
OXSHMEM_DEVICE void put_nbi(Scope scope, void *dest, const void *source, u32 width, size_t n, int pe) {
    oxshmem::rma::put(scope, oxshmem::check::CALL_PUT, dest, source, n * width, aligned(width), pe, false);
}
template <class Scope>
OXSHMEM_DEVICE void get(Scope scope, void *dest, const void *source, u32 width, size_t n, int pe) {
    oxshmem::rma::get(scope, dest, source, n * width, aligned(width), pe, true);
}
template <class Scope>
OXSHMEM_DEVICE void get_nbi(Scope scope, void *dest, const void *source, u32 width, size_t n, int pe) {
    oxshmem::rma::get(scope, dest, source, n * width, aligned(width), pe, false);
}

// Signals.
template <class Scope>
OXSHMEM_DEVICE void put_signal(Scope scope, void *dest, const void *source, u32 width, size_t n, uint64_t *signal, u64 value,
                               int sig_op, int pe) {
    oxshmem::rma::put_signal(scope, dest, source, n * width, aligned(width), (u64 *)signal, value, operation(sig_op), pe, true);
}
template <class Scope>
OXSHMEM_DEVICE void put_signal_nbi(Scope scope, void *dest, const void *source, u32 width, size_t n, uint64_t *signal, u64 value,
                                   int sig_op, int pe) {
    oxshmem::rma::put_signal(scope, dest, source, n * width, aligned(width), (u64 *)signal, value, operation(sig_op), pe, false);
}
OXSHMEM_DEVICE void signal_op(uint64_t *signal, u64 value, int sig_op, int pe) { oxshmem::signal((u64 *)signal, value, operation(sig_op), pe); }
// A signal of this PE is 0 again.
OXSHMEM_DEVICE void signal_counted_reset(uint64_t *signal) { oxshmem::words::store_relaxed((u64 *)signal, (u64)0); }

// Atomics on numbers of 32 and 64 bits, and of 16.
template <class T>
OXSHMEM_DEVICE T atomic_fetch(const T *source, int pe) {
    return oxshmem::atomic_fetch(source, pe);
}
template <class T>
OXSHMEM_DEVICE void atomic_set(T *dest, T value, int pe) {
    oxshmem::atomic_set(dest, value, pe);
}
template <class T>
OXSHMEM_DEVICE T atomic_swap(T *dest, T value, int pe) {
    return oxshmem::atomic_swap(dest, value, pe);
}
template <class T>
OXSHMEM_DEVICE void atomic_add(T *dest, T value, int pe) {
    oxshmem::atomic_add(dest, value, pe);
}
template <class T>
OXSHMEM_DEVICE T atomic_fetch_add(T *dest, T value, int pe) {
    return oxshmem::atomic_fetch_add(dest, value, pe);
}
#if NVSHMEMI_HAS_HALF
OXSHMEM_DEVICE half atomic_fetch(const half *source, int pe) { return oxshmem::atomic_fetch16(source, pe); }
OXSHMEM_DEVICE void atomic_set(half *dest, half value, int pe) { oxshmem::atomic_set16(dest, value, pe); }
OXSHMEM_DEVICE half atomic_swap(half *dest, half value, int pe) { return oxshmem::atomic_swap16(dest, value, pe); }
OXSHMEM_DEVICE void atomic_add(half *dest, half value, int pe) { oxshmem::atomic_add16(dest, value, pe); }
OXSHMEM_DEVICE half atomic_fetch_add(half *dest, half value, int pe) { return oxshmem::atomic_fetch_add16(dest, value, pe); }
#endif

// Collective calls on bytes.
template <class Scope>
OXSHMEM_DEVICE int broadcast(Scope scope, nvshmem_team_t team, void *dest, const void *source, u32 width, size_t n, int root) {
    return oxshmem::collectives::broadcast(oxshmem::Group::of(scope), team, dest, source, n * width, aligned(width), root);
}
template <class Scope>
OXSHMEM_DEVICE int fcollect(Scope scope, nvshmem_team_t team, void *dest, const void *source, u32 width, size_t n) {
    return oxshmem::collectives::spread(oxshmem::check::CALL_FCOLLECT, oxshmem::Group::of(scope), team, dest, source, n * width, 0,
                                        aligned(width));
}
template <class Scope>
OXSHMEM_DEVICE int alltoall(Scope scope, nvshmem_team_t team, void *dest, const void *source, u32 width, size_t n) {
    return oxshmem::collectives::spread(oxshmem::check::CALL_ALLTOALL, oxshmem::Group::of(scope), team, dest, source, n * width, n * width,
                                        aligned(width));
}

// The greater of two values, each with its place beside it; of equal ones, the one with the smaller place.
struct MaxLocation {
    OXSHMEM_DEVICE double2 of(double2 a, double2 b) { return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a; }
};

// Hints that change nothing: calls are sent on as they come. The handle is not 0, so that a program can tell it from none.
template <class Scope>
OXSHMEM_DEVICE int region_start(Scope, nvshmemx_region_handle_t *handle, const nvshmemx_region_attrs_t *) {
    *handle = 1;
    return NVSHMEMX_SUCCESS;
}
template <class Scope>
OXSHMEM_DEVICE int region_stop(Scope, nvshmemx_region_handle_t) {
    return NVSHMEMX_SUCCESS;
}
OXSHMEM_DEVICE int region_is_active(uint32_t, int *active) {
    *active = 0;
    return NVSHMEMX_SUCCESS;
}
// Copies need no shared memory: 0 bytes are asked for, and those that are given are left alone.
OXSHMEM_DEVICE void give_smem(void *, size_t) {}
OXSHMEM_DEVICE int ask_smem(nvshmemx_smem_amount_t) { return 0; }
OXSHMEM_DEVICE void release_smem() {}

}  // namespace nvshmem_ox

#endif
