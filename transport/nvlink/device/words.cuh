// Types, and the accesses to words that other GPUs, NICs and CPUs use at the same time: relaxed or
// ordered, always at system scope. Addresses are generic, so a word may lie in this GPU's memory, in
// a peer's or in pinned host memory. Inline PTX on a GPU, `__atomic_*` in the host build.
#pragma once

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define DEVICE static __device__ __forceinline__

#ifdef __CUDA_ARCH__

#define OLD_VALUE(name, instruction, T, reg)                                                       \
    DEVICE T name(T* word, T operand) {                                                            \
        T old;                                                                                     \
        asm volatile("atom.relaxed.sys." instruction " %0, [%1], %2;"                              \
                     : "=" reg(old)                                                                \
                     : "l"(word), reg(operand)                                                     \
                     : "memory");                                                                  \
        return old;                                                                                \
    }

#define WORDS(T, bits, reg)                                                                        \
    DEVICE T load_relaxed(const T* word) {                                                         \
        T value;                                                                                   \
        asm volatile("ld.relaxed.sys.u" bits " %0, [%1];" : "=" reg(value) : "l"(word) : "memory"); \
        return value;                                                                              \
    }                                                                                              \
    DEVICE T load_acquire(const T* word) {                                                         \
        T value;                                                                                   \
        asm volatile("ld.acquire.sys.u" bits " %0, [%1];" : "=" reg(value) : "l"(word) : "memory"); \
        return value;                                                                              \
    }                                                                                              \
    DEVICE void store_relaxed(T* word, T value) {                                                  \
        asm volatile("st.relaxed.sys.u" bits " [%0], %1;" ::"l"(word), reg(value) : "memory");     \
    }                                                                                              \
    DEVICE void store_release(T* word, T value) {                                                  \
        asm volatile("st.release.sys.u" bits " [%0], %1;" ::"l"(word), reg(value) : "memory");     \
    }                                                                                              \
    DEVICE void add_release(T* word, T value) {                                                    \
        asm volatile("red.release.sys.add.u" bits " [%0], %1;" ::"l"(word), reg(value) : "memory"); \
    }                                                                                              \
    OLD_VALUE(fetch_add, "add.u" bits, T, reg)                                                     \
    OLD_VALUE(fetch_and, "and.b" bits, T, reg)                                                     \
    OLD_VALUE(fetch_or, "or.b" bits, T, reg)                                                       \
    OLD_VALUE(fetch_xor, "xor.b" bits, T, reg)                                                     \
    OLD_VALUE(swap, "exch.b" bits, T, reg)                                                         \
    DEVICE T compare_swap(T* word, T compare, T operand) {                                         \
        T old;                                                                                     \
        asm volatile("atom.relaxed.sys.cas.b" bits " %0, [%1], %2, %3;"                            \
                     : "=" reg(old)                                                                \
                     : "l"(word), reg(compare), reg(operand)                                       \
                     : "memory");                                                                  \
        return old;                                                                                \
    }

WORDS(u32, "32", "r")
WORDS(u64, "64", "l")

#undef WORDS
#undef OLD_VALUE

#else

#define WORDS(T)                                                                                   \
    DEVICE T load_relaxed(const T* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }       \
    DEVICE T load_acquire(const T* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }       \
    DEVICE void store_relaxed(T* word, T v) { __atomic_store_n(word, v, __ATOMIC_RELAXED); }       \
    DEVICE void store_release(T* word, T v) { __atomic_store_n(word, v, __ATOMIC_RELEASE); }       \
    DEVICE void add_release(T* word, T v) { __atomic_fetch_add(word, v, __ATOMIC_RELEASE); }       \
    DEVICE T fetch_add(T* word, T v) { return __atomic_fetch_add(word, v, __ATOMIC_RELAXED); }     \
    DEVICE T fetch_and(T* word, T v) { return __atomic_fetch_and(word, v, __ATOMIC_RELAXED); }     \
    DEVICE T fetch_or(T* word, T v) { return __atomic_fetch_or(word, v, __ATOMIC_RELAXED); }       \
    DEVICE T fetch_xor(T* word, T v) { return __atomic_fetch_xor(word, v, __ATOMIC_RELAXED); }     \
    DEVICE T swap(T* word, T v) { return __atomic_exchange_n(word, v, __ATOMIC_RELAXED); }         \
    DEVICE T compare_swap(T* word, T compare, T v) {                                               \
        __atomic_compare_exchange_n(word, &compare, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return compare;                                                                            \
    }

WORDS(u32)
WORDS(u64)

#undef WORDS

#endif

// This thread's number in a grid of one dimension, and how many threads the grid has.
DEVICE u64 grid_thread() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE u64 grid_threads() { return (u64)gridDim.x * blockDim.x; }
