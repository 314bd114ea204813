// Calls that are refused, by number: each ends the job, or gives an error after a message.
#include <cstdlib>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

__global__ void put_to(long* word, int pe) { oxshmem::p(word, 1, pe); }

static int nowhere(int, void**) { return 1; }
static const char* words_of(int) { return "words of the runtime"; }

// Makes this a program without kernels.
static void forget_own_image() {
#ifndef __CUDA_ARCH__
    oxshmem_unregister_image(&oxshmem::this_image.image);
#endif
}

// No call but shmemx_cuda_init opens the library, for which it would need the other PEs.
static void only_init_opens() {
    if (shmem_my_pe() != 0) return;
    CHECK(shmemx_cuda_team(SHMEM_TEAM_WORLD) == -1 && shmemx_cuda_reserve_teams(1) != 0);
    CHECK(shmemx_cuda_check() != 0 && shmemx_cuda_resume() != 0);
}

// A bad call is told until the program goes on.
static void goes_on_after_a_bad_call(long* word) {
    put_to<<<1, 1>>>(word, 77);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmemx_cuda_check() != 0 && shmemx_cuda_check() != 0);
    CHECK(shmemx_cuda_resume() == 0 && shmemx_cuda_check() == 0);
    put_to<<<1, 1>>>(word, shmem_my_pe());
    CUDA(cudaDeviceSynchronize());
    CHECK(shmemx_cuda_check() == 0 && shmem_long_g(word, shmem_my_pe()) == 1);
}

int main(int, char** words) {
    // An image of another version's header, one that the runtime does not know, and one without functions.
    const unsigned abi = oxshmem::ABI << 16 | sizeof(oxshmem::State);
    static const oxshmem_image old = {7u << 16 | 128, nowhere, words_of}, lost = {abi, nowhere, words_of}, empty = {abi, NULL, NULL};
    const int which = atoi(words[1]);
    const char* rank = getenv("OXSHMEM_RANK");
    if (which == 1) oxshmem_register_image(&old);
    if (which == 2) oxshmem_register_image(&lost);
    if (which == 14) oxshmem_register_image(&empty);
    if (which == 11 && rank && atoi(rank) == 1) forget_own_image();
    shmem_init();
    if (which == 0 || which == 11 || which == 12) {
        CHECK(shmemx_cuda_device() == -1 && shmemx_cuda_check() != 0 && shmemx_cuda_team(SHMEM_TEAM_WORLD) == -1);
        CHECK(shmemx_cuda_init() != 0);
        if (which == 0) shmemx_cuda_malloc(8);
        shmem_finalize();
        return 0;
    }
    if (which == 8) only_init_opens();
    if (which == 13) forget_own_image();
    const int status = shmemx_cuda_init();
    CHECK((status != 0) == (which == 1 || which == 2 || which == 13 || which == 14));
    long* word = (long*)shmemx_cuda_malloc(8);
    if (which == 3) shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
    if (which == 4) shmem_signal_fetch((uint64_t*)word);
    if (which == 5) shmem_realloc(word, 100);
    if (which == 6) goes_on_after_a_bad_call(word);
    if (which == 7) shmem_long_p(word + 1, 1, 0);
    if (which == 9) shmem_long_put(word, word, 1, 0);
    if (which == 10) shmem_long_get(word, word, 1, 0);
    shmem_finalize();
    return 0;
}
