// The second source of `images`.
#include "check.h"
#include "images.h"

#ifdef __CUDACC_RDC__
__device__ void tell(int* word, int value, int pe) { nvshmem_int_atomic_add(word, value, pe); }
#endif

__global__ void other(int* word, int right) {
    nvshmem_int_atomic_add(word, 10, right);
    nvshmem_barrier_all();
}

void launch_other(int* word, int right) {
    other<<<1, 1>>>(word, right);
    RAN();
}
