// Puts with a signal: of each type and size, blocking and not, by a thread, a warp, a block and on a stream; signals alone, and
// waits for them.
//   signals SCOPE, where SCOPE is thread, warp, block, stream or alone
#include "check.h"

static cudaStream_t stream;

#define CALLS(WHERE, PUT, END, LAST)                                                                                   \
    static WHERE void put(T* dest, const T* source, size_t n, uint64_t* signal, uint64_t by, int how, int pe) {        \
        PUT##_signal##END(dest, source, n, signal, by, how, pe LAST);                                                  \
    }                                                                                                                  \
    static WHERE void put_nbi(T* dest, const T* source, size_t n, uint64_t* signal, uint64_t by, int how, int pe) {    \
        PUT##_signal_nbi##END(dest, source, n, signal, by, how, pe LAST);                                              \
    }
#define COMMA_STREAM , stream
#define SCOPES(NAME, TYPE, PUT, PUTX)                                                                                  \
    struct thread_##NAME { using T = TYPE; CALLS(__device__, PUT, , ) };                                               \
    struct warp_##NAME { using T = TYPE; CALLS(__device__, PUTX, _warp, ) };                                           \
    struct block_##NAME { using T = TYPE; CALLS(__device__, PUTX, _block, ) };                                         \
    struct stream_##NAME { using T = TYPE; CALLS(, PUTX, _on_stream, COMMA_STREAM) };
#define TYPED(NAME, TYPE) SCOPES(NAME, TYPE, nvshmem_##NAME##_put, nvshmemx_##NAME##_put)
#define SIZED(BITS, TYPE) SCOPES(BITS, TYPE, nvshmem_put##BITS, nvshmemx_put##BITS)
RMA_TYPES(TYPED)
SIZES(SIZED)
SCOPES(mem, char, nvshmem_putmem, nvshmemx_putmem)
// NVSHMEM 3.5 has these two names with a digit missing.
struct warp_6 { using T = unsigned short; CALLS(__device__, nvshmemx_put6, _warp, ) };
struct block_6 { using T = unsigned short; CALLS(__device__, nvshmemx_put6, _block, ) };

enum { ROUNDS = 3, COUNT = 21 };

// Tells the right neighbour, waits for the left one, and looks at what came before its signal.
template <class Calls>
__global__ void tell(typename Calls::T* dest, const typename Calls::T* source, uint64_t* signals, int right, int left) {
    using T = typename Calls::T;
    for (int round = 0; round < ROUNDS; ++round) {
        T* here = dest + 2 * round * COUNT;
        Calls::put(here, source + round, COUNT, signals, 5 + round, NVSHMEM_SIGNAL_SET, right);
        Calls::put_nbi(here + COUNT, source + round + 1, COUNT, signals + 1, 2, NVSHMEM_SIGNAL_ADD, right);
        SEEN(nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, 5 + round) >= 5 + round);
        SEEN(nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_GT, 2 * round) >= 2 * round + 2);
        for (int i = threadIdx.x; i < COUNT; i += blockDim.x) {
            SEEN(same(here[i], value<T>(left, round + i)));
            SEEN(same(here[COUNT + i], value<T>(left, round + 1 + i)));
        }
    }
    nvshmem_quiet();
}

template <class T>
struct Memory {
    T *dest, *source;
    uint64_t* signals;

    Memory() {
        dest = (T*)nvshmem_calloc(2 * ROUNDS * COUNT, sizeof(T));
        source = (T*)nvshmem_malloc((COUNT + ROUNDS + 1) * sizeof(T));
        signals = (uint64_t*)nvshmem_calloc(2, sizeof(uint64_t));
        CHECK(dest && source && signals);
        std::vector<T> mine(COUNT + ROUNDS + 1);
        for (int i = 0; i < (int)mine.size(); ++i) mine[i] = value<T>(me, i);
        fill(source, mine);
        nvshmem_barrier_all();
    }
    // All of the rounds have come from the left neighbour.
    void compare(const char* what) {
        const int left = (me + pes - 1) % pes;
        std::vector<T> wanted(2 * ROUNDS * COUNT);
        for (int round = 0; round < ROUNDS; ++round)
            for (int i = 0; i < COUNT; ++i) {
                wanted[2 * round * COUNT + i] = value<T>(left, round + i);
                wanted[(2 * round + 1) * COUNT + i] = value<T>(left, round + 1 + i);
            }
        EXPECT(dest, wanted, what);
        EXPECT(signals, (std::vector<uint64_t>{5 + ROUNDS - 1, 2 * ROUNDS}), what);
    }
    ~Memory() {
        nvshmem_free(signals);
        nvshmem_free(source);
        nvshmem_free(dest);
    }
};

template <class Calls>
static void by_kernel(const char* what, int threads) {
    Memory<typename Calls::T> memory;
    tell<Calls><<<1, threads>>>(memory.dest, memory.source, memory.signals, (me + 1) % pes, (me + pes - 1) % pes);
    RAN();
    memory.compare(what);
}

template <class Calls>
static void on_stream(const char* what) {
    Memory<typename Calls::T> memory;
    const int right = (me + 1) % pes;
    for (int round = 0; round < ROUNDS; ++round) {
        typename Calls::T* here = memory.dest + 2 * round * COUNT;
        Calls::put(here, memory.source + round, COUNT, memory.signals, 5 + round, NVSHMEM_SIGNAL_SET, right);
        Calls::put_nbi(here + COUNT, memory.source + round + 1, COUNT, memory.signals + 1, 2, NVSHMEM_SIGNAL_ADD, right);
        nvshmemx_signal_wait_until_on_stream(memory.signals, NVSHMEM_CMP_GE, 5 + round, stream);
        nvshmemx_signal_wait_until_on_stream(memory.signals + 1, NVSHMEM_CMP_GE, 2 * round + 2, stream);
    }
    nvshmemx_quiet_on_stream(stream);
    CUDA(cudaStreamSynchronize(stream));
    memory.compare(what);
}

// Signals without data: each comparison is met, and a fetch gives this PE's own.
__global__ void signal_alone(uint64_t* signals, int right) {
    nvshmemx_signal_op(signals, 7, NVSHMEM_SIGNAL_SET, right);
    SEEN(nvshmem_signal_wait_until(signals, NVSHMEM_CMP_EQ, 7) == 7);
    nvshmemx_signal_op(signals + 1, 3, NVSHMEM_SIGNAL_ADD, right);
    SEEN(nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_NE, 0) == 3);
    SEEN(nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_LT, 4) == 3);
    SEEN(nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_LE, 3) == 3);
    SEEN(nvshmem_signal_fetch(signals) == 7 && nvshmem_signal_fetch(signals + 1) == 3);
    // The highest bit, too: signals have no sign.
    nvshmemx_signal_op(signals + 2, 1ull << 63, NVSHMEM_SIGNAL_SET, right);
    SEEN(nvshmem_signal_wait_until(signals + 2, NVSHMEM_CMP_GT, 5) == 1ull << 63);
    nvshmem_quiet();
}

static void alone() {
    static_assert(NVSHMEM_SIGNAL_SET == 9 && NVSHMEM_SIGNAL_ADD == 10, "values that programs store");
    static_assert(NVSHMEM_CMP_EQ == 0 && NVSHMEM_CMP_NE == 1 && NVSHMEM_CMP_GT == 2 && NVSHMEM_CMP_LE == 3 && NVSHMEM_CMP_LT == 4 &&
                      NVSHMEM_CMP_GE == 5,
                  "values that programs store");
    const int right = (me + 1) % pes;
    uint64_t* signals = (uint64_t*)nvshmem_calloc(4, sizeof(uint64_t));
    signal_alone<<<1, 1>>>(signals, right);
    RAN();
    nvshmem_barrier_all();
    nvshmemx_signal_op_on_stream(signals, 70, NVSHMEM_SIGNAL_SET, right, stream);
    nvshmemx_signal_op_on_stream(signals + 1, 30, NVSHMEM_SIGNAL_ADD, right, stream);
    nvshmemx_signal_wait_until_on_stream(signals, NVSHMEM_CMP_EQ, 70, stream);
    nvshmemx_signal_wait_until_on_stream(signals + 1, NVSHMEM_CMP_EQ, 33, stream);
    CUDA(cudaStreamSynchronize(stream));
    CHECK(nvshmem_signal_fetch(signals) == 70 && nvshmem_signal_fetch(signals + 1) == 33);
    nvshmem_barrier_all();
    nvshmem_free(signals);
}

int main(int count, char** words) {
    CHECK(count == 2);
    const char* scope = words[1];
    start();
    CUDA(cudaStreamCreate(&stream));
#define ALL(RUN) RMA_TYPES(RUN) SIZES(RUN) RUN(mem, )
#define THREAD(NAME, TYPE) by_kernel<thread_##NAME>("thread " #NAME, 1);
#define WARP(NAME, TYPE) by_kernel<warp_##NAME>("warp " #NAME, 32);
#define BLOCK(NAME, TYPE) by_kernel<block_##NAME>("block " #NAME, 48);
#define STREAM(NAME, TYPE) on_stream<stream_##NAME>("stream " #NAME);
    if (!strcmp(scope, "thread")) { ALL(THREAD) }
    else if (!strcmp(scope, "warp")) { ALL(WARP) WARP(6, ) }
    else if (!strcmp(scope, "block")) { ALL(BLOCK) BLOCK(6, ) }
    else if (!strcmp(scope, "stream")) { ALL(STREAM) }
    else if (!strcmp(scope, "alone")) alone();
    else FAIL("no scope %s", scope);
    nvshmem_finalize();
    return 0;
}
