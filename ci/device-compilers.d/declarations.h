// CUDA's keywords and types for clang without CUDA's headers.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

typedef __SIZE_TYPE__ size_t;
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
extern "C" __device__ void* memcpy(void*, const void*, size_t);

#include <__clang_cuda_builtin_vars.h>

static __device__ __forceinline__ void __syncwarp(unsigned mask) { __nvvm_bar_warp_sync(mask); }
static __device__ __forceinline__ unsigned __activemask() {
    unsigned mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}
static __device__ __forceinline__ unsigned long long __shfl_sync(unsigned mask, unsigned long long value, int source) {
    const unsigned low = __nvvm_shfl_sync_idx_i32(mask, (int)value, source, 31);
    const unsigned high = __nvvm_shfl_sync_idx_i32(mask, (int)(value >> 32), source, 31);
    return low | (unsigned long long)high << 32;
}
static __device__ __forceinline__ int __all_sync(unsigned mask, int yes) { return __nvvm_vote_all_sync(mask, yes); }
static __device__ __forceinline__ int __popc(unsigned x) { return __builtin_popcount(x); }
static __device__ __forceinline__ int __ffs(int x) { return __builtin_ffs(x); }
static __device__ __forceinline__ void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
static __device__ __forceinline__ void __threadfence() { __nvvm_membar_gl(); }
static __device__ __forceinline__ unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
    return __nvvm_atom_add_gen_ll((long long*)at, (long long)value);
}
