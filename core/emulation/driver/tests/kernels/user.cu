// Kernels of a user, for tests/kernels.rs.
extern "C" {
__device__ unsigned long long user_total;
}

// Each thread stores its position.
extern "C" __global__ void user_where(unsigned long long* out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = 1000ull * block + thread;
}

// Each thread hands its word to the next one, which only threads that run at once can do. The last
// one leaves before the second barrier.
extern "C" __global__ void user_rotate(unsigned long long* words) {
    unsigned long long mine = words[threadIdx.x];
    __syncthreads();
    words[(threadIdx.x + 1) % blockDim.x] = mine;
    if (threadIdx.x + 1 == blockDim.x) return;
    __syncthreads();
}

// Arguments of several kinds, and a variable of the module.
extern "C" __global__ void user_add(double one, float two, unsigned char three, unsigned long long four) {
    atomicAdd(&user_total, (unsigned long long)(one + two) + three + four);
}

// Each thread waits until the whole grid has arrived: possible only if all threads are resident at
// once.
extern "C" __global__ void user_meet(unsigned long long* came) {
    atomicAdd(came, 1ull);
    while (atomicAdd(came, 0ull) < (unsigned long long)gridDim.x * blockDim.x) __nanosleep(100);
}
