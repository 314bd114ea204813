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
static __device__ __forceinline__ void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
static __device__ __forceinline__ void __threadfence() { __nvvm_membar_gl(); }
static __device__ __forceinline__ unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
    return __nvvm_atom_add_gen_ll((long long*)at, (long long)value);
}
