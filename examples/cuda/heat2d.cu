// Heat spreads over a plate whose rows are divided among PEs. One kernel on each PE makes all the steps; its blocks exchange the
// outermost rows with the neighbours' kernels. docs/examples/cuda.md describes it.
//
//     heat2d [WIDTH HEIGHT STEPS]
#include <cooperative_groups.h>
#include <cstdlib>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>
#include <vector>

#include "check.h"

// The new heat of a point. The factors are powers of two, so that a fused multiplication and addition rounds as two steps do.
__host__ __device__ float heat(const float* at, int width) {
    return 0.5f * at[0] + 0.125f * (((at[-width] + at[width]) + at[-1]) + at[1]);
}

// The heat at the beginning: a hot edge, and a hot block.
float first(int x, int y, int width, int height) {
    if (x == 0 && y > height / 4) return 100;
    return x > width / 2 && x < width / 2 + width / 8 && y > height / 3 && y < height / 2 ? 80 : 0;
}

// The rows of a PE, and the number of those before them. Row 0 and row height - 1 never change, and are no PE's.
struct Part {
    int rows, before;

    __host__ __device__ Part(int pe, int n, int height) {
        const int all = height - 2;
        rows = all / n + (pe < all % n);
        before = pe * (all / n) + (pe < all % n ? pe : all % n);
    }
};

// Places of the signals: the side from which a row comes, and whether its step is odd.
enum { FROM_ABOVE, FROM_BELOW };
__device__ unsigned long long* signal_of(unsigned long long* arrived, int side, int step) { return arrived + 2 * side + step % 2; }

// `plates` has two plates of `cells` cells: state s is in plate s % 2. Row 0 of this PE's part and the row behind its last one
// are the neighbours'.
__global__ void spread(float* plates, size_t cells, unsigned long long* arrived, int width, int height, int steps) {
    const auto grid = cooperative_groups::this_grid();
    const int me = oxshmem::my_pe(), n = oxshmem::n_pes(), above = me - 1, below = me + 1;
    const int rows = Part(me, n, height).rows;
    for (int step = 1; step <= steps; ++step) {
        const float* old = plates + (step - 1) % 2 * cells;
        float* now = plates + step % 2 * cells;
        for (int row = 1 + blockIdx.x; row <= rows; row += gridDim.x) {
            for (int x = 1 + threadIdx.x; x < width - 1; x += blockDim.x)
                now[row * width + x] = heat(old + row * width + x, width);
            // The neighbour has computed the row beside this one of the step before: else this PE would not have begun this
            // step. So it does not read any more what lies there.
            if (row == 1 && above >= 0)
                oxshmem::put_signal(oxshmem::block(), now + (Part(above, n, height).rows + 1) * width, now + row * width, width,
                                    signal_of(arrived, FROM_BELOW, step), step, oxshmem::SIGNAL_SET, above);
            if (row == rows && below < n)
                oxshmem::put_signal(oxshmem::block(), now, now + row * width, width, signal_of(arrived, FROM_ABOVE, step), step,
                                    oxshmem::SIGNAL_SET, below);
        }
        if (grid.thread_rank() == 0) {
            if (above >= 0) oxshmem::signal_wait_until(signal_of(arrived, FROM_ABOVE, step), oxshmem::CMP_EQ, step);
            if (below < n) oxshmem::signal_wait_until(signal_of(arrived, FROM_BELOW, step), oxshmem::CMP_EQ, step);
        }
        grid.sync();
    }
}

// The whole plate after all steps, computed without PEs.
std::vector<float> serial(int width, int height, int steps) {
    std::vector<float> old(width * height);
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) old[y * width + x] = first(x, y, width, height);
    std::vector<float> now = old;
    for (int step = 0; step < steps; ++step) {
        for (int y = 1; y < height - 1; ++y)
            for (int x = 1; x < width - 1; ++x) now[y * width + x] = heat(&old[y * width + x], width);
        old.swap(now);
    }
    return old;
}

int main(int count, char** words) {
    const int width = count > 3 ? atoi(words[1]) : 64, height = count > 3 ? atoi(words[2]) : 48;
    const int steps = count > 3 ? atoi(words[3]) : 50;
    shmem_init();
    if (shmemx_cuda_init() != 0) shmem_global_exit(1);
    const int me = shmem_my_pe(), n = shmem_n_pes();
    if (width < 3 || height < n + 2 || steps < 0) FAIL("a plate of %d x %d is too small for %d PEs", width, height, n);

    // Of one length on all PEs: that of the longest part.
    const size_t cells = (size_t)(Part(0, n, height).rows + 2) * width;
    float* plates = (float*)shmemx_cuda_malloc(2 * cells * sizeof(float));
    unsigned long long* arrived = (unsigned long long*)shmemx_cuda_malloc(4 * sizeof(unsigned long long));
    if (!plates || !arrived) FAIL("no GPU memory");
    const Part part(me, n, height);
    std::vector<float> rows((part.rows + 2) * width);
    for (int y = 0; y < part.rows + 2; ++y)
        for (int x = 0; x < width; ++x) rows[y * width + x] = first(x, part.before + y, width, height);
    for (int plate = 0; plate < 2; ++plate)
        CUDA(cudaMemcpy(plates + plate * cells, rows.data(), rows.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA(cudaMemset(arrived, 0, 4 * sizeof(unsigned long long)));
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();

    // All blocks run at once, for they wait for each other.
    int device, blocks, processors;
    const int threads = 64;
    CUDA(cudaGetDevice(&device));
    CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, spread, threads, 0));
    if (blocks > 2) blocks = 2;
    size_t bytes = cells;
    void* arguments[] = {&plates, &bytes, &arrived, (void*)&width, (void*)&height, (void*)&steps};
    CUDA(cudaLaunchCooperativeKernel((void*)spread, dim3(blocks * processors), dim3(threads), arguments, 0, 0));
    CUDA(cudaDeviceSynchronize());
    if (shmemx_cuda_check() != 0) shmem_global_exit(1);

    CUDA(cudaMemcpy(rows.data(), plates + steps % 2 * cells, rows.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const std::vector<float> whole = serial(width, height, steps);
    for (int y = 1; y <= part.rows; ++y)
        for (int x = 0; x < width; ++x) {
            const float expected = whole[(part.before + y) * width + x], found = rows[y * width + x];
            if (found != expected) FAIL("point %d, %d is %g, not %g", x, part.before + y, found, expected);
        }
    shmem_barrier_all();
    if (me == 0) printf("heat2d: %d steps of %d x %d by %d PEs, the same to the bit as by one CPU\n", steps, width, height, n);
    shmem_free(arrived);
    shmem_free(plates);
    shmem_finalize();
    return 0;
}
