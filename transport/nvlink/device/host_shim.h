// CUDA C++ as host C++: what ci/softcuda-kernels puts before a .cu file, so that the software CUDA
// driver (ci/softcuda) can run its kernels on threads of the host. No GPU build reads this.
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
// Set by the driver: the barrier of a block's threads, and the call by which a thread that waits gives
// way to the others, which run on the same thread of the host.
__attribute__((weak)) void (*softcuda_syncthreads)(void) = nullptr;
__attribute__((weak)) void (*softcuda_pause)(void) = nullptr;
}

inline void __syncthreads() {
    if (softcuda_syncthreads) softcuda_syncthreads();
}

// Threads of a warp cannot meet here. A kernel that asks for it ends with a message, unless the warp has one thread.
inline void __syncwarp(unsigned mask = 0xffffffffu) {
    if ((mask & (mask - 1)) == 0) return;
    fprintf(stderr, "softcuda: __syncwarp is not available to kernels that ci/softcuda-kernels builds\n");
    abort();
}

// Whoever sleeps waits for another thread. Without a driver: give way, and after a while leave the CPU
// alone.
inline void __nanosleep(unsigned) {
    if (softcuda_pause) {
        softcuda_pause();
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
