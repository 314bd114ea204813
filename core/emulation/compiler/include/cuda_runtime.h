// The CUDA runtime API for programs that `oxshmem cuda cc` builds for the CPU: the toolkit's own
// header for the host's side, and our declarations for the device's.
#ifndef OXSHMEM_CUDA_RUNTIME_H
#define OXSHMEM_CUDA_RUNTIME_H

#if defined(__CUDA__) && defined(OXSHMEM_EMULATION)
// The C++ library's own settings, which declare std::terminate, are the host's alone, as <exception> is.
#include <cstddef>
// The C library's functions are the device's, too: both run on the CPU. Containers and algorithms stay
// the host's: of them device code has the functions that are constexpr.
#pragma clang force_cuda_host_device begin
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#pragma clang force_cuda_host_device end
#include <algorithm>
#include <functional>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#pragma clang force_cuda_host_device begin
#include <math.h>
#include <cmath>
#pragma clang force_cuda_host_device end
// The toolkit's declarations of device functions, which stand below in our form.
#define __COMMON_FUNCTIONS_H__
#define __DEVICE_FUNCTIONS_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define __NV_NO_HOST_COMPILER_CHECK 1
extern "C" unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block,
                                                size_t shared = 0, struct CUstream_st* stream = 0);
#include_next <cuda_runtime.h>
// Host and device would have a variable each; and clusters of blocks there are none.
#undef __managed__
#undef __cluster_dims__
#define __managed__ _Pragma("GCC error \"__managed__ variables are not part of the emulation (docs/cuda-emulation.md, What works): use memory of cudaMallocManaged, by a pointer\"")
#define __cluster_dims__(...) _Pragma("GCC error \"__cluster_dims__ is not part of the emulation (docs/cuda-emulation.md, What works)\"")
// Parameters are constant for all threads anyway.
#undef __grid_constant__
#define __grid_constant__
// A keyword of clang for CUDA, and a word of attributes in the C++ library.
#undef __noinline__
#include "emulation/builtins.h"
#include "emulation/atomics.h"
#include "emulation/integers.h"
#include "emulation/simd.h"
#include "emulation/math.h"
#include "emulation/memory.h"
#include "emulation/warp.h"
#else
#include_next <cuda_runtime.h>
#endif

#endif
