// The thread's position, barriers of the block, fences, time and ends.
#pragma once

extern "C" {
__device__ __attribute__((const)) const unsigned* softcuda_position();
__device__ unsigned softcuda_block_barrier(unsigned number);
__device__ unsigned softcuda_dynamic_size();
__device__ void softcuda_grid_barrier();
__device__ void softcuda_pause(unsigned nanoseconds);
__device__ __attribute__((noreturn)) void softcuda_trap(unsigned code);
}

// Objects with properties and not macros: programs have variables of these names.
#define OXSHMEM_POSITION(name, at)                                                                 \
    struct oxshmem_##name##_t {                                                                    \
        __declspec(property(get = get_x)) unsigned x;                                              \
        __declspec(property(get = get_y)) unsigned y;                                              \
        __declspec(property(get = get_z)) unsigned z;                                              \
        __device__ __forceinline__ unsigned get_x() const { return softcuda_position()[at]; }      \
        __device__ __forceinline__ unsigned get_y() const { return softcuda_position()[at + 1]; }  \
        __device__ __forceinline__ unsigned get_z() const { return softcuda_position()[at + 2]; }  \
        __device__ operator uint3() const { return make_uint3(x, y, z); }                          \
        __device__ operator dim3() const { return dim3(x, y, z); }                                 \
    };                                                                                             \
    extern const __device__ __attribute__((weak)) oxshmem_##name##_t name;
OXSHMEM_POSITION(threadIdx, 0)
OXSHMEM_POSITION(blockIdx, 3)
OXSHMEM_POSITION(blockDim, 6)
OXSHMEM_POSITION(gridDim, 9)
#undef OXSHMEM_POSITION
enum { warpSize = 32 };

// A name that clang knows as a function of GPUs alone.
#define __syncthreads() ((void)softcuda_block_barrier(0))
static __device__ __forceinline__ int __syncthreads_count(int predicate) {
    return softcuda_block_barrier(predicate != 0);
}
static __device__ __forceinline__ int __syncthreads_or(int predicate) {
    return softcuda_block_barrier(predicate != 0) != 0;
}
static __device__ __forceinline__ int __syncthreads_and(int predicate) {
    return softcuda_block_barrier(predicate == 0) == 0;
}

// The race detector is told of a fence's scope.
#ifdef OXSHMEM_RACES
extern "C" __device__ void softcuda_scope(unsigned scope);
#define OXSHMEM_SCOPE(scope) softcuda_scope(scope)
#else
#define OXSHMEM_SCOPE(scope) ((void)0)
#endif
#define OXSHMEM_BLOCK 0
#define OXSHMEM_WHOLE_DEVICE 1
#define OXSHMEM_SYSTEM 2
#define OXSHMEM_FENCE(name, scope)                                                                 \
    static __device__ __forceinline__ void name() {                                                \
        OXSHMEM_SCOPE(scope);                                                                      \
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                                                   \
    }
OXSHMEM_FENCE(__threadfence_block, OXSHMEM_BLOCK)
OXSHMEM_FENCE(__threadfence, OXSHMEM_WHOLE_DEVICE)
OXSHMEM_FENCE(__threadfence_system, OXSHMEM_SYSTEM)
#undef OXSHMEM_FENCE

static __device__ __forceinline__ void __nanosleep(unsigned nanoseconds) { softcuda_pause(nanoseconds); }
static __device__ __forceinline__ long long clock64() { return __builtin_readcyclecounter(); }
static __device__ __forceinline__ long clock() { return __builtin_readcyclecounter(); }
static __device__ __forceinline__ void __trap() { softcuda_trap(719); }
static __device__ __forceinline__ void __brkpt() { softcuda_trap(719); }
static __device__ __forceinline__ void __prof_trigger(int) {}
#define __assume(condition) __builtin_assume(condition)
