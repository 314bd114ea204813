// Grids whose blocks wait for one that has no room: `too_many CASE`. On a GPU they would never end.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
#include <sched.h>

// Blocks wait for the last one, which begins last.
__global__ void for_the_last(unsigned* word) {
    if (blockIdx.x == gridDim.x - 1) {
        atomicExch(word, 1);
    } else {
        while (atomicAdd(word, 0) == 0) __nanosleep(100);
    }
}
// A barrier of all blocks, by hand.
__global__ void meet(unsigned* count) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (*(volatile unsigned*)count < gridDim.x) {
        }
    }
    __syncthreads();
}
__global__ void open_gate(unsigned* word) { atomicExch(word, 1); }
__global__ void at_gate(unsigned* word, unsigned* come) {
    if (threadIdx.x == 0) atomicAdd_system(come, 1);
    while (atomicAdd(word, 0) == 0) __nanosleep(100);
}
__global__ void whole_grid() { cooperative_groups::this_grid().sync(); }

int main(int count, char** words) {
    const char* name = count > 1 ? words[1] : "";
    auto is = [&](const char* other) { return !strcmp(name, other); };
    unsigned* word;
    cudaStream_t one, other;
    cudaMalloc(&word, 4);
    cudaMemset(word, 0, 4);
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    // As many blocks of 1024 threads as the device holds.
    cudaDeviceProp device;
    cudaGetDeviceProperties(&device, 0);
    const unsigned most = 2 * device.multiProcessorCount;
    if (is("for_the_last")) for_the_last<<<most + 1, 1024, 0, one>>>(word);
    else if (is("fits")) for_the_last<<<most, 1024, 0, one>>>(word);
    else if (is("meet")) meet<<<most + 3, 1024, 0, one>>>(word);
    else if (is("two_kernels") || is("beside")) {
        // The second kernel has no room beside the first, or has.
        const unsigned blocks = is("beside") ? most - 1 : most;
        unsigned* come;
        cudaMallocHost(&come, sizeof *come);
        *come = 0;
        at_gate<<<blocks, 1024, 0, one>>>(word, come);
        while (*(volatile unsigned*)come < blocks) sched_yield();
        open_gate<<<1, 1, 0, other>>>(word);
    } else if (is("not_cooperative")) whole_grid<<<2, 32, 0, one>>>();
    else if (is("cooperative")) {
        void* none[] = {nullptr};
        const cudaError_t code = cudaLaunchCooperativeKernel((void*)whole_grid, dim3(most + 1), dim3(1024), none, 0, one);
        printf("launch: %s\n", cudaGetErrorName(code));
        return code == cudaSuccess;
    } else if (is("two_cooperative")) {
        // Each has the device for itself, one after the other.
        void* none[] = {nullptr};
        for (int round = 0; round < 10; ++round) {
            cudaLaunchCooperativeKernel((void*)whole_grid, dim3(most - 1), dim3(1024), none, 0, one);
            cudaLaunchCooperativeKernel((void*)whole_grid, dim3(most - 1), dim3(1024), none, 0, other);
        }
    } else return 2;
    const cudaError_t code = cudaDeviceSynchronize();
    printf("end: %s\n", cudaGetErrorName(code));
    return code != cudaSuccess;
}
