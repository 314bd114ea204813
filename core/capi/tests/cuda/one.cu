#include <dlfcn.h>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"
#include "images.h"

__global__ void one(long* word) { oxshmem::p(word, 1 + oxshmem::my_pe(), (oxshmem::my_pe() + 1) % oxshmem::n_pes()); }

void put_from_one(long* word) {
    one<<<1, 1>>>(word);
    CUDA(cudaGetLastError());
}

static void reaches(long* word, long expected) {
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    CHECK(shmem_long_g(word, me) == expected + (me + n - 1) % n);
    shmem_barrier_all();
}

// Loads a library with kernels, has it put, and unloads it.
static void plug_in(const char* path, long* word) {
    void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin);
    PutFromPlugin* put = (PutFromPlugin*)dlsym(plugin, "put_from_plugin");
    CHECK(put && shmemx_cuda_init() == 0);
    put(word);
    reaches(word, 1000);
    CHECK(dlclose(plugin) == 0 && shmemx_cuda_init() == 0);
}

int main(int count, char** words) {
    shmem_init();
    CHECK(shmemx_cuda_init() == 0);
    long* word = (long*)shmemx_cuda_malloc(sizeof(long));
    put_from_one(word);
    reaches(word, 1);
    put_from_two(word);
    reaches(word, 100);
    if (count > 1) {
        plug_in(words[1], word);
        plug_in(words[1], word);
        // The program's own images are what they were.
        put_from_one(word);
        reaches(word, 1);
    }
    shmem_finalize();
    return 0;
}
