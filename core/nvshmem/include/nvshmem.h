/* NVSHMEM's interface over oxshmem: the host's calls, and in CUDA sources those of kernels. */
#ifndef NVSHMEM_H
#define NVSHMEM_H

/* A program's -Wextra is for its own text. */
#if defined(OXSHMEM_EMULATION)
#pragma clang system_header
#endif

#include "device_host/nvshmem_types.h"
#if !defined(__CUDACC_RTC__)
#include "host/nvshmem_api.h"
#include "host/nvshmemx_api.h"
#endif
#if NVSHMEMI_IN_KERNELS
#include "device/oxshmem_calls.cuh"
#include "device/nvshmem_device.cuh"
#include "device/nvshmemx_device.cuh"
#include "device_host/nvshmem_tensor.h"
#endif

#endif
