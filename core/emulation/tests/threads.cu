// Barriers, warps, atomics, blocks that wait for each other, a grid's barrier, half precision.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdio>
#include <vector>
namespace cg = cooperative_groups;
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            printf("line %d: %s is wrong\n", __LINE__, #x);                                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

__global__ void sum(const int* in, int* out, int n) {
    __shared__ int warps[32];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    int value = at < n ? in[at] : 0;
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffffu, value, delta);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
        value = __reduce_add_sync(0xffffffffu, value);
        if (threadIdx.x == 0) atomicAdd(out, value);
    }
}
// Each block waits for the one before it: all must be there.
__global__ void chain(volatile int* turn) {
    if (threadIdx.x == 0) {
        const int mine = gridDim.x - 1 - blockIdx.x;
        while (*turn != mine) {
        }
        __threadfence();
        *turn = mine + 1;
    }
}
__global__ void lock(int* mutex, int* plain) {
    for (bool done = false; !done;) {
        if (atomicCAS(mutex, 0, 1) == 0) {
            __threadfence();
            *(volatile int*)plain = *(volatile int*)plain + 1;
            __threadfence();
            atomicExch(mutex, 0);
            done = true;
        }
    }
}
__global__ void phases(int* data, int* wrong) {
    cg::grid_group grid = cg::this_grid();
    for (int phase = 1; phase <= 5; ++phase) {
        data[grid.thread_rank()] = phase;
        grid.sync();
        if (data[(grid.thread_rank() * 7 + 3) % grid.size()] != phase) atomicAdd(wrong, 1);
        grid.sync();
    }
}
// Lanes that come here together take their numbers by one addition. Some come by another way, or not at all.
__device__ int numbered(int* next) {
    const unsigned lanes = __activemask();
    const int leader = __ffs(lanes) - 1, before = __popc(lanes & ((1u << threadIdx.x % 32) - 1));
    int first = 0;
    if (before == 0) first = atomicAdd(next, __popc(lanes));
    return __shfl_sync(lanes, first, leader) + before;
}
__global__ void numbers(int* next, int* taken) {
    for (int i = 0; i < 5; ++i) {
        if (threadIdx.x % 5 == 4) continue;
        const int number = threadIdx.x % 2 ? numbered(next) : numbered(next);
        atomicAdd(taken + number, 1);
    }
}
__global__ void votes(int* wrong) {
    const unsigned lane = threadIdx.x % 32;
    int faults = 0;
    faults += __ballot_sync(0xffffffffu, lane & 1) != 0xaaaaaaaau;
    faults += !__any_sync(0xffffffffu, lane == 5) + __all_sync(0xffffffffu, lane == 5);
    faults += __shfl_xor_sync(0xffffffffu, lane, 1) != (lane ^ 1);
    faults += __shfl_up_sync(0xffffffffu, lane, 3, 8) != (lane % 8 < 3 ? lane : lane - 3);
    faults += __shfl_sync(0xffffffffu, 1.5 * lane, 7) != 10.5;
    faults += __match_any_sync(0xffffffffu, lane / 4) != 0xfu << lane / 4 * 4;
    if (lane < 16) {
        faults += __shfl_sync(0xffffu, lane, 3) != 3;
    } else {
        faults += __shfl_sync(0xffff0000u, lane, 19) != 19;
    }
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    faults += cg::reduce(tile, (int)tile.thread_rank(), cg::plus<int>()) != 28;
    faults += __syncthreads_count(threadIdx.x < 10) != 10;
    faults += __syncthreads_or(threadIdx.x == 3) != 1 || __syncthreads_and(threadIdx.x < 10) != 0;
    faults += __popc(0xf0f0) != 8 || __clz(1) != 31 || __ffs(8) != 4 || __brev(1) != 0x80000000u;
    faults += __half2float(__hadd(__float2half(1.5f), __half(2))) != 3.5f;
    faults += __bfloat162float(__float2bfloat16(1.00390625f)) != 1.0f;
    faults += __fmaf_rn(2, 3, 4) != 10 || rsqrtf(4) != 0.5f || __expf(0) != 1;
    if (faults) atomicAdd(wrong, faults);
}
__global__ void early(int* out) {
    if (threadIdx.x % 2) return;
    __syncthreads();
    atomicAdd(out, 1);
}
int main() {
    int *out, *data, zero = 0, got = 0;
    cudaMalloc(&out, 8);
    cudaMalloc(&data, 100000 * sizeof(int));
    auto result = [&] {
        got = -1;
        cudaError_t error = cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
        if (error) printf("%s\n", cudaGetErrorString(error));
        cudaMemset(out, 0, 8);
        return got;
    };
    std::vector<int> in(100000, 3);
    cudaMemcpy(data, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(out, 0, 8);
    sum<<<(100000 + 1023) / 1024, 1024>>>(data, out, 100000);
    CHECK(result() == 300000);
    chain<<<24, 64>>>(out);
    CHECK(result() == 24);
    lock<<<4, 64>>>(out, out + 1);
    CHECK(cudaMemcpy(&got, out + 1, 4, cudaMemcpyDeviceToHost) == cudaSuccess && got == 256);
    result();
    void* arguments[] = {&data, &out};
    CHECK(cudaLaunchCooperativeKernel(phases, dim3(8), dim3(128), arguments) == cudaSuccess);
    CHECK(result() == 0);
    int blocks = 0, units = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, phases, 128, 0);
    cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, 0);
    CHECK(cudaLaunchCooperativeKernel(phases, dim3(blocks * units + 1), dim3(128), arguments) == cudaErrorCooperativeLaunchTooLarge);
    CHECK(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge && cudaGetLastError() == cudaSuccess);
    votes<<<2, 64>>>(out);
    CHECK(result() == 0);
    early<<<1, 64>>>(out);
    CHECK(result() == 32);
    sum<<<1, 2048>>>(data, out, zero);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    cudaMemset(data, 0, 400 * sizeof(int));
    numbers<<<2, 48>>>(out, data);
    const int lanes = 48 - 48 / 5, all = 2 * 5 * lanes;
    CHECK(result() == all);
    std::vector<int> taken(all + 1);
    CHECK(cudaMemcpy(taken.data(), data, taken.size() * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int i = 0; i <= all; ++i) CHECK(taken[i] == (i < all));
    puts("threads: all right");
}
