// CUDA's keywords and functions, as far as the device library needs them, for clang without CUDA's headers.
#pragma once

#include "../../../ci/device-compilers.d/declarations.h"

#define __shared__ __attribute__((shared))
// A copy in registers; the function itself does not exist in modules that this bitcode is linked into.
#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)

// As in NVRTC: headers leave out what is the host's.
#define __CUDACC__
#define __CUDACC_RTC__
typedef __PTRDIFF_TYPE__ ptrdiff_t;

struct alignas(16) double2 {
    double x, y;
};
extern "C" __device__ int printf(const char*, ...);
static __device__ __forceinline__ void __trap() { __builtin_trap(); }
