// GPU memory by the C API: the host's calls on it, and kernels' beside them.
#include <cstring>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

// Each of a PE's 32 threads adds to the word of the next PE, and members of a team add up their numbers.
__global__ void meet(long* word, long* sum, const long* part, int team) {
    oxshmem::atomic_add(word, 100, (oxshmem::my_pe() + 1) % oxshmem::n_pes());
    oxshmem::barrier_all(oxshmem::block());
    if (team >= 0) oxshmem::reduce<oxshmem::Sum>(oxshmem::block(), team, sum, part, 1);
}

__global__ void look(const long* word, long* seen) { *seen = *word; }

__global__ void mark(long* word, long value) { *word = value; }

// The value of a word in GPU memory, as a kernel sees it.
static long seen_by_gpu(const long* word) {
    static long* seen;
    if (!seen) CUDA(cudaMallocHost(&seen, sizeof(long)));
    look<<<1, 1>>>(word, seen);
    CUDA(cudaDeviceSynchronize());
    return *seen;
}

// `mapped` or `apart`: whether this GPU reaches other PEs' memory.
int main(int, char** arguments) {
    const bool mapped = strcmp(arguments[1], "mapped") == 0;
    shmem_init();
    CHECK(shmemx_cuda_init() == 0);
    const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    int device = -1;
    CUDA(cudaGetDevice(&device));
    CHECK(device == shmemx_cuda_device());

    long* words = (long*)shmemx_cuda_malloc(8 * sizeof(long));
    long* more = (long*)shmemx_cuda_malloc(1 << 20);
    CHECK(words && more && shmemx_cuda_malloc(0) == NULL);
    cudaPointerAttributes is;
    CUDA(cudaPointerGetAttributes(&is, words));
    CHECK(is.type == cudaMemoryTypeDevice && is.device == device);
    long zeros[8] = {0};
    shmem_long_put(words, zeros, 8, me);
    shmem_barrier_all();

    // Puts, gets, atomics, and signals of the host.
    const long numbers[3] = {me + 1, 2, 3};
    shmem_long_put(words, numbers, 3, right);
    shmem_long_p(words + 3, 7, right);
    shmem_quiet();
    shmem_barrier_all();
    long back[4];
    shmem_long_get(back, words, 4, me);
    CHECK(back[0] == left + 1 && back[1] == 2 && back[2] == 3 && back[3] == 7);
    CHECK(shmem_long_g(words, right) == me + 1);
    CHECK(seen_by_gpu(words) == left + 1);
    shmem_long_atomic_add(words + 4, 5, 0);
    shmem_barrier_all();
    CHECK(shmem_long_atomic_fetch(words + 4, 0) == 5L * n);
    CHECK(shmemx_cuda_check() == 0);
    const uint64_t one = 1;
    shmem_uint64_put_signal((uint64_t*)words + 5, &one, 1, (uint64_t*)words + 6, 9, SHMEM_SIGNAL_SET, right);
    shmem_barrier_all();
    CHECK(shmem_long_g(words + 5, me) == 1 && shmem_long_g(words + 6, me) == 9);

    // Collective calls, an address in the middle of a block, and one that is none.
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, more + 10, words, 1);
    CHECK(shmem_long_g(more + 10, me) == n * (n + 1L) / 2);
    CHECK(shmem_addr_accessible(more + 10, right) == 1);
    CHECK(shmem_addr_accessible((char*)more + (1 << 20), right) == 0);

    // A peer's copy for kernels, where this GPU reaches it. The CPU loads none.
    CHECK(!shmem_ptr(words, me) && !shmem_ptr(words, right) && !shmem_team_ptr(SHMEM_TEAM_WORLD, words, right));
    CHECK(shmemx_cuda_ptr(words, me) == words && !shmemx_cuda_ptr(words, n) && !shmemx_cuda_ptr(&one, me));
    long* theirs = (long*)shmemx_cuda_ptr(words + 7, right);
    CHECK((theirs != NULL) == mapped);
    if (theirs) {
        mark<<<1, 1>>>(theirs, 40 + me);
        CUDA(cudaDeviceSynchronize());
        shmem_barrier_all();
        CHECK(shmem_long_g(words + 7, me) == 40 + left);
    }

    // Kernels, with a team of the even PEs.
    shmem_team_t even;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &even);
    CHECK(shmemx_cuda_team(SHMEM_TEAM_WORLD) == 0);
    CHECK(shmemx_cuda_reserve_teams(100) == 0 && shmemx_cuda_reserve_teams(-1) != 0);
    const int team = even == SHMEM_TEAM_INVALID ? -1 : shmemx_cuda_team(even);
    CHECK((team >= 0) == (me % 2 == 0));
    shmem_long_p(more, me + 1, me);
    shmem_long_p(words, 0, me);
    shmem_barrier_all();
    meet<<<1, 32>>>(words, more + 1, more, team);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmemx_cuda_check() == 0);
    CHECK(shmem_long_g(words, me) == 32 * 100);
    long sum = 0;
    for (int pe = 0; pe < n; pe += 2) sum += pe + 1;
    if (team >= 0) CHECK(shmem_long_g(more + 1, me) == sum);

    // A second initialization goes on with the same images.
    shmem_barrier_all();
    shmem_free(more);
    shmem_free(words);
    shmem_finalize();
    shmem_init();
    CHECK(shmemx_cuda_init() == 0);
    words = (long*)shmemx_cuda_malloc(8 * sizeof(long));
    shmem_long_p(words, 0, me);
    shmem_barrier_all();
    meet<<<1, 32>>>(words, NULL, NULL, -1);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmem_long_g(words, me) == 32 * 100);
    shmem_finalize();
    return 0;
}
