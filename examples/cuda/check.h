// The end of a job after a failure, for all programs of this folder.
#pragma once
#include <cstdio>
#include <shmem.h>

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        fprintf(stderr, "PE %d: ", shmem_my_pe());                                                                     \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
        shmem_global_exit(1);                                                                                          \
    } while (0)

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        const cudaError_t error = (call);                                                                              \
        if (error != cudaSuccess) FAIL("%s: %s", #call, cudaGetErrorString(error));                                    \
    } while (0)
