// A library with a kernel, which `images` opens.
#include "check.h"

__global__ void plugin(int* word, int right) {
    nvshmem_int_atomic_add(word, 100, right);
    nvshmem_barrier_all();
}

extern "C" void launch_plugin(int* word, int right) {
    plugin<<<1, 1>>>(word, right);
    RAN();
}
