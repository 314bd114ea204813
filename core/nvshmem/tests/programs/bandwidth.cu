// Bandwidth of puts and gets, as benchmarks have it: all blocks of a grid copy their parts; between rounds they meet by a
// counter, and one thread completes all of them by its quiet. Kernels are launched by <<<>>>, without a cooperative launch.
#include "check.h"

enum { BLOCKS = 3, THREADS = 16, PART = 40, ROUNDS = 4 };

// The grid's blocks have done a round when the second counter has its number.
__device__ void meet(volatile unsigned* counters, int round, bool complete) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const unsigned came = atomicInc((unsigned*)counters, UINT_MAX);
        if (came == gridDim.x * (round + 1) - 1) {
            if (complete) nvshmem_quiet();
            __threadfence();
            counters[1] = round + 1;
        }
        while (counters[1] != round + 1) {}
        __threadfence();
    }
    __syncthreads();
}

template <int SCOPE, bool PUT>
__global__ void copy(double* dest, double* source, volatile unsigned* counters, int peer) {
    const int block = blockIdx.x, thread = threadIdx.x;
    for (int round = 0; round < ROUNDS; ++round) {
        double *to = dest + (round * BLOCKS + block) * PART, *from = source + block * PART;
        if (PUT) {
            if (SCOPE == 2) nvshmemx_double_put_nbi_block(to, from, PART, peer);
            else if (SCOPE == 1) nvshmemx_double_put_nbi_warp(to, from, PART, peer);
            else
                for (int i = thread; i < PART; i += blockDim.x) nvshmem_double_put_nbi(to + i, from + i, 1, peer);
        } else {
            if (SCOPE == 2) nvshmemx_double_get_nbi_block(to, from, PART, peer);
            else if (SCOPE == 1) nvshmemx_double_get_nbi_warp(to, from, PART, peer);
            else
                for (int i = thread; i < PART; i += blockDim.x) to[i] = nvshmem_double_g(from + i, peer);
        }
        meet(counters, round, true);
    }
}

template <int SCOPE, bool PUT>
static void run(double* dest, double* source, unsigned* counters, const char* what) {
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    CUDA(cudaMemset(dest, 0, ROUNDS * BLOCKS * PART * sizeof(double)));
    CUDA(cudaMemset(counters, 0, 2 * sizeof(unsigned)));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    copy<SCOPE, PUT><<<BLOCKS, THREADS>>>(dest, source, counters, right);
    RAN();
    nvshmem_barrier_all();
    std::vector<double> wanted(ROUNDS * BLOCKS * PART);
    for (int i = 0; i < (int)wanted.size(); ++i) wanted[i] = value<double>(PUT ? left : right, i % (BLOCKS * PART));
    EXPECT(dest, wanted, what);
}

int main() {
    start();
    double *dest = (double*)nvshmem_malloc(ROUNDS * BLOCKS * PART * sizeof(double)), *source = (double*)nvshmem_malloc(BLOCKS * PART * sizeof(double));
    unsigned* counters;
    CUDA(cudaMalloc(&counters, 2 * sizeof(unsigned)));
    std::vector<double> mine(BLOCKS * PART);
    for (int i = 0; i < BLOCKS * PART; ++i) mine[i] = value<double>(me, i);
    fill(source, mine);
    run<0, true>(dest, source, counters, "puts of threads");
    run<1, true>(dest, source, counters, "puts of warps");
    run<2, true>(dest, source, counters, "puts of blocks");
    run<0, false>(dest, source, counters, "gets of threads");
    run<1, false>(dest, source, counters, "gets of warps");
    run<2, false>(dest, source, counters, "gets of blocks");
    nvshmem_free(source);
    nvshmem_free(dest);
    nvshmem_finalize();
    return 0;
}
