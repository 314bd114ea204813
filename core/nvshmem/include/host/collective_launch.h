/* Launches of kernels that wait for other blocks and other PEs: all of a kernel's blocks run at once, or it is refused. By the program's
   own CUDA runtime, which alone knows its kernels. */
#ifndef NVSHMEM_HOST_COLLECTIVE_LAUNCH_H
#define NVSHMEM_HOST_COLLECTIVE_LAUNCH_H

#include "../device_host/nvshmem_types.h"

#if defined(NVSHMEMI_HAS_CUDART)

#ifdef __cplusplus
extern "C"
#endif
/* Opens the GPU's part of the library, and gives new kernels their state, where that is still to do. 0, or a status after a message. */
int oxshmem_prepare_launch(void);

/* The result of a launch. An error is told. */
static inline int nvshmemi_launch_told(const char *call, cudaError_t error) {
    if (error == cudaSuccess) return NVSHMEMX_SUCCESS;
    fprintf(stderr, "oxshmem: %s: %s (CUDA error %d)\n", call, cudaGetErrorString(error), (int)error);
    return NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED;
}

/* The most blocks of this kernel that run at once on the current device. */
static inline int nvshmemi_most_blocks(const char *call, const void *func, dim3 block, size_t shared_bytes, int *most) {
    int device = 0, processors = 0, each = 0, cooperative = 0;
    cudaError_t error = cudaGetDevice(&device);
    *most = 0;
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
    if (error == cudaSuccess && !cooperative) {
        fprintf(stderr, "oxshmem: %s: device %d has no cooperative launches, so that it cannot be known that all blocks run at once\n",
                call, device);
        return NVSHMEMX_ERROR_NOT_SUPPORTED;
    }
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, func, (int)(block.x * block.y * block.z), shared_bytes);
    if (error != cudaSuccess) return nvshmemi_launch_told(call, error);
    *most = processors * each;
    return NVSHMEMX_SUCCESS;
}

/* The grid that fits, for one of 0 blocks; else whether the given one does. */
static inline int nvshmemi_fit_grid(const char *call, const void *func, dim3 *grid, dim3 block, size_t shared_bytes) {
    int most = 0;
    int status = oxshmem_prepare_launch();
    const unsigned long long blocks = (unsigned long long)grid->x * grid->y * grid->z;
    if (status == NVSHMEMX_SUCCESS) status = nvshmemi_most_blocks(call, func, block, shared_bytes, &most);
    if (status != NVSHMEMX_SUCCESS) return status;
    if (most == 0) {
        fprintf(stderr, "oxshmem: %s: not one block of %u threads with %zu bytes of shared memory fits a multiprocessor\n", call,
                block.x * block.y * block.z, shared_bytes);
        return NVSHMEMX_ERROR_INVALID_VALUE;
    }
    if (grid->x == 0 && grid->y == 0 && grid->z == 0) {
        grid->x = (unsigned)most;
        grid->y = grid->z = 1;
        return NVSHMEMX_SUCCESS;
    }
    if (blocks == 0) {
        fprintf(stderr, "oxshmem: %s: a grid of %u x %u x %u has no block; give at least 1 in each dimension, or (0, 0, 0) for as many "
                "as fit\n",
                call, grid->x, grid->y, grid->z);
        return NVSHMEMX_ERROR_INVALID_VALUE;
    }
    if (blocks > (unsigned long long)most) {
        fprintf(stderr, "oxshmem: %s: a grid of %u x %u x %u blocks of %u threads is asked for, and %d blocks of this kernel run at once; "
                "give fewer blocks, or a grid of (0, 0, 0) for as many as fit\n",
                call, grid->x, grid->y, grid->z, block.x * block.y * block.z, most);
        return NVSHMEMX_ERROR_INVALID_VALUE;
    }
    return NVSHMEMX_SUCCESS;
}

/* `after` waits for what is in `before` so far. */
static inline cudaError_t nvshmemi_order_streams(cudaStream_t before, cudaStream_t after) {
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess) return error;
    error = cudaEventRecord(event, before);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(after, event, 0);
    cudaEventDestroy(event);
    return error;
}

/* A stream of the highest priority, which waits for no other. It is destroyed once the launch is queued: its work goes on. */
static inline int nvshmemi_launch_apart(const char *call, const void *func, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                                        cudaStream_t stream) {
    int least = 0, greatest = 0;
    cudaStream_t apart;
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    /* A graph has no stream of its own. */
    if (error == cudaSuccess && capture != cudaStreamCaptureStatusNone)
        return nvshmemi_launch_told(call, cudaLaunchCooperativeKernel(func, grid, block, args, shared_bytes, stream));
    if (error == cudaSuccess) error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (error == cudaSuccess) error = cudaStreamCreateWithPriority(&apart, cudaStreamNonBlocking, greatest);
    if (error != cudaSuccess) return nvshmemi_launch_told(call, error);
    error = nvshmemi_order_streams(stream, apart);
    if (error == cudaSuccess) error = cudaLaunchCooperativeKernel(func, grid, block, args, shared_bytes, apart);
    if (error == cudaSuccess) error = nvshmemi_order_streams(apart, stream);
    cudaStreamDestroy(apart);
    return nvshmemi_launch_told(call, error);
}

/* `func` on all PEs together, in the order of `stream`. A grid of (0, 0, 0) is as large as fits. */
static inline int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims, void **args, size_t sharedMem,
                                             cudaStream_t stream) {
    const int status = nvshmemi_fit_grid("nvshmemx_collective_launch", func, &gridDims, blockDims, sharedMem);
    if (status != NVSHMEMX_SUCCESS) return status;
    return nvshmemi_launch_apart("nvshmemx_collective_launch", func, gridDims, blockDims, args, sharedMem, stream);
}

/* The most blocks of a grid of `func` that can be launched so. */
static inline int nvshmemx_collective_launch_query_gridsize(const void *func, dim3 blockDims, void **args, size_t sharedMem,
                                                            int *gridsize) {
    (void)args;
    return nvshmemi_most_blocks("nvshmemx_collective_launch_query_gridsize", func, blockDims, sharedMem, gridsize);
}

#if defined(NVSHMEMI_HAS_LAUNCH_CONFIG)
/* The same with attributes of CUDA: grid, block, shared memory, stream and attributes are those of `cuda_config`. The launch is made
   cooperative, and goes to the program's stream itself. */
static inline int nvshmemx_collective_launch_attr(const nvshmemx_collective_launch_attr_t *attr, const void *func, void **args) {
    enum { MOST = 64 };
    const char *call = "nvshmemx_collective_launch_attr";
    cudaLaunchAttribute attributes[MOST];
    cudaLaunchConfig_t config;
    unsigned i, has_cooperative = 0;
    int status;
    if (!attr || attr->cuda_config.numAttrs >= MOST) {
        fprintf(stderr, "oxshmem: %s: %s\n", call, attr ? "more than 63 attributes" : "attr is null");
        return NVSHMEMX_ERROR_INVALID_VALUE;
    }
    config = attr->cuda_config;
    status = nvshmemi_fit_grid(call, func, &config.gridDim, config.blockDim, config.dynamicSmemBytes);
    if (status != NVSHMEMX_SUCCESS) return status;
    for (i = 0; i < config.numAttrs; ++i) {
        attributes[i] = config.attrs[i];
        if (attributes[i].id == cudaLaunchAttributeCooperative) {
            attributes[i].val.cooperative = 1;
            has_cooperative = 1;
        }
    }
    if (!has_cooperative) {
        attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
        attributes[config.numAttrs].val.cooperative = 1;
        ++config.numAttrs;
    }
    config.attrs = attributes;
    return nvshmemi_launch_told(call, cudaLaunchKernelExC(&config, func, args));
}
#endif

#endif

#endif
