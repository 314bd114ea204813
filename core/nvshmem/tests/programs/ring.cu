// A broadcast by a ring: each PE hands every chunk on as soon as its signal is there. Launched by nvshmemx_collective_launch.
#include "check.h"

enum { CHUNK = 24, CHUNKS = 5, THREADS = 16 };

__global__ void ring(int* data, uint64_t* signals, int root) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n, chunk = blockIdx.x;
    int* part = data + chunk * CHUNK;
    if (me != root) {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(signals + chunk, NVSHMEM_CMP_EQ, root + 1);
        __syncthreads();
    }
    if (next != root) nvshmemx_int_put_signal_nbi_block(part, part, CHUNK, signals + chunk, root + 1, NVSHMEM_SIGNAL_SET, next);
    if (me != root)
        for (int i = threadIdx.x; i < CHUNK; i += blockDim.x) SEEN(part[i] == value<int>(root, chunk * CHUNK + i));
    nvshmem_quiet();
}

int main() {
    start();
    int* data = (int*)nvshmem_calloc(CHUNK * CHUNKS, sizeof(int));
    uint64_t* signals = (uint64_t*)nvshmem_calloc(CHUNKS, sizeof(uint64_t));
    for (int root = 0; root < pes; ++root) {
        std::vector<int> wanted(CHUNK * CHUNKS);
        for (int i = 0; i < CHUNK * CHUNKS; ++i) wanted[i] = value<int>(root, i);
        if (me == root) fill(data, wanted);
        nvshmem_barrier_all();
        void* arguments[] = {&data, &signals, &root};
        CHECK(nvshmemx_collective_launch((const void*)ring, dim3(CHUNKS), dim3(THREADS), arguments, 0, 0) == 0);
        RAN();
        EXPECT(data, wanted, "chunks");
        nvshmem_barrier_all();
    }
    nvshmem_free(signals);
    nvshmem_free(data);
    nvshmem_finalize();
    return 0;
}
