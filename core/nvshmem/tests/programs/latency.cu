// Ping-pong in a kernel, as latency benchmarks have it: a put, a fence and a signal; a put with a signal; an atomic; and values
// alone. Times mean nothing here, so each trip's data is compared.
#include "check.h"

enum { WORDS = 64, TRIPS = 6 };

// The first side sends, the other one answers with the same data.
template <int WAY>
__global__ void ping_pong(int* data, uint64_t* flag, int words, int trips, int peer, int first) {
    const int thread = threadIdx.x;
    // The peer may write to `data` before a nonblocking put of this side has read its source.
    int* source = data + WORDS;
    for (int trip = 0; trip < trips; ++trip) {
        if (!first) {
            if (thread == 0) nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_GE, trip + 1);
            __syncthreads();
            for (int i = thread; i < words; i += blockDim.x) SEEN(data[i] == trip * 1000 + i);
        }
        for (int i = thread; i < words; i += blockDim.x) source[i] = trip * 1000 + i;
        __syncthreads();
        if (WAY == 0) {
            nvshmemx_int_put_nbi_block(data, source, words, peer);
            __syncthreads();
            if (thread == 0) {
                nvshmem_fence();
                nvshmemx_signal_op(flag, trip + 1, NVSHMEM_SIGNAL_SET, peer);
            }
        } else if (WAY == 1) {
            nvshmemx_int_put_signal_block(data, source, words, flag, 1, NVSHMEM_SIGNAL_ADD, peer);
        } else if (WAY == 2) {
            if (thread < 32) nvshmemx_putmem_signal_nbi_warp(data, source, words * sizeof(int), flag, trip + 1, NVSHMEM_SIGNAL_SET, peer);
        } else {
            for (int i = thread; i < words; i += blockDim.x) nvshmem_int_p(data + i, source[i], peer);
            __syncthreads();
            if (thread == 0) {
                nvshmem_fence();
                nvshmem_uint64_atomic_inc(flag, peer);
            }
        }
        if (first) {
            if (thread == 0) nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_GE, trip + 1);
            __syncthreads();
            for (int i = thread; i < words; i += blockDim.x) SEEN(data[i] == trip * 1000 + i);
        }
        // The next trip changes the source.
        __syncthreads();
        if (thread == 0) nvshmem_quiet();
        __syncthreads();
    }
}

template <int WAY>
static void run(int* data, uint64_t* flag) {
    for (int words = 1; words <= WORDS; words *= 8) {
        CUDA(cudaMemset(flag, 0, sizeof(uint64_t)));
        CUDA(cudaDeviceSynchronize());
        nvshmem_barrier_all();
        cudaEvent_t begin, end;
        CUDA(cudaEventCreate(&begin));
        CUDA(cudaEventCreate(&end));
        CUDA(cudaEventRecord(begin));
        if (me / 2 * 2 + 1 < pes) ping_pong<WAY><<<1, 32>>>(data, flag, words, TRIPS, me ^ 1, me % 2 == 0);
        CUDA(cudaEventRecord(end));
        CUDA(cudaEventSynchronize(end));
        RAN();
        float milliseconds = -1;
        CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
        CHECK(milliseconds >= 0);
        nvshmem_barrier_all();
    }
}

int main() {
    start();
    int* data = (int*)nvshmem_malloc(2 * WORDS * sizeof(int));
    uint64_t* flag = (uint64_t*)nvshmem_calloc(1, sizeof(uint64_t));
    run<0>(data, flag);
    run<1>(data, flag);
    run<2>(data, flag);
    run<3>(data, flag);
    nvshmem_free(flag);
    nvshmem_free(data);
    nvshmem_finalize();
    return 0;
}
