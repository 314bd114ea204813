/* NVSHMEM's interface over oxshmem: the host's calls, and in CUDA sources those of kernels. */
#ifndef NVSHMEM_H
#define NVSHMEM_H

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
