// Signals of another PE's kernel, for which a stream waits. A kernel and copies behind the wait use the data and the signal.
#include "check.h"

enum { COUNT = 64, THREADS = 32, WAYS = 5 };

__global__ void tell(int* to, int* from, uint64_t* signal, uint64_t number, int way, int pe) {
    if (way == 0) {
        nvshmemx_int_put_signal_block(to, from, COUNT, signal, number, NVSHMEM_SIGNAL_SET, pe);
        return;
    }
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x) nvshmem_int_p(to + i, from[i], pe);
    nvshmem_fence();
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (way == 1 || way == 3) nvshmem_uint64_atomic_set(signal, number, pe);
    else nvshmemx_signal_op(signal, number, NVSHMEM_SIGNAL_SET, pe);
}

__global__ void use(const int* data, const uint64_t* signal, uint64_t number, int round, int from) {
    if (threadIdx.x == 0) SEEN(*signal == number);
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x) SEEN(data[i] == value<int>(from, round * COUNT + i));
}

int main() {
    start();
    const int next = (me + 1) % pes, before = (me + pes - 1) % pes;
    int* to = (int*)nvshmem_calloc(COUNT, sizeof(int));
    int* from = (int*)nvshmem_calloc(COUNT, sizeof(int));
    uint64_t* signal = (uint64_t*)nvshmem_calloc(1, sizeof(uint64_t));
    cudaStream_t telling, waiting;
    CUDA(cudaStreamCreate(&telling));
    CUDA(cudaStreamCreate(&waiting));
    int* copy;
    CUDA(cudaMallocHost((void**)&copy, COUNT * sizeof(int)));
    for (int way = 0; way < WAYS; ++way) {
        const uint64_t number = way + 1;
        std::vector<int> mine(COUNT);
        for (int i = 0; i < COUNT; ++i) mine[i] = value<int>(me, way * COUNT + i);
        fill(from, mine);
        nvshmem_barrier_all();
        if (way < 3) nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, number, waiting);
        else nvshmemx_uint64_wait_until_on_stream(signal, NVSHMEM_CMP_GE, number, waiting);
        tell<<<1, THREADS, 0, telling>>>(to, from, signal, number, way, next);
        CUDA(cudaGetLastError());
        use<<<1, THREADS, 0, waiting>>>(to, signal, number, way, before);
        CUDA(cudaGetLastError());
        CUDA(cudaMemcpyAsync(copy, to, COUNT * sizeof(int), cudaMemcpyDeviceToHost, waiting));
        RAN();
        for (int i = 0; i < COUNT; ++i) CHECK(copy[i] == value<int>(before, way * COUNT + i));
        nvshmem_barrier_all();
    }
    CUDA(cudaFreeHost(copy));
    CUDA(cudaStreamDestroy(telling));
    CUDA(cudaStreamDestroy(waiting));
    nvshmem_free(signal);
    nvshmem_free(from);
    nvshmem_free(to);
    nvshmem_finalize();
    return 0;
}
