// Collective launches: grids that fit, that are sized by the device, and that do not fit; order with the program's stream; attributes.
#include <cstdio>
#include <cstdlib>
#include <nvshmem.h>
#include <nvshmemx.h>

#define CHECK(holds)                                                                                                  \
    do {                                                                                                              \
        if (!(holds)) {                                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds);                                               \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

// All blocks meet on a word, which needs all of them at once; then the PEs do. Counts the blocks.
__global__ void meet(unsigned *arrived, unsigned *blocks, int *order) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned *)arrived < gridDim.x) __nanosleep(32);
        if (blockIdx.x == 0) {
            *blocks = gridDim.x;
            *order = *order == 1 ? 2 : -1;
            nvshmem_barrier_all();
        }
    }
}
__global__ void set(int *word, int from, int to) { *word = *word == from ? to : -2; }

int main() {
    nvshmem_init();
    CHECK(cudaSetDevice(0) == cudaSuccess);
    unsigned *words;
    int *order;
    CHECK(cudaMallocHost(&words, 2 * sizeof *words) == cudaSuccess && cudaMallocHost(&order, sizeof *order) == cudaSuccess);
    // The GPU's part of the library has started behind this.
    void *memory = nvshmem_malloc(8);
    CHECK(memory);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream) == cudaSuccess);
    const void *kernel = (const void *)meet;
    int most = 0;
    CHECK(nvshmemx_collective_launch_query_gridsize(kernel, dim3(32), NULL, 0, &most) == NVSHMEMX_SUCCESS && most > 0);

    unsigned *arrived = words, *blocks = words + 1;
    void *args[] = {&arrived, &blocks, &order};
    // Sized by the device, in small blocks of which a few fit; given; with attributes.
    for (int way = 0; way < 3; ++way) {
        const dim3 block(way == 0 ? 512 : 32), grid(way == 0 ? 0 : 3, way == 0 ? 0 : 1, way == 0 ? 0 : 1);
        words[0] = words[1] = 0;
        *order = 0;
        set<<<1, 1, 0, stream>>>(order, 0, 1);
        if (way < 2) {
            CHECK(nvshmemx_collective_launch(kernel, grid, block, args, 0, stream) == NVSHMEMX_SUCCESS);
        } else {
            nvshmemx_collective_launch_attr_t attr = {};
            attr.cuda_config.gridDim = grid;
            attr.cuda_config.blockDim = block;
            attr.cuda_config.stream = stream;
            CHECK(nvshmemx_collective_launch_attr(&attr, kernel, args) == NVSHMEMX_SUCCESS);
        }
        set<<<1, 1, 0, stream>>>(order, 2, 3);
        CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
        CHECK(*order == 3);
        if (way > 0) CHECK(*blocks == 3);
    }
    // One block too many, and none.
    CHECK(nvshmemx_collective_launch(kernel, dim3(most + 1), dim3(32), args, 0, stream) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_collective_launch(kernel, dim3(1, 0, 1), dim3(32), args, 0, stream) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_collective_launch_attr(NULL, kernel, args) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && *order == 3);
    nvshmem_free(memory);
    nvshmem_finalize();
    return 0;
}
