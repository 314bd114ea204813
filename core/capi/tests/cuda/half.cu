// Half precision in kernels' calls: copies, single values, strides, collective calls and folds.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

// `room` has places for 8 numbers of each PE, and `results` for the answers.
template <class T>
__global__ void exchange(T* room, T* results, int* faults) {
    using namespace oxshmem;
    const int me = my_pe(), n = n_pes(), right = (me + 1) % n;
    T* own = room + me * 8;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 8; ++i) own[i] = T(float(me + i) + 0.5f);
        put(own, own, 4, right);
        p(own + 4, own[4], right);
        iput(own + 5, own + 5, 1, 1, 3, right);
        quiet();
    }
    barrier_all(block());
    if (threadIdx.x == 0) {
        const int left = (me + n - 1) % n;
        for (int i = 0; i < 8; ++i) {
            const float expected = float(left + i) + 0.5f;
            *faults += float(room[left * 8 + i]) != expected;
            *faults += float(g(room + left * 8 + i, left)) != expected;
        }
        T back[2];
        get(back, room + right * 8, 2, right);
        *faults += float(back[1]) != float(right + 1) + 0.5f;
    }
    __syncthreads();
    reduce<Sum>(block(), TEAM_WORLD, results, own, 3);
    reduce<Max>(block(), TEAM_WORLD, results + 3, own, 1);
    reduce<Min>(block(), TEAM_WORLD, results + 4, own, 1);
    broadcast(block(), TEAM_WORLD, results + 5, own, 1, n - 1);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; ++i) *faults += float(results[i]) != float(n * (n - 1) / 2 + n * i) + 0.5f * n;
        *faults += float(results[3]) != n - 0.5f;
        *faults += float(results[4]) != 0.5f;
        *faults += float(results[5]) != n - 0.5f;
    }
}

template <class T>
static void run() {
    const int n = shmem_n_pes();
    T* room = (T*)shmemx_cuda_malloc(n * 8 * sizeof(T));
    T* results = (T*)shmemx_cuda_malloc(8 * sizeof(T));
    int* faults;
    CUDA(cudaMallocHost(&faults, sizeof(int)));
    *faults = 0;
    exchange<<<1, 32>>>(room, results, faults);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmemx_cuda_check() == 0 && *faults == 0);
    shmem_barrier_all();
    shmem_free(results);
    shmem_free(room);
}

int main() {
    shmem_init();
    CHECK(shmemx_cuda_init() == 0);
    run<__half>();
    run<__nv_bfloat16>();
    run<float>();
    shmem_finalize();
    return 0;
}
