// Calls that are refused, by number: each ends the job, or gives an error after a message.
#include <cstdlib>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

__global__ void bad(long* word) { oxshmem::p(word, 1, 77); }

static int nowhere(int, void**) { return 1; }
static const char* words_of(int) { return "words of the runtime"; }

int main(int, char** words) {
    // An image of another version's header, and one that the runtime does not know.
    static const oxshmem_image old = {7u << 16 | 128, nowhere, words_of}, lost = {oxshmem::ABI << 16 | 128, nowhere, words_of};
    const int which = atoi(words[1]);
    if (which == 1) oxshmem_register_image(&old);
    if (which == 2) oxshmem_register_image(&lost);
    shmem_init();
    if (which == 0) {
        CHECK(shmemx_cuda_device() == -1 && shmemx_cuda_check() != 0 && shmemx_cuda_team(SHMEM_TEAM_WORLD) == -1);
        CHECK(shmemx_cuda_init() != 0);
        shmemx_cuda_malloc(8);
    }
    const int status = shmemx_cuda_init();
    CHECK((status != 0) == (which == 1 || which == 2));
    long* word = (long*)shmemx_cuda_malloc(8);
    if (which == 3) shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
    if (which == 4) shmem_signal_fetch((uint64_t*)word);
    if (which == 5) shmem_realloc(word, 100);
    if (which == 6) {
        bad<<<1, 1>>>(word);
        CUDA(cudaDeviceSynchronize());
        CHECK(shmemx_cuda_check() != 0);
    }
    if (which == 7) shmem_long_p(word + 1, 1, 0);
    shmem_finalize();
    return 0;
}
