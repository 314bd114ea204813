// The kernels of the gpu_heat example. heat.ptx is made of this by ci/ptx, a host build for the
// software CUDA driver by ci/softcuda-kernels.
//
// A PE's grid has its own rows, numbered from 1, and above and below them a copy of the neighbour's
// nearest row (or the grid's edge): rows 0 to `rows + 1`, each of `width` numbers. The first and last
// number of a row are edge as well. An edge keeps its heat.

// One step of heat conduction: each number becomes the mean of its old self and of its four neighbours'
// mean. One thread for each number. The one product that is added to something is exact, so that it does
// not matter whether a compiler fuses the two: every machine gets the same numbers.
extern "C" __global__ void heat_step(float* next, const float* now, unsigned width, unsigned rows) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const unsigned y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x + 1 >= width || y > rows) return;
    const unsigned long long at = (unsigned long long)y * width + x;
    const float neighbours = ((now[at - width] + now[at - 1]) + now[at + 1]) + now[at + width];
    next[at] = 0.125f * (neighbours + 4.0f * now[at]);
}

// How much each column changed at most, between two steps. One thread for each column.
extern "C" __global__ void heat_change(float* change, const float* next, const float* now,
                                       unsigned width, unsigned rows) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= width) return;
    float most = 0.0f;
    for (unsigned y = 1; y <= rows; y++) {
        const unsigned long long at = (unsigned long long)y * width + x;
        const float by = next[at] < now[at] ? now[at] - next[at] : next[at] - now[at];
        most = by > most ? by : most;
    }
    change[x] = most;
}
