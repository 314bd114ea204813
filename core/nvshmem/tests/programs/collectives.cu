// Broadcasts, fcollects and alltoalls: of each type and of bytes, by a thread, a warp, a block, on a stream and by the host, of
// all PEs and of a team.
//   collectives SCOPE, where SCOPE is thread, warp, block, stream or host
#include "check.h"

static cudaStream_t stream;

#define CALLS(WHERE, NAME, END, LAST)                                                                                  \
    static WHERE int broadcast(nvshmem_team_t team, T* dest, const T* source, size_t n, int root) {                    \
        return NAME##broadcast##END(team, dest, source, n, root LAST);                                                 \
    }                                                                                                                  \
    static WHERE int fcollect(nvshmem_team_t team, T* dest, const T* source, size_t n) {                               \
        return NAME##fcollect##END(team, dest, source, n LAST);                                                        \
    }                                                                                                                  \
    static WHERE int alltoall(nvshmem_team_t team, T* dest, const T* source, size_t n) {                               \
        return NAME##alltoall##END(team, dest, source, n LAST);                                                        \
    }
#define COMMA_STREAM , stream
#define SCOPES(NAME, TYPE)                                                                                             \
    struct thread_##NAME { using T = TYPE; CALLS(__host__ __device__, nvshmem_##NAME##_, , ) };                        \
    struct warp_##NAME { using T = TYPE; CALLS(__device__, nvshmemx_##NAME##_, _warp, ) };                             \
    struct block_##NAME { using T = TYPE; CALLS(__device__, nvshmemx_##NAME##_, _block, ) };                           \
    struct stream_##NAME { using T = TYPE; CALLS(, nvshmemx_##NAME##_, _on_stream, COMMA_STREAM) };
RMA_TYPES(SCOPES)
// Those of bytes have no type in their names.
struct thread_mem { using T = signed char; CALLS(__host__ __device__, nvshmem_, mem, ) };
struct warp_mem { using T = signed char; CALLS(__device__, nvshmemx_, mem_warp, ) };
struct block_mem { using T = signed char; CALLS(__device__, nvshmemx_, mem_block, ) };
struct stream_mem { using T = signed char; CALLS(, nvshmemx_, mem_on_stream, COMMA_STREAM) };

enum { COUNT = 9, MOST_PES = 8 };

// Two of each one after the other, with different roots.
#ifdef __NVCC__
#pragma nv_exec_check_disable
#endif
template <class Calls>
__host__ __device__ int all(nvshmem_team_t team, int n, typename Calls::T* dest, const typename Calls::T* source) {
    int failed = 0;
    for (int round = 0; round < 2; ++round) {
        failed |= Calls::broadcast(team, dest, source + round, COUNT, (round + 1) % n);
        dest += COUNT;
        failed |= Calls::fcollect(team, dest, source + round, COUNT);
        dest += n * COUNT;
        failed |= Calls::alltoall(team, dest, source + round, COUNT);
        dest += n * COUNT;
    }
    return failed;
}

template <class Calls>
__global__ void calls(nvshmem_team_t team, typename Calls::T* dest, const typename Calls::T* source) {
    SEEN(all<Calls>(team, nvshmem_team_n_pes(team), dest, source) == 0);
}

template <class T, class Run>
static void compare(nvshmem_team_t team, const char* what, Run run) {
    static T* memory = (T*)nvshmem_malloc(4 * (MOST_PES + 1) * COUNT * sizeof(T));
    static T* source = (T*)nvshmem_malloc((MOST_PES + 1) * COUNT * sizeof(T));
    nvshmem_barrier_all();
    if (team == NVSHMEM_TEAM_INVALID) return;
    const int n = nvshmem_team_n_pes(team), mine = nvshmem_team_my_pe(team);
    std::vector<T> given((n + 1) * COUNT), wanted;
    for (int i = 0; i < (int)given.size(); ++i) given[i] = value<T>(me, i);
    fill(source, given);
    nvshmem_team_sync(team);
    run(memory, source);
    auto world = [&](int member) { return nvshmem_team_translate_pe(team, member, NVSHMEM_TEAM_WORLD); };
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < COUNT; ++i) wanted.push_back(value<T>(world((round + 1) % n), round + i));
        for (int from = 0; from < n; ++from)
            for (int i = 0; i < COUNT; ++i) wanted.push_back(value<T>(world(from), round + i));
        for (int from = 0; from < n; ++from)
            for (int i = 0; i < COUNT; ++i) wanted.push_back(value<T>(world(from), round + mine * COUNT + i));
    }
    EXPECT(memory, wanted, what);
}

template <class Calls>
static void by_kernel(nvshmem_team_t team, const char* what, int threads) {
    using T = typename Calls::T;
    compare<T>(team, what, [=](T* dest, const T* source) {
        calls<Calls><<<1, threads>>>(team, dest, source);
        RAN();
    });
}

template <class Calls>
static void by_host(nvshmem_team_t team, const char* what) {
    using T = typename Calls::T;
    compare<T>(team, what, [=](T* dest, const T* source) {
        CHECK(all<Calls>(team, nvshmem_team_n_pes(team), dest, source) == 0);
        CUDA(cudaStreamSynchronize(stream));
    });
}

int main(int count, char** words) {
    CHECK(count == 2);
    const char* scope = words[1];
    start();
    CHECK(pes <= MOST_PES);
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    // The even PEs.
    nvshmem_team_t even = NVSHMEM_TEAM_INVALID;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, NULL, 0, &even) == 0);
#define ALL(RUN) RMA_TYPES(RUN) RUN(mem, )
#define THREAD(NAME, TYPE) by_kernel<thread_##NAME>(team, "thread " #NAME, 1);
#define WARP(NAME, TYPE) by_kernel<warp_##NAME>(team, "warp " #NAME, 32);
#define BLOCK(NAME, TYPE) by_kernel<block_##NAME>(team, "block " #NAME, 40);
#define STREAM(NAME, TYPE) by_host<stream_##NAME>(team, "stream " #NAME);
#define HOST(NAME, TYPE) by_host<thread_##NAME>(team, "host " #NAME);
    for (nvshmem_team_t team : {(nvshmem_team_t)NVSHMEM_TEAM_WORLD, even}) {
        if (!strcmp(scope, "thread")) { ALL(THREAD) }
        else if (!strcmp(scope, "warp")) { ALL(WARP) }
        else if (!strcmp(scope, "block")) { ALL(BLOCK) }
        else if (!strcmp(scope, "stream")) { ALL(STREAM) }
        else if (!strcmp(scope, "host")) { ALL(HOST) }
        else FAIL("no scope %s", scope);
    }
    nvshmem_finalize();
    return 0;
}
