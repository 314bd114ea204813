// Checks that end the job.
#pragma once
#include <cstdio>
#include <shmem.h>

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            fprintf(stderr, "PE %d: %s:%d: %s\n", shmem_my_pe(), __FILE__, __LINE__, #holds);                          \
            shmem_global_exit(1);                                                                                      \
        }                                                                                                              \
    } while (0)
#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        const cudaError_t error = (call);                                                                              \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "PE %d: %s:%d: %s\n", shmem_my_pe(), __FILE__, __LINE__, cudaGetErrorString(error));       \
            shmem_global_exit(1);                                                                                      \
        }                                                                                                              \
    } while (0)
