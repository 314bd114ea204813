// Relocatable code without a call of the library in any kernel: only the host calls it.
#include "check.h"

__global__ void fill(int* words, int value) { words[threadIdx.x] = value; }

int main() {
    start();
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int *sums = (int*)nvshmem_malloc(16 * sizeof(int)), *own = (int*)nvshmem_malloc(16 * sizeof(int));
    fill<<<1, 16, 0, stream>>>(own, me + 1);
    nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, sums, own, 16, stream);
    int got[16];
    CUDA(cudaMemcpyAsync(got, sums, sizeof(got), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int sum : got) CHECK(sum == pes * (pes + 1) / 2);
    nvshmem_finalize();
    return 0;
}
