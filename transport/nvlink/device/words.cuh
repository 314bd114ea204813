// Types, and accesses to words that other threads, GPUs, NICs and CPUs use at the same time: always at system scope.
// Each access is one, whole. Inline PTX on a GPU, `__atomic_*` elsewhere.
#pragma once

#if defined(__CUDA_ARCH__) && !defined(OXSHMEM_EMULATION) && !defined(SOFTCUDA)
#define OXSHMEM_PTX 1
#else
#define OXSHMEM_PTX 0
#endif
#define OXSHMEM_DEVICE static __device__ __forceinline__
// For code that is long beside its call: there is one copy of it in an image.
#ifndef OXSHMEM_OUTLINE
#define OXSHMEM_OUTLINE [[maybe_unused]] static __device__ __noinline__
#endif
#define OXSHMEM_MEMBER __device__ __forceinline__

namespace oxshmem {

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

namespace words {

#if OXSHMEM_PTX

#define OXSHMEM_LOADS_AND_STORES(T, bits, reg)                                                         \
    OXSHMEM_DEVICE T load_relaxed(const T* word) {                                                     \
        T value;                                                                                       \
        asm volatile("ld.relaxed.sys.u" bits " %0, [%1];" : "=" reg(value) : "l"(word) : "memory");    \
        return value;                                                                                  \
    }                                                                                                  \
    OXSHMEM_DEVICE T load_acquire(const T* word) {                                                     \
        T value;                                                                                       \
        asm volatile("ld.acquire.sys.u" bits " %0, [%1];" : "=" reg(value) : "l"(word) : "memory");    \
        return value;                                                                                  \
    }                                                                                                  \
    OXSHMEM_DEVICE void store_relaxed(T* word, T value) {                                              \
        asm volatile("st.relaxed.sys.u" bits " [%0], %1;" ::"l"(word), reg(value) : "memory");         \
    }                                                                                                  \
    OXSHMEM_DEVICE void store_release(T* word, T value) {                                              \
        asm volatile("st.release.sys.u" bits " [%0], %1;" ::"l"(word), reg(value) : "memory");         \
    }
#define OXSHMEM_OLD_VALUE(name, instruction, T, reg)                                                   \
    OXSHMEM_DEVICE T name(T* word, T operand) {                                                        \
        T old;                                                                                         \
        asm volatile("atom.relaxed.sys." instruction " %0, [%1], %2;"                                  \
                     : "=" reg(old)                                                                    \
                     : "l"(word), reg(operand)                                                         \
                     : "memory");                                                                      \
        return old;                                                                                    \
    }
#define OXSHMEM_NO_VALUE(name, instruction, T, reg)                                                    \
    OXSHMEM_DEVICE void name(T* word, T operand) {                                                     \
        asm volatile("red." instruction " [%0], %1;" ::"l"(word), reg(operand) : "memory");            \
    }
#define OXSHMEM_ATOMICS(T, bits, reg)                                                                  \
    OXSHMEM_OLD_VALUE(fetch_add, "add.u" bits, T, reg)                                                 \
    OXSHMEM_OLD_VALUE(fetch_and, "and.b" bits, T, reg)                                                 \
    OXSHMEM_OLD_VALUE(fetch_or, "or.b" bits, T, reg)                                                   \
    OXSHMEM_OLD_VALUE(fetch_xor, "xor.b" bits, T, reg)                                                 \
    OXSHMEM_OLD_VALUE(swap, "exch.b" bits, T, reg)                                                     \
    OXSHMEM_NO_VALUE(add, "relaxed.sys.add.u" bits, T, reg)                                            \
    OXSHMEM_NO_VALUE(and_with, "relaxed.sys.and.b" bits, T, reg)                                       \
    OXSHMEM_NO_VALUE(or_with, "relaxed.sys.or.b" bits, T, reg)                                         \
    OXSHMEM_NO_VALUE(xor_with, "relaxed.sys.xor.b" bits, T, reg)                                       \
    OXSHMEM_NO_VALUE(add_release, "release.sys.add.u" bits, T, reg)                                    \
    OXSHMEM_DEVICE T compare_swap(T* word, T compare, T operand) {                                     \
        T old;                                                                                         \
        asm volatile("atom.relaxed.sys.cas.b" bits " %0, [%1], %2, %3;"                                \
                     : "=" reg(old)                                                                    \
                     : "l"(word), reg(compare), reg(operand)                                           \
                     : "memory");                                                                      \
        return old;                                                                                    \
    }

OXSHMEM_LOADS_AND_STORES(u16, "16", "h")
OXSHMEM_LOADS_AND_STORES(u32, "32", "r")
OXSHMEM_LOADS_AND_STORES(u64, "64", "l")
OXSHMEM_ATOMICS(u32, "32", "r")
OXSHMEM_ATOMICS(u64, "64", "l")

OXSHMEM_DEVICE u8 load_relaxed(const u8* word) {
    u32 value;
    asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return (u8)value;
}
OXSHMEM_DEVICE void store_relaxed(u8* word, u8 value) {
    asm volatile("st.relaxed.sys.u8 [%0], %1;" ::"l"(word), "r"((u32)value) : "memory");
}

// Two neighbouring words, from an address that is a multiple of 16. Each of them is whole.
OXSHMEM_DEVICE ulonglong2 load_pair_relaxed(const u64* words) {
    ulonglong2 pair;
    asm volatile("ld.relaxed.sys.v2.u64 {%0, %1}, [%2];" : "=l"(pair.x), "=l"(pair.y) : "l"(words) : "memory");
    return pair;
}
OXSHMEM_DEVICE void store_pair_relaxed(u64* words, u64 first, u64 second) {
    asm volatile("st.relaxed.sys.v2.u64 [%0], {%1, %2};" ::"l"(words), "l"(first), "l"(second) : "memory");
}

// Orders what this thread did before, and what a barrier of its group had ordered before that, with
// what it does later, for the whole system.
OXSHMEM_DEVICE void fence_all() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
// The same, and all such fences have one order: of two threads that store, fence and load, one sees the other's store.
OXSHMEM_DEVICE void fence_sequential() { asm volatile("fence.sc.sys;" ::: "memory"); }

OXSHMEM_DEVICE u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#undef OXSHMEM_LOADS_AND_STORES
#undef OXSHMEM_OLD_VALUE
#undef OXSHMEM_NO_VALUE
#undef OXSHMEM_ATOMICS

#else

#define OXSHMEM_LOADS_AND_STORES(T)                                                                    \
    OXSHMEM_DEVICE T load_relaxed(const T* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }   \
    OXSHMEM_DEVICE T load_acquire(const T* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }   \
    OXSHMEM_DEVICE void store_relaxed(T* word, T v) { __atomic_store_n(word, v, __ATOMIC_RELAXED); }   \
    OXSHMEM_DEVICE void store_release(T* word, T v) { __atomic_store_n(word, v, __ATOMIC_RELEASE); }
#define OXSHMEM_ATOMICS(T)                                                                             \
    OXSHMEM_DEVICE T fetch_add(T* word, T v) { return __atomic_fetch_add(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE T fetch_and(T* word, T v) { return __atomic_fetch_and(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE T fetch_or(T* word, T v) { return __atomic_fetch_or(word, v, __ATOMIC_RELAXED); }   \
    OXSHMEM_DEVICE T fetch_xor(T* word, T v) { return __atomic_fetch_xor(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE T swap(T* word, T v) { return __atomic_exchange_n(word, v, __ATOMIC_RELAXED); }     \
    OXSHMEM_DEVICE void add(T* word, T v) { (void)__atomic_fetch_add(word, v, __ATOMIC_RELAXED); }     \
    OXSHMEM_DEVICE void and_with(T* word, T v) { (void)__atomic_fetch_and(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE void or_with(T* word, T v) { (void)__atomic_fetch_or(word, v, __ATOMIC_RELAXED); }  \
    OXSHMEM_DEVICE void xor_with(T* word, T v) { (void)__atomic_fetch_xor(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE void add_release(T* word, T v) { (void)__atomic_fetch_add(word, v, __ATOMIC_RELEASE); } \
    OXSHMEM_DEVICE T compare_swap(T* word, T compare, T v) {                                           \
        __atomic_compare_exchange_n(word, &compare, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);     \
        return compare;                                                                                \
    }

OXSHMEM_LOADS_AND_STORES(u8)
OXSHMEM_LOADS_AND_STORES(u16)
OXSHMEM_LOADS_AND_STORES(u32)
OXSHMEM_LOADS_AND_STORES(u64)
OXSHMEM_ATOMICS(u32)
OXSHMEM_ATOMICS(u64)

OXSHMEM_DEVICE ulonglong2 load_pair_relaxed(const u64* words) {
    return ulonglong2{load_relaxed(words), load_relaxed(words + 1)};
}
OXSHMEM_DEVICE void store_pair_relaxed(u64* words, u64 first, u64 second) {
    store_relaxed(words, first);
    store_relaxed(words + 1, second);
}

OXSHMEM_DEVICE void fence_all() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
OXSHMEM_DEVICE void fence_sequential() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // namespace words
}  // namespace oxshmem
extern "C" __device__ unsigned long long softcuda_nanoseconds();
namespace oxshmem {
namespace words {

OXSHMEM_DEVICE u64 nanoseconds() { return softcuda_nanoseconds(); }

#undef OXSHMEM_LOADS_AND_STORES
#undef OXSHMEM_ATOMICS

#endif

// The unsigned word of a number of bytes.
template <u32 BYTES>
struct Word {};
template <>
struct Word<1> {
    typedef u8 Type;
};
template <>
struct Word<2> {
    typedef u16 Type;
};
template <>
struct Word<4> {
    typedef u32 Type;
};
template <>
struct Word<8> {
    typedef u64 Type;
};

// A signal, which programs may declare by any type of 64 bits.
template <class Signal>
OXSHMEM_DEVICE u64* signal_word(Signal* signal) {
    static_assert(sizeof(Signal) == 8, "a signal has 64 bits");
    return (u64*)signal;
}

// A parameter that takes its type from the others.
template <class T>
struct Same {
    typedef T Type;
};

// A value as the word of its size, and back.
template <class T>
OXSHMEM_DEVICE typename Word<sizeof(T)>::Type to_word(const T& value) {
    typename Word<sizeof(T)>::Type word;
    memcpy(&word, &value, sizeof word);
    return word;
}
template <class T>
OXSHMEM_DEVICE T from_word(typename Word<sizeof(T)>::Type word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}
template <class T>
OXSHMEM_DEVICE typename Word<sizeof(T)>::Type* word_of(T* at) {
    return (typename Word<sizeof(T)>::Type*)at;
}
template <class T>
OXSHMEM_DEVICE const typename Word<sizeof(T)>::Type* word_of(const T* at) {
    return (const typename Word<sizeof(T)>::Type*)at;
}

}  // namespace words
}  // namespace oxshmem
