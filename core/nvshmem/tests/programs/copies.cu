// Copies and fills of symmetric memory by the CUDA runtime are done when they return: a put of the host, and what another PE puts
// behind a barrier, come after them without a cudaDeviceSynchronize.
#include "check.h"

enum { COUNT = 64, ROUNDS = 100 };

int main() {
    start();
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    int *source = (int*)nvshmem_malloc(COUNT * sizeof(int)), *dest = (int*)nvshmem_malloc(COUNT * sizeof(int));
    std::vector<int> mine(COUNT), wanted(COUNT);
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < COUNT; ++i) {
            mine[i] = value<int>(me, round + i);
            wanted[i] = value<int>(left, round + i);
        }
        CUDA(cudaMemset(dest, 0, COUNT * sizeof(int)));
        nvshmem_barrier_all();
        CUDA(cudaMemcpy(source, mine.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice));
        nvshmem_int_put(dest, source, COUNT, right);
        nvshmem_barrier_all();
        EXPECT(dest, wanted, "a put behind copies of the runtime");
        nvshmem_barrier_all();
    }
    nvshmem_finalize();
    return 0;
}
