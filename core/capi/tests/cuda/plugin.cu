#include <oxshmem.cuh>

#include "check.h"

// A variable of the image: 0 each time that the library is loaded.
__device__ int calls;

__global__ void plugged(long* word) {
    oxshmem::p(word, 1000 + 10000 * calls++ + oxshmem::my_pe(), (oxshmem::my_pe() + 1) % oxshmem::n_pes());
}

extern "C" void put_from_plugin(long* word) {
    plugged<<<1, 1>>>(word);
    CUDA(cudaGetLastError());
}
