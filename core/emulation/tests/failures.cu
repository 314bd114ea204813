// Errors of kernels: by the first argument an assertion, a trap, or threads that wait for each other.
#include <cassert>
#include <cstdio>
#include <cstdlib>
__global__ void fail(int kind, int n) {
    if (kind == 0) assert(n < 3);
    if (kind == 1 && threadIdx.x == 5) __trap();
    if (kind == 2) {
        if (threadIdx.x < 16) {
            __syncwarp(0xffffffffu);
        } else {
            __syncthreads();
        }
    }
    if (kind == 3) printf("hello from block %u thread %u\n", blockIdx.x, threadIdx.x);
    if (kind == 4) __shfl_sync(0xffu, n, 0);
}
int main(int, char** words) {
    fail<<<2, 32>>>(atoi(words[1]), 4);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    int* p;
    printf("%s\n", cudaGetErrorName(cudaMalloc(&p, 4)));
}
