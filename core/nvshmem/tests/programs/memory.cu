// Memory: what gives blocks and what gives none, symmetric addresses, zeros, alignment, and peers' addresses by nvshmem_ptr.
#include "check.h"
#include <cstdint>

__global__ void store(int* at, int value) {
    if (at) *at = value;
}

// Peers' memory as kernels see it. `theirs` is what the host sees.
__global__ void peers(int* block, void** theirs) {
    const int n = nvshmem_n_pes();
    for (int pe = 0; pe < n; ++pe) SEEN(nvshmem_ptr(block, pe) == theirs[pe]);
    SEEN(nvshmem_ptr(block, nvshmem_my_pe()) == block);
}

int main() {
    start();
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    CHECK(nvshmem_malloc(0) == NULL && nvshmem_calloc(0, 8) == NULL && nvshmem_calloc(8, 0) == NULL);
    nvshmem_free(NULL);
    int* block = (int*)nvshmem_malloc(1000);
    char* aligned = (char*)nvshmem_align(4096, 300);
    long* zeros = (long*)nvshmem_calloc(500, sizeof(long));
    CHECK(block && aligned && zeros);
    CHECK((uintptr_t)block % 16 == 0 && (uintptr_t)aligned % 4096 == 0);
    EXPECT(zeros, std::vector<long>(500), "calloc");
    // A product that overflows is a failed allocation.
    CHECK(nvshmem_calloc(SIZE_MAX / 2, 8) == NULL);

    // The pointer is one of this PE's GPU for the runtime, too.
    cudaPointerAttributes is;
    CUDA(cudaPointerGetAttributes(&is, block));
    int device;
    CUDA(cudaGetDevice(&device));
    CHECK(is.type == cudaMemoryTypeDevice && is.device == device && is.devicePointer == block);
    CUDA(cudaMemset(block, 0, 1000));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();

    // The same place in a block on every PE, in the middle of it, too.
    nvshmem_int_p(block + 100 + me, me + 1, right);
    nvshmem_barrier_all();
    CHECK(nvshmem_int_g(block + 100 + left, me) == left + 1);

    // Peers' memory where this GPU reaches it: kernels store there. Elsewhere the address is null.
    std::vector<void*> theirs(pes);
    for (int pe = 0; pe < pes; ++pe) theirs[pe] = nvshmem_ptr(block, pe);
    CHECK(theirs[me] == block);
    CHECK(nvshmem_ptr(block, pes) == NULL && nvshmem_ptr(block, -1) == NULL);
    int local;
    CHECK(nvshmem_ptr(&local, me) == NULL);
    void** on_gpu;
    CUDA(cudaMalloc(&on_gpu, pes * sizeof(void*)));
    fill(on_gpu, theirs);
    peers<<<1, 1>>>(block, on_gpu);
    RAN();
    nvshmem_barrier_all();
    store<<<1, 1>>>(theirs[right] ? (int*)theirs[right] + 7 : NULL, 70 + me);
    RAN();
    nvshmem_barrier_all();
    if (theirs[left]) CHECK(nvshmem_int_g(block + 7, me) == 70 + left);

    // The program's own GPU memory may be the other side of a transfer.
    int* own;
    CUDA(cudaMalloc(&own, 64 * sizeof(int)));
    std::vector<int> numbers(64);
    for (int i = 0; i < 64; ++i) numbers[i] = value<int>(me, i);
    fill(own, numbers);
    nvshmem_barrier_all();
    nvshmem_int_put(block, own, 64, right);
    nvshmem_barrier_all();
    for (int i = 0; i < 64; ++i) numbers[i] = value<int>(left, i);
    EXPECT(block, numbers, "a put of the program's own memory");
    nvshmem_int_get(own, block, 64, right);
    for (int i = 0; i < 64; ++i) numbers[i] = value<int>(me, i);
    EXPECT(own, numbers, "a get to the program's own memory");
    nvshmem_barrier_all();

    // Blocks come back: much more than the heap in small turns.
    for (int turn = 0; turn < 60; ++turn) {
        void* part = nvshmem_malloc(4 << 20);
        CHECK(part);
        nvshmem_free(part);
    }
    nvshmem_free(zeros);
    nvshmem_free(aligned);
    nvshmem_free(block);
    // All PEs ask for more than there is.
    CHECK(nvshmem_malloc((size_t)1 << 50) == NULL);
    CHECK(nvshmem_malloc(1000) != NULL);
    nvshmem_finalize();
    return 0;
}
