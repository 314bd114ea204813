// Nonblocking calls, whose operands are not touched before a quiet (M37, G2 to G4): each way is right as it is, and has a race without one
// of its calls. The words are the way's name, and the number of the call that is left out, if one is.
#include <cstdlib>
#include <cstring>

#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>

#include "check.h"

using u64 = unsigned long long;
const int NUMBERS = 64;

struct Room {
    long* numbers;    // Symmetric.
    long* more;       // Symmetric.
    u64* flag;        // Symmetric.
    long* own;        // Of this PE alone.
    unsigned* count;  // Of this PE alone.
    int without;
};

__device__ void tell(const Room& room, int pe) {
    if (threadIdx.x == 0) oxshmem::atomic_set(room.flag, 1, pe);
}
__device__ void hear(const Room& room) {
    if (threadIdx.x == 0) oxshmem::wait_until(room.flag, oxshmem::CMP_EQ, 1);
    __syncthreads();
}
__device__ void use(const Room& room) {
    for (int i = threadIdx.x; i < NUMBERS; i += blockDim.x) atomicAdd((u64*)room.own, (u64)room.numbers[i]);
}

// The source of a put is changed: 1 is the quiet, 2 the barrier behind it.
__global__ void source(Room room) {
    if (oxshmem::my_pe() != 0) return;
    room.own[threadIdx.x] = threadIdx.x;
    oxshmem::put_nbi(oxshmem::block(), room.numbers, room.own, NUMBERS, 1);
    if (threadIdx.x == 0 && room.without != 1) oxshmem::quiet();
    if (room.without != 2) __syncthreads();
    room.own[threadIdx.x] = 7;
}

// A flush ends the use of sources: 1 is the flush.
__global__ void flush(Room room) {
    if (oxshmem::my_pe() != 0) return;
    room.own[threadIdx.x] = threadIdx.x;
    oxshmem::put_nbi(room.numbers + threadIdx.x, room.own + threadIdx.x, 1, 1);
    if (room.without != 1) oxshmem::flush();
    room.own[threadIdx.x] = 7;
}

// What was put is used at its target: 1 is the quiet, in whose place there is a fence of CUDA's.
__global__ void dest(Room room) {
    if (oxshmem::my_pe() == 0) {
        oxshmem::put_nbi(oxshmem::block(), room.numbers, room.own, NUMBERS, 1);
        if (threadIdx.x == 0) {
            if (room.without != 1) oxshmem::quiet();
            else __threadfence_system();
        }
        tell(room, 1);
    } else if (oxshmem::my_pe() == 1) {
        hear(room);
        use(room);
    }
}

// A fence is enough for that (G3): 1 is the fence.
__global__ void fence(Room room) {
    if (oxshmem::my_pe() == 0) {
        oxshmem::put_nbi(oxshmem::block(), room.numbers, room.own, NUMBERS, 1);
        if (threadIdx.x == 0) {
            if (room.without != 1) oxshmem::fence();
            else __threadfence_system();
        }
        tell(room, 1);
    } else if (oxshmem::my_pe() == 1) {
        hear(room);
        use(room);
    }
}

// What a get brings is used, and its source is changed: 1 is the quiet, which a fence does not replace.
__global__ void get(Room room) {
    if (oxshmem::my_pe() == 0) {
        oxshmem::getmem_nbi(oxshmem::block(), room.own, room.numbers, NUMBERS * sizeof(long), 1);
        if (threadIdx.x == 0) {
            if (room.without != 1) oxshmem::quiet();
            else oxshmem::fence();
        }
        __syncthreads();
        if (room.without != 1) room.own[threadIdx.x] += 1;
        tell(room, 1);
    } else if (oxshmem::my_pe() == 1) {
        hear(room);
        room.numbers[threadIdx.x] = 9;
    }
}
// 1 is the quiet before the use alone.
__global__ void fetched(Room room) {
    if (oxshmem::my_pe() != 0) return;
    oxshmem::get_nbi(room.own + threadIdx.x, room.numbers + threadIdx.x, 1, 1);
    if (room.without != 1) oxshmem::quiet();
    room.own[threadIdx.x] += 1;
}

// A signal tells of the data of its call. The source may be changed after a quiet: 1. 2 is the wait.
__global__ void signal(Room room) {
    if (oxshmem::my_pe() == 0) {
        room.own[threadIdx.x] = threadIdx.x;
        oxshmem::put_signal_nbi(oxshmem::block(), room.numbers, room.own, NUMBERS, room.flag, 1, oxshmem::SIGNAL_SET, 1);
        if (threadIdx.x == 0 && room.without != 1) oxshmem::quiet();
        __syncthreads();
        room.own[threadIdx.x] = 7;
    } else if (oxshmem::my_pe() == 1) {
        if (threadIdx.x == 0 && room.without != 2) oxshmem::signal_wait_until(room.flag, oxshmem::CMP_EQ, 1);
        __syncthreads();
        use(room);
    }
}
// The data of another call it does not tell of: 1 is the fence between the two.
__global__ void two_puts(Room room) {
    if (oxshmem::my_pe() == 0) {
        oxshmem::put_nbi(oxshmem::block(), room.numbers, room.own, NUMBERS, 1);
        if (threadIdx.x == 0 && room.without != 1) oxshmem::fence();
        oxshmem::put_signal_nbi(oxshmem::block(), room.more, room.own, NUMBERS, room.flag, 1, oxshmem::SIGNAL_SET, 1);
    } else if (oxshmem::my_pe() == 1) {
        if (threadIdx.x == 0) oxshmem::signal_wait_until(room.flag, oxshmem::CMP_EQ, 1);
        __syncthreads();
        use(room);
    }
}

// One thread's quiet completes the grid's work (G2): 1 is the quiet, 2 the fences by which the blocks are ordered.
__global__ void grid(Room room) {
    const int each = NUMBERS / gridDim.x, first = blockIdx.x * each;
    if (oxshmem::my_pe() == 0) {
        __shared__ bool is_last;
        oxshmem::put_nbi(oxshmem::block(), room.numbers + first, room.own + first, each, 1);
        if (threadIdx.x == 0) {
            if (room.without != 2) __threadfence();
            is_last = atomicAdd(room.count, 1) == gridDim.x - 1;
            if (room.without != 2) __threadfence();
        }
        __syncthreads();
        if (!is_last) return;
        if (threadIdx.x == 0) {
            if (room.without != 1) oxshmem::quiet();
            else __threadfence_system();
        }
        tell(room, 1);
    } else if (oxshmem::my_pe() == 1 && blockIdx.x == 0) {
        hear(room);
        use(room);
    }
}

// The end of a kernel is no quiet (G4): the host's is, behind it.
__global__ void leave(Room room) {
    if (oxshmem::my_pe() == 0) oxshmem::put_nbi(oxshmem::block(), room.numbers, room.own, NUMBERS, 1);
}
__global__ void change(long* numbers) { numbers[threadIdx.x] = 7; }
__global__ void look(Room room) { use(room); }

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "";
    shmem_init();
    if (shmemx_cuda_init() != 0) shmem_global_exit(1);
    const int me = shmem_my_pe();
    Room room;
    room.without = argc > 2 ? atoi(argv[2]) : 0;
    room.numbers = (long*)shmemx_cuda_malloc(NUMBERS * sizeof(long));
    room.more = (long*)shmemx_cuda_malloc(NUMBERS * sizeof(long));
    room.flag = (u64*)shmemx_cuda_malloc(sizeof(u64));
    CHECK(room.numbers && room.more && room.flag);
    CUDA(cudaMalloc(&room.own, NUMBERS * sizeof(long)));
    CUDA(cudaMalloc(&room.count, sizeof(unsigned)));
    CUDA(cudaMemset(room.own, 0, NUMBERS * sizeof(long)));
    CUDA(cudaMemset(room.count, 0, sizeof(unsigned)));
    CUDA(cudaMemset(room.numbers, 0, NUMBERS * sizeof(long)));
    CUDA(cudaMemset(room.more, 0, NUMBERS * sizeof(long)));
    CUDA(cudaMemset(room.flag, 0, sizeof(u64)));
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();

    typedef void Kernel(Room);
    static const struct {
        const char* name;
        Kernel* kernel;
        int blocks;
    } kernels[] = {{"source", source, 1}, {"flush", flush, 1},       {"dest", dest, 1},       {"fence", fence, 1}, {"get", get, 1},
                   {"fetched", fetched, 1}, {"signal", signal, 1}, {"two_puts", two_puts, 1}, {"grid", grid, 4}};
    bool is_kernel = false;
    for (const auto& one : kernels) {
        if (strcmp(way, one.name)) continue;
        is_kernel = true;
        one.kernel<<<one.blocks, NUMBERS / one.blocks>>>(room);
    }
    if (!strcmp(way, "kernels")) {
        // 1 is the quiet.
        leave<<<1, NUMBERS>>>(room);
        CUDA(cudaDeviceSynchronize());
        if (room.without != 1) shmem_quiet();
        if (me == 0) change<<<1, NUMBERS>>>(room.own);
    } else if (!strcmp(way, "barrier")) {
        // 1 is the barrier, in whose place is a sync, which completes nothing.
        leave<<<1, NUMBERS>>>(room);
        CUDA(cudaDeviceSynchronize());
        if (room.without != 1) shmem_barrier_all();
        else shmem_sync_all();
        if (me == 1) look<<<1, NUMBERS>>>(room);
    } else if (!strcmp(way, "host_source")) {
        // 1 is the quiet.
        if (me == 0) {
            shmem_long_put_nbi(room.numbers, room.more, NUMBERS, 1);
            if (room.without != 1) shmem_quiet();
            change<<<1, NUMBERS>>>(room.more);
        }
    } else if (!strcmp(way, "host_dest")) {
        // 1 is the barrier, in whose place is a sync.
        if (me == 0) shmem_putmem_nbi(room.numbers, room.more, NUMBERS * sizeof(long), 1);
        if (room.without != 1) shmem_barrier_all();
        else shmem_sync_all();
        if (me == 1) look<<<1, NUMBERS>>>(room);
    } else if (!is_kernel) FAIL("no way %s", way);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
