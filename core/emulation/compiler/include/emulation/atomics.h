// Atomic functions. Scopes are one on a CPU: each form is atomic for all that reach the word.
#pragma once

#define OXSHMEM_FETCH(T, name, builtin)                                                            \
    static __device__ __forceinline__ T name(T* at, T value) {                                     \
        return builtin(at, value, __ATOMIC_RELAXED);                                               \
    }                                                                                              \
    static __device__ __forceinline__ T name##_block(T* at, T value) { return name(at, value); }   \
    static __device__ __forceinline__ T name##_system(T* at, T value) { return name(at, value); }
#define OXSHMEM_CAS(T)                                                                       \
    static __device__ __forceinline__ T atomicCAS(T* at, T compare, T value) {                     \
        __atomic_compare_exchange_n(at, &compare, value, false, __ATOMIC_RELAXED,                  \
                                    __ATOMIC_RELAXED);                                             \
        return compare;                                                                            \
    }                                                                                              \
    static __device__ __forceinline__ T atomicCAS_block(T* at, T compare, T value) {               \
        return atomicCAS(at, compare, value);                                                      \
    }                                                                                              \
    static __device__ __forceinline__ T atomicCAS_system(T* at, T compare, T value) {              \
        return atomicCAS(at, compare, value);                                                      \
    }
#define OXSHMEM_INTEGER(T)                                                                         \
    OXSHMEM_FETCH(T, atomicAdd, __atomic_fetch_add)                                                \
    OXSHMEM_FETCH(T, atomicMin, __atomic_fetch_min)                                                \
    OXSHMEM_FETCH(T, atomicMax, __atomic_fetch_max)                                                \
    OXSHMEM_FETCH(T, atomicAnd, __atomic_fetch_and)                                                \
    OXSHMEM_FETCH(T, atomicOr, __atomic_fetch_or)                                                  \
    OXSHMEM_FETCH(T, atomicXor, __atomic_fetch_xor)                                                \
    OXSHMEM_FETCH(T, atomicExch, __atomic_exchange_n)                                              \
    OXSHMEM_CAS(T)
OXSHMEM_INTEGER(int)
OXSHMEM_INTEGER(unsigned)
OXSHMEM_INTEGER(unsigned long long)
// CUDA has minimum and maximum alone for signed numbers of 64 bits.
OXSHMEM_FETCH(long long, atomicMin, __atomic_fetch_min)
OXSHMEM_FETCH(long long, atomicMax, __atomic_fetch_max)
OXSHMEM_FETCH(int, atomicSub, __atomic_fetch_sub)
OXSHMEM_FETCH(unsigned, atomicSub, __atomic_fetch_sub)
OXSHMEM_FETCH(float, atomicAdd, __atomic_fetch_add)
OXSHMEM_FETCH(double, atomicAdd, __atomic_fetch_add)
OXSHMEM_CAS(unsigned short)

static __device__ __forceinline__ float atomicExch(float* at, float value) {
    return __builtin_bit_cast(float, atomicExch((unsigned*)at, __builtin_bit_cast(unsigned, value)));
}
static __device__ __forceinline__ float atomicExch_block(float* at, float value) {
    return atomicExch(at, value);
}
static __device__ __forceinline__ float atomicExch_system(float* at, float value) {
    return atomicExch(at, value);
}

#define OXSHMEM_WRAP(name, next)                                                                   \
    static __device__ __forceinline__ unsigned name(unsigned* at, unsigned limit) {                \
        unsigned old = __atomic_load_n(at, __ATOMIC_RELAXED);                                      \
        while (!__atomic_compare_exchange_n(at, &old, (next), false, __ATOMIC_RELAXED,             \
                                            __ATOMIC_RELAXED)) {                                   \
        }                                                                                          \
        return old;                                                                                \
    }                                                                                              \
    static __device__ __forceinline__ unsigned name##_block(unsigned* at, unsigned limit) {        \
        return name(at, limit);                                                                    \
    }                                                                                              \
    static __device__ __forceinline__ unsigned name##_system(unsigned* at, unsigned limit) {       \
        return name(at, limit);                                                                    \
    }
OXSHMEM_WRAP(atomicInc, old >= limit ? 0 : old + 1)
OXSHMEM_WRAP(atomicDec, old == 0 || old > limit ? limit : old - 1)
#undef OXSHMEM_WRAP
#undef OXSHMEM_INTEGER
#undef OXSHMEM_CAS
#undef OXSHMEM_FETCH
