// Numbers go once round the ring of PEs, inside one kernel on each: every PE adds to what its left neighbour has put, and
// puts the sums to its right neighbour, with a signal. docs/examples/cuda.md describes it.
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>
#include <vector>

#include "check.h"

const int NUMBERS = 1000;

// `inbox` and `arrived` have a place for each round, so that nothing is overwritten which the neighbour may not have read.
__global__ void ring(long* numbers, long* inbox, unsigned long long* arrived) {
    const int me = oxshmem::my_pe(), n = oxshmem::n_pes();
    for (int round = 0; round < n; ++round) {
        long* place = inbox + round * NUMBERS;
        oxshmem::put_signal(oxshmem::block(), place, numbers, NUMBERS, arrived + round, 1, oxshmem::SIGNAL_SET, (me + 1) % n);
        if (threadIdx.x == 0) oxshmem::signal_wait_until(arrived + round, oxshmem::CMP_EQ, 1);
        __syncthreads();
        for (int i = threadIdx.x; i < NUMBERS; i += blockDim.x) numbers[i] = place[i] + me + 1;
    }
}

int main() {
    shmem_init();
    if (shmemx_cuda_init() != 0) shmem_global_exit(1);
    const int me = shmem_my_pe(), n = shmem_n_pes();

    long* inbox = (long*)shmemx_cuda_malloc(n * NUMBERS * sizeof(long));
    unsigned long long* arrived = (unsigned long long*)shmemx_cuda_malloc(n * sizeof(unsigned long long));
    if (!inbox || !arrived) FAIL("no GPU memory");
    CUDA(cudaMemset(arrived, 0, n * sizeof(unsigned long long)));

    std::vector<long> own(NUMBERS);
    for (int i = 0; i < NUMBERS; ++i) own[i] = me * 1000000 + i;
    long* numbers;
    CUDA(cudaMalloc(&numbers, NUMBERS * sizeof(long)));
    CUDA(cudaMemcpy(numbers, own.data(), NUMBERS * sizeof(long), cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();  // All signals are 0.

    ring<<<1, 128>>>(numbers, inbox, arrived);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    if (shmemx_cuda_check() != 0) shmem_global_exit(1);

    // They are back, and each PE has added its number plus one.
    std::vector<long> sums(NUMBERS);
    CUDA(cudaMemcpy(sums.data(), numbers, NUMBERS * sizeof(long), cudaMemcpyDeviceToHost));
    for (int i = 0; i < NUMBERS; ++i) {
        const long expected = own[i] + n * (n + 1L) / 2;
        if (sums[i] != expected) FAIL("number %d is %ld, not %ld", i, sums[i], expected);
    }
    shmem_barrier_all();
    if (me == 0) printf("ring: %d numbers went round %d PEs, all sums are right\n", NUMBERS, n);
    CUDA(cudaFree(numbers));
    shmem_free(arrived);
    shmem_free(inbox);
    shmem_finalize();
    return 0;
}
