// Atomic functions. Scopes are one on a CPU: each form is atomic for all that reach the word. The race detector is told of them.
#pragma once

#define OXSHMEM_FETCH_IN(scope, T, name, builtin)                                                  \
    static __device__ __forceinline__ T name(T* at, T value) {                                     \
        OXSHMEM_SCOPE(scope);                                                                      \
        return builtin(at, value, __ATOMIC_RELAXED);                                               \
    }
#define OXSHMEM_FETCH(T, name, builtin)                                                            \
    OXSHMEM_FETCH_IN(OXSHMEM_WHOLE_DEVICE, T, name, builtin)                                             \
    OXSHMEM_FETCH_IN(OXSHMEM_BLOCK, T, name##_block, builtin)                                      \
    OXSHMEM_FETCH_IN(OXSHMEM_SYSTEM, T, name##_system, builtin)
#define OXSHMEM_CAS_IN(scope, T, name)                                                             \
    static __device__ __forceinline__ T name(T* at, T compare, T value) {                          \
        OXSHMEM_SCOPE(scope);                                                                      \
        __atomic_compare_exchange_n(at, &compare, value, false, __ATOMIC_RELAXED,                  \
                                    __ATOMIC_RELAXED);                                             \
        return compare;                                                                            \
    }
#define OXSHMEM_CAS(T)                                                                             \
    OXSHMEM_CAS_IN(OXSHMEM_WHOLE_DEVICE, T, atomicCAS)                                                   \
    OXSHMEM_CAS_IN(OXSHMEM_BLOCK, T, atomicCAS_block)                                              \
    OXSHMEM_CAS_IN(OXSHMEM_SYSTEM, T, atomicCAS_system)
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

#define OXSHMEM_EXCHANGE(name)                                                                     \
    static __device__ __forceinline__ float name(float* at, float value) {                         \
        const unsigned bits = __builtin_bit_cast(unsigned, value);                                 \
        return __builtin_bit_cast(float, name((unsigned*)at, bits));                               \
    }
OXSHMEM_EXCHANGE(atomicExch)
OXSHMEM_EXCHANGE(atomicExch_block)
OXSHMEM_EXCHANGE(atomicExch_system)
#undef OXSHMEM_EXCHANGE

// Each component for itself, as on a GPU.
#define OXSHMEM_COMPONENTS(name)                                                                   \
    static __device__ __forceinline__ float2 name(float2* at, float2 value) {                      \
        const float x = name(&at->x, value.x);                                                     \
        return make_float2(x, name(&at->y, value.y));                                              \
    }                                                                                              \
    static __device__ __forceinline__ float4 name(float4* at, float4 value) {                      \
        const float x = name(&at->x, value.x), y = name(&at->y, value.y), z = name(&at->z, value.z); \
        return make_float4(x, y, z, name(&at->w, value.w));                                        \
    }
OXSHMEM_COMPONENTS(atomicAdd)
OXSHMEM_COMPONENTS(atomicAdd_block)
OXSHMEM_COMPONENTS(atomicAdd_system)
#undef OXSHMEM_COMPONENTS

#define OXSHMEM_WRAP_IN(scope, name, next)                                                         \
    static __device__ __forceinline__ unsigned name(unsigned* at, unsigned limit) {                \
        OXSHMEM_SCOPE(scope);                                                                      \
        unsigned old = __atomic_load_n(at, __ATOMIC_RELAXED);                                      \
        bool done;                                                                                 \
        do {                                                                                       \
            OXSHMEM_SCOPE(scope);                                                                  \
            done = __atomic_compare_exchange_n(at, &old, (next), false, __ATOMIC_RELAXED,          \
                                               __ATOMIC_RELAXED);                                  \
        } while (!done);                                                                           \
        return old;                                                                                \
    }
#define OXSHMEM_WRAP(name, next)                                                                   \
    OXSHMEM_WRAP_IN(OXSHMEM_WHOLE_DEVICE, name, next)                                                    \
    OXSHMEM_WRAP_IN(OXSHMEM_BLOCK, name##_block, next)                                             \
    OXSHMEM_WRAP_IN(OXSHMEM_SYSTEM, name##_system, next)
OXSHMEM_WRAP(atomicInc, old >= limit ? 0 : old + 1)
OXSHMEM_WRAP(atomicDec, old == 0 || old > limit ? limit : old - 1)
#undef OXSHMEM_WRAP
#undef OXSHMEM_WRAP_IN
#undef OXSHMEM_INTEGER
#undef OXSHMEM_CAS
#undef OXSHMEM_CAS_IN
#undef OXSHMEM_FETCH
#undef OXSHMEM_FETCH_IN
