// A library with an image that one thread loads and unloads, while another gives all images their state: `unloading LIBRARY`.
#include <atomic>
#include <dlfcn.h>
#include <thread>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

__global__ void own(long* word) { oxshmem::p(word, 5L, oxshmem::my_pe()); }

int main(int, char** words) {
    shmem_init();
    CHECK(shmemx_cuda_init() == 0);
    std::atomic<bool> is_over(false);
    std::thread other([&] {
        while (!is_over) {
            void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
            CHECK(library && dlclose(library) == 0);
        }
    });
    for (int round = 0; round < 300; ++round) CHECK(shmemx_cuda_init() == 0);
    is_over = true;
    other.join();
    long* word = (long*)shmemx_cuda_malloc(sizeof(long));
    own<<<1, 1>>>(word);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmem_long_g(word, 0) == 5);
    shmem_finalize();
    return 0;
}
