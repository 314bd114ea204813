// Order: fence, quiet and flush, and the barriers and syncs of each scope.
#include "check.h"

enum { COUNT = 12 };

// Data by each kind of put, then a flag. The right neighbour reads the data when it has the flag.
__global__ void order(long* data, const long* source, long* flag, int right, int left) {
    for (int round = 1; round <= 3; ++round) {
        long* here = data + 4 * COUNT * round;
        nvshmem_long_put(here, source, COUNT, right);
        nvshmem_fence();
        nvshmem_long_p(flag, 4 * round, right);
        nvshmem_long_wait_until(flag, NVSHMEM_CMP_GE, 4 * round);
        for (int i = 0; i < COUNT; ++i) SEEN(here[i] == value<long>(left, i));

        // NVSHMEM's own programs put without waiting before a fence.
        nvshmem_long_put_nbi(here + COUNT, source, COUNT, right);
        nvshmem_fence();
        nvshmem_long_atomic_inc(flag, right);
        nvshmem_long_wait_until(flag, NVSHMEM_CMP_GE, 4 * round + 1);
        for (int i = 0; i < COUNT; ++i) SEEN(here[COUNT + i] == value<long>(left, i));

        nvshmem_long_put_nbi(here + 2 * COUNT, source, COUNT, right);
        nvshmem_quiet();
        nvshmem_long_atomic_add(flag, 1, right);
        nvshmem_long_wait_until(flag, NVSHMEM_CMP_GE, 4 * round + 2);
        for (int i = 0; i < COUNT; ++i) SEEN(here[2 * COUNT + i] == value<long>(left, i));
        nvshmem_barrier_all();
    }
}

// The source of a put is changed behind a flush.
__global__ void reuse(long* data, long* source, int right) {
    const unsigned lane = threadIdx.x;
    for (int way = 0; way < 3; ++way) {
        if (lane < COUNT) source[lane] = 100 * way + lane;
        __syncthreads();
        nvshmemx_long_put_nbi_block(data + way * COUNT, source, COUNT, right);
        if (way == 0) nvshmemx_flush();
        if (way == 1) nvshmemx_flush_warp();
        if (way == 2) nvshmemx_flush_block();
        __syncthreads();
    }
    nvshmemx_barrier_all_block();
    for (int way = 0; way < 3; ++way)
        if (lane < COUNT) SEEN(data[way * COUNT + lane] == 100 * way + lane);
}

// A barrier or a sync between two parts: in each round each PE stores to a word of its own, and puts to one of the next PE.
template <class Meeting>
__global__ void meet(long* words, int right, int left, int first, int rounds) {
    for (int round = first; round < first + rounds; ++round) {
        if (threadIdx.x == 0) {
            words[0] = round;
            if (Meeting::completes) nvshmem_long_put_nbi(words + 1, words, 1, right);
            else __threadfence_system();
        }
        __syncthreads();
        SEEN(Meeting::meet() == 0);
        if (threadIdx.x == 0) {
            SEEN(nvshmem_long_g(words, left) == round);
            if (Meeting::completes) SEEN(words[1] == round);
        }
        __syncthreads();
        SEEN(Meeting::meet() == 0);
    }
}

#define MEETING(NAME, COMPLETES, CALL)                                                                                 \
    struct NAME {                                                                                                      \
        static constexpr bool completes = COMPLETES;                                                                   \
        static __host__ __device__ int meet() { CALL; return 0; }                                                      \
    };
#define DEVICE_MEETING(NAME, COMPLETES, CALL)                                                                          \
    struct NAME {                                                                                                      \
        static constexpr bool completes = COMPLETES;                                                                   \
        static __device__ int meet() { CALL; return 0; }                                                               \
    };
MEETING(BarrierAll, true, nvshmem_barrier_all())
MEETING(Barrier, true, return nvshmem_barrier(NVSHMEM_TEAM_WORLD))
MEETING(SyncAll, false, nvshmem_sync_all())
MEETING(TeamSync, false, return nvshmem_team_sync(NVSHMEM_TEAM_WORLD))
DEVICE_MEETING(BarrierAllWarp, true, nvshmemx_barrier_all_warp())
DEVICE_MEETING(BarrierWarp, true, return nvshmemx_barrier_warp(NVSHMEM_TEAM_WORLD))
DEVICE_MEETING(SyncAllWarp, false, nvshmemx_sync_all_warp())
DEVICE_MEETING(TeamSyncWarp, false, return nvshmemx_team_sync_warp(NVSHMEM_TEAM_WORLD))
DEVICE_MEETING(BarrierAllBlock, true, nvshmemx_barrier_all_block())
DEVICE_MEETING(BarrierBlock, true, return nvshmemx_barrier_block(NVSHMEM_TEAM_WORLD))
DEVICE_MEETING(SyncAllBlock, false, nvshmemx_sync_all_block())
DEVICE_MEETING(TeamSyncBlock, false, return nvshmemx_team_sync_block(NVSHMEM_TEAM_WORLD))

// A kernel for what lies between the meetings of the host or of a stream.
__global__ void put(long* words, long value, int right) {
    words[0] = value;
    nvshmem_long_put_nbi(words + 1, words, 1, right);
}
__global__ void compare(const long* words, long value) { SEEN(words[1] == value); }

int main() {
    start();
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    long *data = (long*)nvshmem_calloc(16 * COUNT, sizeof(long)), *source = (long*)nvshmem_malloc(COUNT * sizeof(long));
    long *flag = (long*)nvshmem_calloc(1, sizeof(long)), *words = (long*)nvshmem_calloc(2, sizeof(long));
    std::vector<long> mine(COUNT);
    for (int i = 0; i < COUNT; ++i) mine[i] = value<long>(me, i);
    fill(source, mine);
    nvshmem_barrier_all();
    order<<<1, 1>>>(data, source, flag, right, left);
    RAN();
    reuse<<<1, 32>>>(data, source, right);
    RAN();

    int first = 1;
#define MEET(NAME, THREADS)                                                                                            \
    meet<NAME><<<1, THREADS>>>(words, right, left, first, 5);                                                          \
    RAN();                                                                                                             \
    first += 5;
    MEET(BarrierAll, 1) MEET(Barrier, 1) MEET(SyncAll, 1) MEET(TeamSync, 1)
    MEET(BarrierAllWarp, 32) MEET(BarrierWarp, 32) MEET(SyncAllWarp, 32) MEET(TeamSyncWarp, 32)
    MEET(BarrierAllBlock, 40) MEET(BarrierBlock, 40) MEET(SyncAllBlock, 40) MEET(TeamSyncBlock, 40)

    // The host's: what a kernel has put is complete behind a barrier that follows its end.
    for (int way = 0; way < 2; ++way, ++first) {
        put<<<1, 1>>>(words, first, right);
        CUDA(cudaDeviceSynchronize());
        way ? (void)BarrierAll::meet() : (void)Barrier::meet();
        EXPECT(words, (std::vector<long>{first, first}), "a barrier of the host");
        SyncAll::meet();
        CHECK(TeamSync::meet() == 0);
    }
    // A fence of the host between puts of it, and a quiet.
    fill(source, mine);
    nvshmem_long_put_nbi(data, source, COUNT, right);
    nvshmem_fence();
    nvshmem_long_p(flag, 1000, right);
    nvshmem_quiet();
    nvshmem_barrier_all();
    CHECK(nvshmem_long_g(flag, me) == 1000);
    CHECK(nvshmem_long_g(data + 1, me) == value<long>(left, 1));

    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    for (int way = 0; way < 2; ++way, ++first) {
        put<<<1, 1, 0, stream>>>(words, first, right);
        if (way) nvshmemx_barrier_all_on_stream(stream);
        else CHECK(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, stream) == 0);
        compare<<<1, 1, 0, stream>>>(words, first);
        nvshmemx_sync_all_on_stream(stream);
        CHECK(nvshmemx_team_sync_on_stream(NVSHMEM_TEAM_WORLD, stream) == 0);
    }
    CUDA(cudaStreamSynchronize(stream));
    RAN();
    nvshmem_barrier_all();
    nvshmemx_flush();
    nvshmem_finalize();
    return 0;
}
