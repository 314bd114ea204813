// CUDA C++ as host C++: what ci/softcuda-kernels puts before a .cu file, so that the software CUDA
// driver (core/emulation/driver) can run its kernels on threads of the host. No GPU build reads this.
//
// A kernel is an ordinary function here. The driver says which GPU thread it stands for
// (softcuda_thread), then calls NAME__packed with the addresses of the arguments, as cuLaunchKernel
// got them. Blocks share nothing: `__shared__` is refused.
#pragma once

#define SOFTCUDA 1

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <type_traits>
#include <utility>

#define __device__
#define __host__
#define __constant__
#define __managed__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// While ci/softcuda-kernels lists the kernels, the word stays, for it to find them by.
#ifndef SOFTCUDA_LIST
#define __global__
#endif
#pragma GCC poison __shared__

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

inline thread_local dim3 blockIdx, threadIdx, gridDim, blockDim;
// How often this GPU thread has slept.
inline thread_local unsigned softcuda_naps;

// The values of the lanes that met.
struct softcuda_exchange {
    unsigned lanes, unused;
    unsigned long long values[32];
};

extern "C" {
// Which GPU thread the calling one now stands for: block, thread, grid's and block's dimensions.
__attribute__((weak)) void softcuda_thread(unsigned bx, unsigned by, unsigned bz, unsigned tx,
                                           unsigned ty, unsigned tz, unsigned gx, unsigned gy,
                                           unsigned gz, unsigned dx, unsigned dy, unsigned dz) {
    blockIdx = {bx, by, bz};
    threadIdx = {tx, ty, tz};
    gridDim = {gx, gy, gz};
    blockDim = {dx, dy, dz};
    softcuda_naps = 0;
}
// Set by the driver: the barrier of a block's threads; the call by which a thread that waits gives way to
// the others, which run on the same thread of the host; and a meeting of the lanes of `mask`, which returns
// when all of them that have not ended have come with the same `kind`.
__attribute__((weak)) void (*softcuda_syncthreads)(void) = nullptr;
__attribute__((weak)) void (*softcuda_pause)(unsigned nanoseconds) = nullptr;
__attribute__((weak)) const softcuda_exchange* (*softcuda_warp)(unsigned mask, unsigned kind,
                                                                unsigned long long value) = nullptr;
}

inline void __syncthreads() {
    if (softcuda_syncthreads) softcuda_syncthreads();
}

// The kinds of meetings, as the driver numbers them.
enum { SOFTCUDA_ACTIVE, SOFTCUDA_SYNC, SOFTCUDA_SHUFFLE, SOFTCUDA_VOTE };

inline unsigned softcuda_lane() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

// A lane alone has nobody to meet. Without a driver lanes cannot.
inline const softcuda_exchange* softcuda_meet(unsigned mask, unsigned kind, unsigned long long value) {
    if (softcuda_warp) return softcuda_warp(mask, kind, value);
    fprintf(stderr, "softcuda: lanes of a warp cannot meet in code that runs without the driver\n");
    abort();
}

// The lanes that are at this place of the code at once. Without a driver each is alone, which CUDA allows.
__attribute__((noinline)) inline unsigned __activemask() {
    if (!softcuda_warp) return 1u << softcuda_lane();
    return softcuda_warp(0, SOFTCUDA_ACTIVE, (unsigned long long)__builtin_return_address(0))->lanes;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
    if ((mask & (mask - 1)) != 0) softcuda_meet(mask, SOFTCUDA_SYNC, 0);
}
inline unsigned long long __shfl_sync(unsigned mask, unsigned long long value, int source) {
    if ((mask & (mask - 1)) == 0) return value;
    return softcuda_meet(mask, SOFTCUDA_SHUFFLE, value)->values[source];
}
inline int __all_sync(unsigned mask, int yes) {
    if ((mask & (mask - 1)) == 0) return yes;
    const softcuda_exchange* all = softcuda_meet(mask, SOFTCUDA_VOTE, yes != 0);
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((all->lanes >> lane & 1) && !all->values[lane]) return 0;
    return 1;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }

// Whoever sleeps waits for another thread; a sleep of no time says that a wait is over. Without a driver: give way, and after a
// while leave the CPU alone.
inline void __nanosleep(unsigned nanoseconds) {
    if (softcuda_pause) {
        softcuda_pause(nanoseconds);
    } else if (nanoseconds == 0) {
        softcuda_naps = 0;
    } else if (++softcuda_naps < 256) {
        sched_yield();
    } else {
        const timespec nap{0, 50000};
        nanosleep(&nap, nullptr);
    }
}

// The device library's clock.
extern "C" inline unsigned long long softcuda_nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#define SOFTCUDA_ATOMICS(T)                                                                        \
    inline T atomicAdd(T* at, T value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); } \
    inline T atomicExch(T* at, T value) {                                                          \
        return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);                                   \
    }                                                                                              \
    inline T atomicCAS(T* at, T compare, T value) {                                                \
        __atomic_compare_exchange_n(at, &compare, value, false, __ATOMIC_RELAXED,                  \
                                    __ATOMIC_RELAXED);                                             \
        return compare;                                                                            \
    }
SOFTCUDA_ATOMICS(int)
SOFTCUDA_ATOMICS(unsigned)
SOFTCUDA_ATOMICS(unsigned long long)
#undef SOFTCUDA_ATOMICS

// An argument need not be aligned where it lies.
template <class Argument>
inline Argument softcuda_argument(const void* from) {
    Argument value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <class... Argument, size_t... Index>
inline void softcuda_call(void (*kernel)(Argument...), void** arguments,
                          std::index_sequence<Index...>) {
    static_assert((std::is_trivially_copyable_v<Argument> && ...));
    kernel(softcuda_argument<std::remove_cv_t<Argument>>(arguments[Index])...);
}

#define SOFTCUDA_ENTRY(name)                                                                       \
    extern "C" void name##__packed(void** arguments) {                                             \
        softcuda_call(name, arguments, softcuda_indices(name));                                    \
    }

template <class... Argument>
constexpr auto softcuda_indices(void (*)(Argument...)) {
    return std::index_sequence_for<Argument...>{};
}
