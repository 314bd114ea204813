// The names that this folder's kernels use.
#pragma once

// The names in the PTX must not depend on the folder.
#define OXSHMEM_OUTLINE static __device__ __forceinline__

#include "words.cuh"

using namespace oxshmem;
using namespace oxshmem::words;

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef float f32;
typedef double f64;

#define DEVICE OXSHMEM_DEVICE

// This thread's number in a grid of one dimension, and how many threads the grid has.
DEVICE u64 grid_thread() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE u64 grid_threads() { return (u64)gridDim.x * blockDim.x; }
