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

// Pairs of numbers: arithmetic, comparisons, and calls that move whole pairs. `room` has two.
template <class T, class Pair>
__global__ void pairs(Pair* room, int* faults) {
    using namespace oxshmem;
    const int me = my_pe(), n = n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    const Pair two{T(2.0f), T(2.0f)};
    const Pair own = __hadd2(Pair{T(1.5f), T(float(me))}, Pair{T(2.0f), T(0.25f)});
    const Pair sum = __hsub2(__hfma2(own, two, own), __hmul2(own, two));
    *faults += float(sum.x) != 3.5f || float(sum.y) != me + 0.25f;
    *faults += !__heq(own.x, T(3.5f)) || __hne(own.y, sum.y) || !__hlt(own.x, T(4.0f)) || __hgt(own.x, T(3.5f));
    *faults += !__hle(own.x, T(3.5f)) || !__hge(own.x, T(3.5f)) || !(own.x > two.x) || own.x == two.x;
    *faults += float(__hmax(own.x, two.x)) != 3.5f || float(__hmin(own.x, two.x)) != 2.0f;
    room[0] = own;
    put(room + 1, room, 1, right);
    quiet();
    barrier_all();
    *faults += float(room[1].x) != 3.5f || float(room[1].y) != left + 0.25f;
    Pair back;
    get(&back, room + 1, 1, right);
    *faults += float(back.x) != 3.5f || float(back.y) != me + 0.25f;
}

template <class T, class Pair>
static void run_pairs() {
    Pair* room = (Pair*)shmemx_cuda_malloc(2 * sizeof(Pair));
    int* faults;
    CUDA(cudaMallocHost(&faults, sizeof(int)));
    *faults = 0;
    pairs<T, Pair><<<1, 1>>>(room, faults);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmemx_cuda_check() == 0 && *faults == 0);
    shmem_free(room);
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
    run_pairs<__half, __half2>();
    run_pairs<__nv_bfloat16, __nv_bfloat162>();
    shmem_finalize();
    return 0;
}
