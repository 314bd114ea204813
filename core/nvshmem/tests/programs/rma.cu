// Puts and gets: of each type and size, contiguous and strided, blocking and not, by a thread, a warp, a block, on a stream and
// by the host.
//   rma SCOPE, where SCOPE is thread, warp, block, stream or host
#include "check.h"

// The calls of a type in a scope have the same names in each. Those on a stream use this one.
static cudaStream_t stream;

#define COPIES(WHERE, PUT, GET, END, LAST)                                                                             \
    static WHERE void put(T* dest, const T* source, size_t n, int pe) { PUT##END(dest, source, n, pe LAST); }          \
    static WHERE void get(T* dest, const T* source, size_t n, int pe) { GET##END(dest, source, n, pe LAST); }          \
    static WHERE void put_nbi(T* dest, const T* source, size_t n, int pe) { PUT##_nbi##END(dest, source, n, pe LAST); } \
    static WHERE void get_nbi(T* dest, const T* source, size_t n, int pe) { GET##_nbi##END(dest, source, n, pe LAST); }
#define STRIDES(WHERE, PUT, GET, END, LAST)                                                                            \
    static constexpr bool strided = true;                                                                              \
    static WHERE void iput(T* dest, const T* source, ptrdiff_t to, ptrdiff_t from, size_t n, int pe) {                 \
        PUT##END(dest, source, to, from, n, pe LAST);                                                                  \
    }                                                                                                                  \
    static WHERE void iget(T* dest, const T* source, ptrdiff_t to, ptrdiff_t from, size_t n, int pe) {                 \
        GET##END(dest, source, to, from, n, pe LAST);                                                                  \
    }
#define SINGLES(WHERE, NAME, END, LAST)                                                                                \
    static constexpr bool single = true;                                                                               \
    static WHERE void p(T* dest, T value, int pe) { NAME##_p##END(dest, value, pe LAST); }                             \
    static WHERE T g(const T* source, int pe) { return NAME##_g##END(source, pe LAST); }

#define COMMA_STREAM , stream
#define TYPED(NAME, TYPE)                                                                                              \
    struct thread_##NAME {                                                                                             \
        using T = TYPE;                                                                                                \
        COPIES(__host__ __device__, nvshmem_##NAME##_put, nvshmem_##NAME##_get, , )                                    \
        STRIDES(__host__ __device__, nvshmem_##NAME##_iput, nvshmem_##NAME##_iget, , )                                 \
        SINGLES(__host__ __device__, nvshmem_##NAME, , )                                                               \
    };                                                                                                                 \
    struct warp_##NAME {                                                                                               \
        using T = TYPE;                                                                                                \
        static constexpr bool single = false;                                                                          \
        COPIES(__device__, nvshmemx_##NAME##_put, nvshmemx_##NAME##_get, _warp, )                                      \
        STRIDES(__device__, nvshmemx_##NAME##_iput, nvshmemx_##NAME##_iget, _warp, )                                   \
    };                                                                                                                 \
    struct block_##NAME {                                                                                              \
        using T = TYPE;                                                                                                \
        static constexpr bool single = false;                                                                          \
        COPIES(__device__, nvshmemx_##NAME##_put, nvshmemx_##NAME##_get, _block, )                                     \
        STRIDES(__device__, nvshmemx_##NAME##_iput, nvshmemx_##NAME##_iget, _block, )                                  \
    };                                                                                                                 \
    struct stream_##NAME {                                                                                             \
        using T = TYPE;                                                                                                \
        COPIES(, nvshmemx_##NAME##_put, nvshmemx_##NAME##_get, _on_stream, COMMA_STREAM)                               \
        STRIDES(, nvshmemx_##NAME##_iput, nvshmemx_##NAME##_iget, _on_stream, COMMA_STREAM)                            \
        SINGLES(, nvshmemx_##NAME, _on_stream, COMMA_STREAM)                                                           \
    };
#define SIZED(BITS, TYPE)                                                                                              \
    struct thread_##BITS {                                                                                             \
        using T = TYPE;                                                                                                \
        static constexpr bool single = false;                                                                          \
        COPIES(__host__ __device__, nvshmem_put##BITS, nvshmem_get##BITS, , )                                          \
        STRIDES(__host__ __device__, nvshmem_iput##BITS, nvshmem_iget##BITS, , )                                       \
    };                                                                                                                 \
    struct warp_##BITS {                                                                                               \
        using T = TYPE;                                                                                                \
        static constexpr bool single = false;                                                                          \
        COPIES(__device__, nvshmemx_put##BITS, nvshmemx_get##BITS, _warp, )                                            \
        STRIDES(__device__, nvshmemx_iput##BITS, nvshmemx_iget##BITS, _warp, )                                         \
    };                                                                                                                 \
    struct block_##BITS {                                                                                              \
        using T = TYPE;                                                                                                \
        static constexpr bool single = false;                                                                          \
        COPIES(__device__, nvshmemx_put##BITS, nvshmemx_get##BITS, _block, )                                           \
        STRIDES(__device__, nvshmemx_iput##BITS, nvshmemx_iget##BITS, _block, )                                        \
    };                                                                                                                 \
    struct stream_##BITS {                                                                                             \
        using T = TYPE;                                                                                                \
        static constexpr bool single = false;                                                                          \
        COPIES(, nvshmemx_put##BITS, nvshmemx_get##BITS, _on_stream, COMMA_STREAM)                                     \
        STRIDES(, nvshmemx_iput##BITS, nvshmemx_iget##BITS, _on_stream, COMMA_STREAM)                                  \
    };
RMA_TYPES(TYPED)
SIZES(SIZED)
// Those of bytes have no type in their names.
struct Bytes {
    using T = signed char;
    static constexpr bool single = false, strided = false;
};
struct thread_mem : Bytes { COPIES(__host__ __device__, nvshmem_putmem, nvshmem_getmem, , ) };
struct warp_mem : Bytes { COPIES(__device__, nvshmemx_putmem, nvshmemx_getmem, _warp, ) };
struct block_mem : Bytes { COPIES(__device__, nvshmemx_putmem, nvshmemx_getmem, _block, ) };
struct stream_mem : Bytes { COPIES(, nvshmemx_putmem, nvshmemx_getmem, _on_stream, COMMA_STREAM) };

// Each call has a part of the destination.
enum { PART = 32, PUT = 0, PUT_NBI = PART, GET = 2 * PART, GET_NBI = 3 * PART, IPUT = 4 * PART, IGET = 5 * PART, P = 6 * PART, G = 7 * PART };
enum { ROOM = 8 * PART, COUNT = 19, STRIDED = 6 };

// All calls of a type in a scope, of the host or of a kernel as the scope is. Puts go to the right neighbour, and gets come from
// it.
#ifdef __NVCC__
#pragma nv_exec_check_disable
#endif
template <class Calls>
__host__ __device__ void copy(typename Calls::T* dest, const typename Calls::T* source, int right) {
    Calls::put(dest + PUT + 1, source + 1, COUNT, right);
    Calls::put_nbi(dest + PUT_NBI, source + 2, COUNT, right);
    Calls::get(dest + GET + 3, source + 1, COUNT, right);
    Calls::get_nbi(dest + GET_NBI, source + 5, COUNT, right);
    if constexpr (Calls::strided) {
        Calls::iput(dest + IPUT, source, 3, 2, STRIDED, right);
        Calls::iget(dest + IGET + 1, source + 1, 2, 4, STRIDED, right);
    }
}

// Single values belong to a thread alone.
template <class Calls>
__global__ void copies(typename Calls::T* dest, const typename Calls::T* source, int right) {
    copy<Calls>(dest, source, right);
    if constexpr (Calls::single) {
        Calls::p(dest + P, source[9], right);
        dest[G] = Calls::g(source + 11, right);
    }
    nvshmem_quiet();
}

// Runs `calls`, and compares the destination with what it should have then.
template <class T, class Run>
static void compare(bool strided, bool single, const char* what, Run run) {
    static void* memory = nvshmem_malloc((ROOM + PART) * sizeof(Wide));
    CHECK(memory);
    T *dest = (T*)memory, *source = dest + ROOM;
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    std::vector<T> wanted(ROOM), mine(PART);
    for (int i = 0; i < ROOM; ++i) wanted[i] = value<T>(50, i);
    for (int i = 0; i < PART; ++i) mine[i] = value<T>(me, i);
    fill(dest, wanted);
    fill(source, mine);
    nvshmem_barrier_all();
    run(dest, source, right, mine);
    nvshmem_barrier_all();
    for (int i = 0; i < COUNT; ++i) {
        wanted[PUT + 1 + i] = value<T>(left, 1 + i);
        wanted[PUT_NBI + i] = value<T>(left, 2 + i);
        wanted[GET + 3 + i] = value<T>(right, 1 + i);
        wanted[GET_NBI + i] = value<T>(right, 5 + i);
    }
    if (strided)
        for (int i = 0; i < STRIDED; ++i) {
            wanted[IPUT + 3 * i] = value<T>(left, 2 * i);
            wanted[IGET + 1 + 2 * i] = value<T>(right, 1 + 4 * i);
        }
    if (single) {
        wanted[P] = value<T>(left, 9);
        wanted[G] = value<T>(right, 11);
    }
    EXPECT(dest, wanted, what);
}

template <class Calls>
static void by_kernel(const char* what, int threads) {
    using T = typename Calls::T;
    compare<T>(Calls::strided, Calls::single, what, [=](T* dest, const T* source, int right, const std::vector<T>&) {
        copies<Calls><<<1, threads>>>(dest, source, right);
        RAN();
    });
}

// By the host, or on a stream, which the host waits for.
template <class Calls>
static void by_host(const char* what) {
    using T = typename Calls::T;
    compare<T>(Calls::strided, Calls::single, what, [=](T* dest, const T* source, int right, const std::vector<T>& mine) {
        copy<Calls>(dest, source, right);
        if constexpr (Calls::single) {
            Calls::p(dest + P, mine[9], right);
            const T got = Calls::g(source + 11, right);
            CUDA(cudaStreamSynchronize(stream));
            CUDA(cudaMemcpy(dest + G, &got, sizeof(T), cudaMemcpyHostToDevice));
        }
        nvshmemx_quiet_on_stream(stream);
        CUDA(cudaStreamSynchronize(stream));
        nvshmem_quiet();
    });
}

int main(int count, char** words) {
    CHECK(count == 2);
    const char* scope = words[1];
    start();
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
#define ALL(RUN) RMA_TYPES(RUN) SIZES(RUN) RUN(mem, )
#define THREAD(NAME, TYPE) by_kernel<thread_##NAME>("thread " #NAME, 1);
#define WARP(NAME, TYPE) by_kernel<warp_##NAME>("warp " #NAME, 32);
#define BLOCK(NAME, TYPE) by_kernel<block_##NAME>("block " #NAME, 48);
#define STREAM(NAME, TYPE) by_host<stream_##NAME>("stream " #NAME);
#define HOST(NAME, TYPE) by_host<thread_##NAME>("host " #NAME);
    if (!strcmp(scope, "thread")) { ALL(THREAD) }
    else if (!strcmp(scope, "warp")) { ALL(WARP) }
    else if (!strcmp(scope, "block")) { ALL(BLOCK) }
    else if (!strcmp(scope, "stream")) { ALL(STREAM) }
    else if (!strcmp(scope, "host")) { ALL(HOST) }
    else FAIL("no scope %s", scope);
    nvshmem_finalize();
    return 0;
}
