#include <oxshmem.cuh>

#include "check.h"
#include "images.h"

__global__ void two(long* word) { oxshmem::p(word, 100 + oxshmem::my_pe(), (oxshmem::my_pe() + 1) % oxshmem::n_pes()); }

void put_from_two(long* word) {
    two<<<1, 1>>>(word);
    CUDA(cudaGetLastError());
}
