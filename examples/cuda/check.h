// What the programs of this folder share: the end of a job for which something failed.
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
