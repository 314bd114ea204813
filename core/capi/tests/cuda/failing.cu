// An open of the library that fails on one PE, which can start no thread: it fails on all, and leaves nothing half open.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

static volatile bool no_threads;

// Stands before the C library's, for the libraries of this program, too.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept {
    typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    Create* create = (Create*)dlsym(RTLD_NEXT, "pthread_create");
    return no_threads ? EAGAIN : create(thread, attributes, start, argument);
}

__global__ void put_right(long* word) { oxshmem::p(word, 1 + oxshmem::my_pe(), (oxshmem::my_pe() + 1) % oxshmem::n_pes()); }

int main() {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    no_threads = me == 1;
    // A heap of 4 MiB has no room for what so many leave behind.
    for (int tries = 0; tries < 8; ++tries) CHECK(shmemx_cuda_init() != 0);
    CHECK(shmemx_cuda_team(SHMEM_TEAM_WORLD) == -1 && shmemx_cuda_check() != 0);
    no_threads = false;
    CHECK(shmemx_cuda_init() == 0);
    long* word = (long*)shmemx_cuda_malloc(sizeof(long));
    put_right<<<1, 1>>>(word);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmemx_cuda_check() == 0);
    shmem_barrier_all();
    CHECK(shmem_long_g(word, me) == 1 + (me + n - 1) % n);
    shmem_finalize();
    return 0;
}
