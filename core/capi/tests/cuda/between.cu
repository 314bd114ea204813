// PEs whose kernels exchange data: each way is right as it is, and has a race without one of the calls that order it. The words are the
// way's name, and the number of the call that is left out, if one is.
#include <cstdlib>
#include <cstring>

#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

using u64 = unsigned long long;
const int NUMBERS = 64, ROUNDS = 3;

struct Room {
    long* numbers;  // Symmetric.
    u64* flag;      // Symmetric, one for each round.
    u64* answer;    // Symmetric.
    long* sum;      // Of this PE alone.
    int without;
};

__device__ void add(const Room& room) {
    long sum = 0;
    for (int i = threadIdx.x; i < NUMBERS; i += blockDim.x) sum += room.numbers[i];
    atomicAdd((u64*)room.sum, (u64)sum);
}

__device__ void wait(const Room& room, u64 value) {
    if (threadIdx.x == 0) oxshmem::wait_until(room.flag, oxshmem::CMP_EQ, value);
    __syncthreads();
}

// A flag behind puts: 1 is the fence, 2 the wait.
__global__ void flag(Room room) {
    if (oxshmem::my_pe() == 0) {
        if (threadIdx.x != 0) return;
        for (int i = 0; i < NUMBERS; ++i) oxshmem::p(room.numbers + i, (long)i, 1);
        if (room.without != 1) oxshmem::fence();
        oxshmem::atomic_set(room.flag, 1, 1);
    } else if (oxshmem::my_pe() == 1) {
        if (room.without != 2) wait(room, 1);
        add(room);
    }
}

// A put with a signal, twice into the same place: 1 is the signal in it, 2 the wait for it, 3 the wait for the answer, 4 the barrier before
// the answer.
__global__ void signal(Room room) {
    const int me = oxshmem::my_pe();
    for (u64 round = 1; me < 2 && round < ROUNDS; ++round) {
        if (me == 0) {
            room.sum[threadIdx.x] = round;
            __syncthreads();
            if (room.without != 1) {
                oxshmem::put_signal(oxshmem::block(), room.numbers, room.sum, NUMBERS, room.flag + round, 1, oxshmem::SIGNAL_SET, 1);
            } else {
                oxshmem::put_nbi(oxshmem::block(), room.numbers, room.sum, NUMBERS, 1);
                if (threadIdx.x == 0) oxshmem::signal(room.flag + round, 1, oxshmem::SIGNAL_SET, 1);
            }
            if (threadIdx.x == 0 && room.without != 3) oxshmem::wait_until(room.answer, oxshmem::CMP_GE, round);
            __syncthreads();
        } else {
            if (threadIdx.x == 0 && room.without != 2) oxshmem::signal_wait_until(room.flag + round, oxshmem::CMP_EQ, 1);
            __syncthreads();
            room.sum[threadIdx.x] += room.numbers[threadIdx.x];
            if (room.without != 4) __syncthreads();
            if (threadIdx.x == 0) {
                oxshmem::fence();
                oxshmem::atomic_set(room.answer, round, 0);
            }
        }
    }
}

// CUDA's own means on memory of another PE: 1 is the fence's scope, 2 the fence, 3 the reader's fence.
__global__ void mapped(Room room) {
    const int me = oxshmem::my_pe();
    if (me > 1) return;
    volatile u64* word = oxshmem::ptr(room.flag, 1);
    if (me == 0) {
        long* numbers = oxshmem::ptr(room.numbers, 1);
        numbers[threadIdx.x] = threadIdx.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            if (room.without == 1) __threadfence();
            else if (room.without != 2) __threadfence_system();
            *word = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*word != 1) {}
            if (room.without != 3) __threadfence_system();
        }
        __syncthreads();
        add(room);
    }
}

// The hosts order kernels.
__global__ void give(Room room) { oxshmem::ptr(room.numbers, 1)[threadIdx.x] = threadIdx.x; }
__global__ void use(Room room) { add(room); }

// A team's kernels.
__global__ void meet(Room room, int team) {
    oxshmem::barrier(oxshmem::block(), team);
    oxshmem::ptr(room.numbers, 1 - oxshmem::my_pe())[threadIdx.x] = threadIdx.x;
    oxshmem::barrier(oxshmem::block(), team);
    add(room);
}

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "";
    shmem_init();
    if (shmemx_cuda_init() != 0) shmem_global_exit(1);
    const int me = shmem_my_pe();
    Room room;
    room.without = argc > 2 ? atoi(argv[2]) : 0;
    room.numbers = (long*)shmemx_cuda_malloc(NUMBERS * sizeof(long));
    room.flag = (u64*)shmemx_cuda_malloc(ROUNDS * sizeof(u64));
    room.answer = (u64*)shmemx_cuda_malloc(sizeof(u64));
    u64* own = (u64*)shmem_calloc(1, sizeof(u64));
    CHECK(room.numbers && room.flag && room.answer && own);
    CUDA(cudaMalloc(&room.sum, NUMBERS * sizeof(long)));
    CUDA(cudaMemset(room.sum, 0, NUMBERS * sizeof(long)));
    CUDA(cudaMemset(room.numbers, 0, NUMBERS * sizeof(long)));
    CUDA(cudaMemset(room.flag, 0, ROUNDS * sizeof(u64)));
    CUDA(cudaMemset(room.answer, 0, sizeof(u64)));
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();

    if (!strcmp(way, "flag")) flag<<<1, NUMBERS>>>(room);
    else if (!strcmp(way, "signal")) signal<<<1, NUMBERS>>>(room);
    else if (!strcmp(way, "mapped")) mapped<<<1, NUMBERS>>>(room);
    else if (!strcmp(way, "barrier")) {
        // 1 is the wait for the kernel, 2 the barrier.
        if (me == 0) {
            give<<<1, NUMBERS>>>(room);
            if (room.without != 1) CUDA(cudaDeviceSynchronize());
        }
        if (room.without != 2) shmem_barrier_all();
        if (me == 1) use<<<1, NUMBERS>>>(room);
    } else if (!strcmp(way, "put")) {
        // By the host. 1 is the barrier, which ends the puts.
        if (me == 0) {
            for (int i = 0; i < NUMBERS; ++i) shmem_long_p(room.numbers + i, i, 1);
        }
        if (room.without != 1) shmem_barrier_all();
        if (me == 1) use<<<1, NUMBERS>>>(room);
    } else if (!strcmp(way, "word")) {
        // 1 is the wait for the word.
        if (me == 0) {
            give<<<1, NUMBERS>>>(room);
            CUDA(cudaDeviceSynchronize());
            shmem_ulonglong_p(own, 1, 1);
        } else if (me == 1) {
            if (room.without != 1) shmem_ulonglong_wait_until(own, SHMEM_CMP_EQ, 1);
            use<<<1, NUMBERS>>>(room);
        }
    } else if (!strcmp(way, "team")) {
        // The call that makes a team known to kernels orders them.
        shmem_team_t all;
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &all) == 0);
        meet<<<1, NUMBERS>>>(room, shmemx_cuda_team(all));
    } else FAIL("no way %s", way);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
