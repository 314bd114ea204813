// CUDA C++ as host C++, for kernels on the simulated memory: what stands before a copy of oxshmem.cuh whose PTX
// instructions have become calls of `weak_ptx` (source.rs). The GPU's half of the header is compiled.
//
// Plain accesses of kernels come by ThreadSanitizer's calls, which the compiler inserts: a load is told before it happens,
// and finds in memory what the simulation has put there for it; a store is taken from memory afterwards. A volatile one is
// relaxed at system scope, as PTX has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __CUDA_ARCH__ 900
#define __device__
#define __global__
#define __constant__ thread_local
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
static thread_local dim3 threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim, gridDim;

// The simulation, in Rust (hooks.rs).
struct WeakHooks {
    unsigned long long (*ptx)(const char* text, const void* at, unsigned long long a, unsigned long long b);
    void (*plain_load)(const void* at, unsigned long long bytes);
    void (*plain_store)(const void* at, unsigned long long bytes, int is_volatile);
    // 0 for the block, else the lanes of a warp.
    void (*meet)(unsigned lanes);
    // Some lanes of the warp that are at this place.
    unsigned (*lanes)();
    // The value of the lane of this number, of those that come with a value; or, of -1, whether all of them have one that is not 0.
    unsigned long long (*exchange)(unsigned lanes, unsigned long long value, int from);
    void (*sleep)();
};
static thread_local WeakHooks weak_hooks;
// The memory that is simulated.
static thread_local const char* weak_base;
static thread_local size_t weak_bytes;
// The change of the header that is made (source.rs), or -1.
static thread_local int weak_change = -1;

#define WEAK_UNSEEN __attribute__((no_sanitize("thread")))

static WEAK_UNSEEN inline bool weak_is_simulated(const void* at) {
    return (size_t)((const char*)at - weak_base) < weak_bytes;
}
static WEAK_UNSEEN inline void __syncwarp(unsigned lanes) { weak_hooks.meet(lanes); }
static WEAK_UNSEEN inline void __syncthreads() { weak_hooks.meet(0); }
static WEAK_UNSEEN inline unsigned __activemask() { return weak_hooks.lanes(); }
static WEAK_UNSEEN inline unsigned long long __shfl_sync(unsigned lanes, unsigned long long value, int from) {
    return weak_hooks.exchange(lanes, value, from);
}
static WEAK_UNSEEN inline int __all_sync(unsigned lanes, int holds) { return (int)weak_hooks.exchange(lanes, holds != 0, -1); }
static WEAK_UNSEEN inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
static WEAK_UNSEEN inline int __ffs(int bits) { return __builtin_ffs(bits); }
static WEAK_UNSEEN inline void __nanosleep(unsigned nanoseconds) {
    if (nanoseconds) weak_hooks.sleep();
}

template <class T>
struct WeakOut {
    T& to;
};
template <class T>
static WEAK_UNSEEN inline WeakOut<T> weak_out(T& to) {
    return WeakOut<T>{to};
}
template <class T>
static WEAK_UNSEEN inline unsigned long long weak_word(T value) {
    return (unsigned long long)value;
}

// A fence.
static WEAK_UNSEEN inline void weak_ptx(const char* text) { weak_hooks.ptx(text, nullptr, 0, 0); }
// The clock; the lanes of the warp before this one.
template <class T>
static WEAK_UNSEEN inline void weak_ptx(const char* text, WeakOut<T> out) {
    out.to = (T)weak_hooks.ptx(text, nullptr, 0, 0);
}
// Loads, of one word or two.
template <class T, class W>
static WEAK_UNSEEN inline void weak_ptx(const char* text, WeakOut<T> out, const W* at) {
    out.to = (T)weak_hooks.ptx(text, at, 0, 0);
}
template <class T, class W>
static WEAK_UNSEEN inline void weak_ptx(const char* text, WeakOut<T> out, WeakOut<T> second, const W* at) {
    out.to = (T)weak_hooks.ptx(text, at, 0, 0);
    second.to = (T)weak_hooks.ptx(text, at + 1, 0, 0);
}
// Stores, of one word or two, and reductions.
template <class W, class V>
static WEAK_UNSEEN inline void weak_ptx(const char* text, W* at, V value) {
    weak_hooks.ptx(text, at, weak_word(value), 0);
}
template <class W, class V>
static WEAK_UNSEEN inline void weak_ptx(const char* text, W* at, V value, V second) {
    weak_hooks.ptx(text, at, weak_word(value), 0);
    weak_hooks.ptx(text, at + 1, weak_word(second), 0);
}
// Atomics.
template <class T, class W, class V>
static WEAK_UNSEEN inline void weak_ptx(const char* text, WeakOut<T> out, W* at, V value) {
    out.to = (T)weak_hooks.ptx(text, at, weak_word(value), 0);
}
template <class T, class W, class V>
static WEAK_UNSEEN inline void weak_ptx(const char* text, WeakOut<T> out, W* at, V compare, V value) {
    out.to = (T)weak_hooks.ptx(text, at, weak_word(value), weak_word(compare));
}
// Conversions of numbers of 16 bits. No program has them.
static WEAK_UNSEEN inline void weak_ptx(const char*, WeakOut<float>, unsigned short) { __builtin_trap(); }
static WEAK_UNSEEN inline void weak_ptx(const char*, WeakOut<unsigned short>, float) { __builtin_trap(); }

// ThreadSanitizer's calls.
#define WEAK_PLAIN(bytes)                                                                                              \
    WEAK_UNSEEN void __tsan_read##bytes(void* at) {                                                                    \
        if (weak_is_simulated(at)) weak_hooks.plain_load(at, bytes);                                                   \
    }                                                                                                                  \
    WEAK_UNSEEN void __tsan_write##bytes(void* at) {                                                                   \
        if (weak_is_simulated(at)) weak_hooks.plain_store(at, bytes, 0);                                               \
    }                                                                                                                  \
    WEAK_UNSEEN void __tsan_volatile_write##bytes(void* at) {                                                          \
        if (weak_is_simulated(at)) weak_hooks.plain_store(at, bytes, 1);                                               \
    }                                                                                                                  \
    WEAK_UNSEEN void __tsan_volatile_read##bytes(void*) { __builtin_trap(); }
extern "C" {
WEAK_PLAIN(1)
WEAK_PLAIN(2)
WEAK_PLAIN(4)
WEAK_PLAIN(8)
WEAK_PLAIN(16)
WEAK_UNSEEN void __tsan_read_range(void* at, size_t bytes) {
    if (weak_is_simulated(at)) weak_hooks.plain_load(at, bytes);
}
WEAK_UNSEEN void __tsan_write_range(void* at, size_t bytes) {
    if (weak_is_simulated(at)) weak_hooks.plain_store(at, bytes, 0);
}
WEAK_UNSEEN void __tsan_func_entry(void*) {}
WEAK_UNSEEN void __tsan_func_exit() {}
WEAK_UNSEEN void __tsan_init() {}
}
