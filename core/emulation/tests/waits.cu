// Blocks that wait, by loops that look busy, for one that begins after them.
#include <cstdio>

constexpr int WORDS = 8;

__global__ void by_barriers(volatile int *flag) {
    __shared__ int go;
    if (blockIdx.x == gridDim.x - 1) {
        if (threadIdx.x == 0) *flag = 1;
        return;
    }
    do {
        if (threadIdx.x == 0) go = *flag;
        __syncthreads();
        const int now = go;
        __syncthreads();
        if (now) break;
    } while (true);
}

__global__ void by_votes(volatile int *flag) {
    if (blockIdx.x == gridDim.x - 1) {
        if (threadIdx.x == 0) *flag = 1;
        return;
    }
    while (!__any_sync(0xffffffffu, *flag != 0)) {
    }
}

__global__ void by_many_words(volatile int *words) {
    if (blockIdx.x == gridDim.x - 1) {
        if (threadIdx.x == 0) words[WORDS - 1] = 1;
        return;
    }
    for (int at = 0; words[at] == 0; at = (at + 1) % WORDS) {
    }
}

int main() {
    int *words = nullptr;
    cudaMalloc(&words, WORDS * sizeof(int));
    void (*const kernels[])(volatile int *) = {by_barriers, by_votes, by_many_words};
    for (auto kernel : kernels) {
        cudaMemset(words, 0, WORDS * sizeof(int));
        kernel<<<4, 64>>>(words);
        const cudaError_t result = cudaDeviceSynchronize();
        if (result != cudaSuccess) {
            printf("%s\n", cudaGetErrorString(result));
            return 1;
        }
    }
    printf("ok\n");
    return 0;
}
