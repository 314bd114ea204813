// What nvshmem.h needs beside that, for clang without CUDA's headers.
#pragma once

#include "declarations.h"

struct alignas(16) double2 {
    double x, y;
};
extern "C" __device__ int printf(const char*, ...);
static __device__ __forceinline__ void __trap() { asm volatile("trap;"); }
