// Jacobi's method on rows of a plate, whose edges go to the neighbours by nvshmemx_float_put_signal_nbi_block; the error is a
// reduction on the stream. Compared with one CPU.
#include "check.h"
#include <cmath>

enum { WIDTH = 16, ROWS = 4, STEPS = 12, THREADS = 16 };

// A PE's rows lie between an upper and a lower row of its neighbours.
__global__ void step(float* next, const float* now, uint64_t* signals, float* change, int number, int above, int below) {
    __shared__ float changes[THREADS];
    const int x = threadIdx.x;
    if (x == 0 && above >= 0) nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, number);
    if (x == 0 && below >= 0) nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_GE, number);
    __syncthreads();
    changes[x] = 0;
    for (int y = 1; y <= ROWS; ++y) {
        const float *row = now + y * WIDTH;
        const bool edge = x == 0 || x == WIDTH - 1;
        const float is = edge ? row[x] : 0.25f * (row[x - 1] + row[x + 1] + row[x - WIDTH] + row[x + WIDTH]);
        next[y * WIDTH + x] = is;
        changes[x] = fmaxf(changes[x], fabsf(is - row[x]));
    }
    __syncthreads();
    if (above >= 0)
        nvshmemx_float_put_signal_nbi_block(next + (ROWS + 1) * WIDTH, next + WIDTH, WIDTH, signals + 1, number + 1, NVSHMEM_SIGNAL_SET, above);
    if (below >= 0) nvshmemx_float_put_signal_nbi_block(next, next + ROWS * WIDTH, WIDTH, signals, number + 1, NVSHMEM_SIGNAL_SET, below);
    if (x == 0) {
        for (int i = 1; i < THREADS; ++i) changes[0] = fmaxf(changes[0], changes[i]);
        *change = changes[0];
    }
    __syncthreads();
    nvshmem_quiet();
}

int main() {
    start();
    const int all = pes * ROWS, above = me > 0 ? me - 1 : -1, below = me < pes - 1 ? me + 1 : -1;
    const size_t cells = (ROWS + 2) * WIDTH;
    float* plates[2] = {(float*)nvshmem_calloc(cells, sizeof(float)), (float*)nvshmem_calloc(cells, sizeof(float))};
    uint64_t* signals = (uint64_t*)nvshmem_calloc(2, sizeof(uint64_t));
    float *change = (float*)nvshmem_calloc(1, sizeof(float)), *most = (float*)nvshmem_calloc(1, sizeof(float));

    // The whole plate on one CPU. The left edge is hot; the first and the last row are edges that stay as they are.
    std::vector<float> here((all + 2) * WIDTH), then;
    for (int y = 0; y < all + 2; ++y) here[y * WIDTH] = 50 + y;
    for (int x = 0; x < WIDTH; ++x) here[x] = 10 * x;
    for (float* plate : plates) fill(plate, std::vector<float>(here.begin() + me * ROWS * WIDTH, here.begin() + me * ROWS * WIDTH + cells));
    float expected = 0;
    for (int n = 0; n < STEPS; ++n) {
        then = here;
        expected = 0;
        for (int y = 1; y <= all; ++y)
            for (int x = 1; x < WIDTH - 1; ++x) {
                const float* at = &here[y * WIDTH + x];
                then[y * WIDTH + x] = 0.25f * (at[-1] + at[1] + at[-WIDTH] + at[WIDTH]);
                expected = fmaxf(expected, fabsf(then[y * WIDTH + x] - *at));
            }
        here.swap(then);
    }

    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    nvshmem_barrier_all();
    for (int n = 0; n < STEPS; ++n) {
        step<<<1, THREADS, 0, stream>>>(plates[(n + 1) % 2], plates[n % 2], signals, change, n, above, below);
        nvshmemx_float_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, most, change, 1, stream);
        nvshmemx_barrier_all_on_stream(stream);
    }
    CUDA(cudaStreamSynchronize(stream));
    RAN();
    EXPECT(most, (std::vector<float>{expected}), "the change of the last step");
    EXPECT(plates[STEPS % 2] + WIDTH, std::vector<float>(here.begin() + (me * ROWS + 1) * WIDTH, here.begin() + (me * ROWS + 1 + ROWS) * WIDTH), "rows");
    nvshmem_finalize();
    return 0;
}
