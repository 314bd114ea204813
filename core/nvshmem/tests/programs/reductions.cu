// Reductions and reducescatters: of each type and operation, by a thread, a warp, a block, on a stream and by the host.
//   reductions SCOPE, where SCOPE is thread, warp, block, stream or host
#include "check.h"

static cudaStream_t stream;

#define CALL(WHERE, NAME, OP, END, LAST)                                                                               \
    static WHERE int OP##_all(nvshmem_team_t team, T* dest, const T* source, size_t n) {                                     \
        return NAME##OP##_reduce##END(team, dest, source, n LAST());                                                     \
    }                                                                                                                  \
    static WHERE int OP##_scatter(nvshmem_team_t team, T* dest, const T* source, size_t n) {                           \
        return NAME##OP##_reducescatter##END(team, dest, source, n LAST());                                              \
    }
#define ARITHMETIC(WHERE, NAME, END, LAST)                                                                             \
    CALL(WHERE, NAME, sum, END, LAST) CALL(WHERE, NAME, prod, END, LAST)                                               \
    CALL(WHERE, NAME, min, END, LAST) CALL(WHERE, NAME, max, END, LAST)
#define BITWISE(WHERE, NAME, END, LAST)                                                                                \
    CALL(WHERE, NAME, and, END, LAST) CALL(WHERE, NAME, or, END, LAST) CALL(WHERE, NAME, xor, END, LAST)
// The last argument of calls.
#define NOTHING()
#define COMMA_STREAM() , stream
#define SCOPES(KIND, CALLS, NAME, TYPE)                                                                                \
    struct thread_##KIND##_##NAME { using T = TYPE; CALLS(__host__ __device__, nvshmem_##NAME##_, , NOTHING) };               \
    struct warp_##KIND##_##NAME { using T = TYPE; CALLS(__device__, nvshmemx_##NAME##_, _warp, NOTHING) };                    \
    struct block_##KIND##_##NAME { using T = TYPE; CALLS(__device__, nvshmemx_##NAME##_, _block, NOTHING) };                  \
    struct stream_##KIND##_##NAME { using T = TYPE; CALLS(, nvshmemx_##NAME##_, _on_stream, COMMA_STREAM) };
#define ARITHMETIC_SCOPES(NAME, TYPE) SCOPES(arithmetic, ARITHMETIC, NAME, TYPE)
#define BITWISE_SCOPES(NAME, TYPE) SCOPES(bitwise, BITWISE, NAME, TYPE)
REDUCE_TYPES(ARITHMETIC_SCOPES)
BITWISE_REDUCE_TYPES(BITWISE_SCOPES)

enum { COUNT = 7, MOST_PES = 4 };

// Each operation, and its scatter, in a part of the destination of its own.
template <class Calls>
struct Arithmetic {
    using T = typename Calls::T;
    enum { CALLS = 4 };
#ifdef __NVCC__
#pragma nv_exec_check_disable
#endif
    static __host__ __device__ int run(T* dest, const T* source) {
        const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;
        return Calls::sum_all(team, dest, source, COUNT) | Calls::prod_all(team, dest + COUNT, source, COUNT) |
               Calls::min_all(team, dest + 2 * COUNT, source, COUNT) | Calls::max_all(team, dest + 3 * COUNT, source, COUNT) |
               Calls::sum_scatter(team, dest + 4 * COUNT, source, COUNT) | Calls::prod_scatter(team, dest + 5 * COUNT, source, COUNT) |
               Calls::min_scatter(team, dest + 6 * COUNT, source, COUNT) | Calls::max_scatter(team, dest + 7 * COUNT, source, COUNT);
    }
    static double fold(int op, double a, double b) { return op == 0 ? a + b : op == 1 ? a * b : op == 2 ? (a < b ? a : b) : (a > b ? a : b); }
};
template <class Calls>
struct Bitwise {
    using T = typename Calls::T;
    enum { CALLS = 3 };
#ifdef __NVCC__
#pragma nv_exec_check_disable
#endif
    static __host__ __device__ int run(T* dest, const T* source) {
        const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;
        return Calls::and_all(team, dest, source, COUNT) | Calls::or_all(team, dest + COUNT, source, COUNT) |
               Calls::xor_all(team, dest + 2 * COUNT, source, COUNT) | Calls::and_scatter(team, dest + 3 * COUNT, source, COUNT) |
               Calls::or_scatter(team, dest + 4 * COUNT, source, COUNT) | Calls::xor_scatter(team, dest + 5 * COUNT, source, COUNT);
    }
    static double fold(int op, double a, double b) {
        const int x = (int)a, y = (int)b;
        return op == 0 ? (x & y) : op == 1 ? (x | y) : (x ^ y);
    }
};

// Numbers from 1 to 4, so that the products of four PEs are exact in every type but signed ones of 8 bits, which wrap.
static int number(int pe, int i) { return (pe * 3 + i) % 4 + 1; }

// A number in a type, with the wrapping of integers.
template <class T>
static T convert(double from) {
    if constexpr (std::is_integral<T>::value) return (T)(long long)from;
    else return T((float)from);
}

template <class Set>
__global__ void reduce(typename Set::T* dest, const typename Set::T* source) {
    SEEN(Set::run(dest, source) == 0);
}

template <class Set, class Run>
static void compare(const char* what, Run run) {
    using T = typename Set::T;
    static T* dest = (T*)nvshmem_malloc(8 * COUNT * sizeof(T));
    static T* source = (T*)nvshmem_malloc(MOST_PES * COUNT * sizeof(T));
    std::vector<T> mine(pes * COUNT), wanted;
    for (int i = 0; i < pes * COUNT; ++i) mine[i] = convert<T>(number(me, i));
    fill(source, mine);
    nvshmem_barrier_all();
    run(dest, source);
    nvshmem_barrier_all();
    for (int scatter = 0; scatter < 2; ++scatter)
        for (int op = 0; op < Set::CALLS; ++op)
            for (int i = 0; i < COUNT; ++i) {
                const int place = scatter ? me * COUNT + i : i;
                double folded = number(0, place);
                for (int pe = 1; pe < pes; ++pe) folded = Set::fold(op, folded, number(pe, place));
                wanted.push_back(convert<T>(folded));
            }
    EXPECT(dest, wanted, what);
}

template <class Set>
static void by_kernel(const char* what, int threads) {
    compare<Set>(what, [=](typename Set::T* dest, const typename Set::T* source) {
        reduce<Set><<<1, threads>>>(dest, source);
        RAN();
    });
}

template <class Set>
static void by_host(const char* what) {
    compare<Set>(what, [=](typename Set::T* dest, const typename Set::T* source) {
        CHECK(Set::run(dest, source) == 0);
        CUDA(cudaStreamSynchronize(stream));
    });
}

int main(int count, char** words) {
    CHECK(count == 2);
    const char* scope = words[1];
    start();
    CHECK(pes <= MOST_PES);
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
#define THREAD(NAME, TYPE) by_kernel<Arithmetic<thread_arithmetic_##NAME>>("thread " #NAME, 1);
#define WARP(NAME, TYPE) by_kernel<Arithmetic<warp_arithmetic_##NAME>>("warp " #NAME, 32);
#define BLOCK(NAME, TYPE) by_kernel<Arithmetic<block_arithmetic_##NAME>>("block " #NAME, 40);
#define STREAM(NAME, TYPE) by_host<Arithmetic<stream_arithmetic_##NAME>>("stream " #NAME);
#define HOST(NAME, TYPE) by_host<Arithmetic<thread_arithmetic_##NAME>>("host " #NAME);
#define THREAD_BITS(NAME, TYPE) by_kernel<Bitwise<thread_bitwise_##NAME>>("thread bits " #NAME, 1);
#define WARP_BITS(NAME, TYPE) by_kernel<Bitwise<warp_bitwise_##NAME>>("warp bits " #NAME, 32);
#define BLOCK_BITS(NAME, TYPE) by_kernel<Bitwise<block_bitwise_##NAME>>("block bits " #NAME, 40);
#define STREAM_BITS(NAME, TYPE) by_host<Bitwise<stream_bitwise_##NAME>>("stream bits " #NAME);
#define HOST_BITS(NAME, TYPE) by_host<Bitwise<thread_bitwise_##NAME>>("host bits " #NAME);
    if (!strcmp(scope, "thread")) { REDUCE_TYPES(THREAD) BITWISE_REDUCE_TYPES(THREAD_BITS) }
    else if (!strcmp(scope, "warp")) { REDUCE_TYPES(WARP) BITWISE_REDUCE_TYPES(WARP_BITS) }
    else if (!strcmp(scope, "block")) { REDUCE_TYPES(BLOCK) BITWISE_REDUCE_TYPES(BLOCK_BITS) }
    else if (!strcmp(scope, "stream")) { REDUCE_TYPES(STREAM) BITWISE_REDUCE_TYPES(STREAM_BITS) }
    else if (!strcmp(scope, "host")) { REDUCE_TYPES(HOST) BITWISE_REDUCE_TYPES(HOST_BITS) }
    else FAIL("no scope %s", scope);
    nvshmem_finalize();
    return 0;
}
