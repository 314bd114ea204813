// Checks that end the program with file and line, values of every type, and the usual begin of a program.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

// This PE's number, for messages.
static int me = -1;
// The number of PEs.
static int pes = 0;

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        fprintf(stderr, "PE %d: %s:%d: ", me, __FILE__, __LINE__);                                                     \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
        fflush(NULL);                                                                                                  \
        _exit(1);                                                                                                      \
    } while (0)

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) FAIL("%s", #holds);                                                                              \
    } while (0)

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        const cudaError_t code_of_cuda = (call);                                                                       \
        if (code_of_cuda != cudaSuccess) FAIL("%s: %s", #call, cudaGetErrorString(code_of_cuda));                      \
    } while (0)

#if defined(__CUDACC__)
// The line of the first wrong thing in a kernel, and its thread.
static __device__ int wrong_line, wrong_thread;

// A check in a kernel. `RAN` reports it.
#define SEEN(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && atomicCAS(&wrong_line, 0, __LINE__) == 0) wrong_thread = blockIdx.x * 1000 + threadIdx.x;      \
    } while (0)

// Waits for the kernels of this source, and ends the program if one of them has seen something wrong.
static void ran(const char* file, int line) {
    const cudaError_t error = cudaDeviceSynchronize();
    int wrong = 0, thread = 0;
    if (error == cudaSuccess) {
        CUDA(cudaMemcpyFromSymbol(&wrong, wrong_line, sizeof(int)));
        CUDA(cudaMemcpyFromSymbol(&thread, wrong_thread, sizeof(int)));
    }
    if (error == cudaSuccess && !wrong) return;
    if (error == cudaSuccess) fprintf(stderr, "PE %d: %s:%d: wrong in block %d, thread %d\n", me, file, wrong, thread / 1000, thread % 1000);
    else fprintf(stderr, "PE %d: %s:%d: %s\n", me, file, line, cudaGetErrorString(error));
    fflush(NULL);
    _exit(1);
}
#define RAN() ran(__FILE__, __LINE__)
#endif

// The GPU of this PE, by its number on the host.
static void choose_device() {
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % devices));
}

// The usual begin.
static void start() {
    nvshmem_init();
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    choose_device();
}

// A value of any type, all of whose bytes count. Small enough for sums and products of a few PEs in floating-point types.
template <class T>
__host__ __device__ T value(int pe, int i) {
    const int number = (pe * 31 + i * 7) % 96 + 1;
    if constexpr (std::is_integral<T>::value) return (T)(0x0101010101010101ull * number);
    else return T((float)number);
}

// Sixteen bytes.
struct Wide {
    unsigned long long low, high;
};
template <>
__host__ __device__ inline Wide value<Wide>(int pe, int i) {
    return {value<unsigned long long>(pe, i), value<unsigned long long>(pe + 1, i)};
}

// Whether two values are the same to the bit.
template <class T>
__host__ __device__ bool same(const T& a, const T& b) {
    const unsigned char *left = (const unsigned char*)&a, *right = (const unsigned char*)&b;
    for (size_t i = 0; i < sizeof(T); ++i)
        if (left[i] != right[i]) return false;
    return true;
}

// GPU memory, filled with and read to the host's.
template <class T>
static void fill(T* gpu, const std::vector<T>& with) {
    CUDA(cudaMemcpy(gpu, with.data(), with.size() * sizeof(T), cudaMemcpyHostToDevice));
    // The copy may return before it is done. Only work of the default stream is behind it then.
    CUDA(cudaDeviceSynchronize());
}
template <class T>
static std::vector<T> read(const T* gpu, size_t n) {
    std::vector<T> values(n);
    CUDA(cudaMemcpy(values.data(), gpu, n * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}
// Compares GPU memory with what it should have.
template <class T>
static void expect(const T* gpu, const std::vector<T>& wanted, const char* what, const char* file, int line) {
    const std::vector<T> found = read(gpu, wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (same(found[i], wanted[i])) continue;
        unsigned long long left = 0, right = 0;
        memcpy(&left, &found[i], sizeof(T) < 8 ? sizeof(T) : 8);
        memcpy(&right, &wanted[i], sizeof(T) < 8 ? sizeof(T) : 8);
        fprintf(stderr, "PE %d: %s:%d: %s: element %zu is %#llx, and not %#llx\n", me, file, line, what, i, left, right);
        fflush(NULL);
        _exit(1);
    }
}
#define EXPECT(gpu, wanted, what) expect(gpu, wanted, what, __FILE__, __LINE__)

// Types by their names in calls. With FEW_TYPES there are some of each width and kind: the quick half of the tests.
#if defined(FEW_TYPES)
#define RMA_TYPES(X)                                                                                                   \
    X(schar, signed char) X(ushort, unsigned short) X(int, int) X(uint64, uint64_t) X(double, double) X(half, half)
#define REDUCE_TYPES(X)                                                                                                \
    X(schar, signed char) X(ushort, unsigned short) X(int, int) X(uint64, uint64_t) X(float, float) X(double, double)  \
    X(half, half) X(bfloat16, __nv_bfloat16)
#define BITWISE_REDUCE_TYPES(X) X(uchar, unsigned char) X(int16, int16_t) X(uint32, uint32_t) X(uint64, uint64_t)
#define ATOMIC_TYPES(X) X(int, int) X(ulong, unsigned long)
#define BITWISE_ATOMIC_TYPES(X) X(uint32, uint32_t) X(int64, int64_t)
#define WAIT_TYPES(X) X(short, short) X(ushort, unsigned short) X(int, int) X(ulonglong, unsigned long long)
#else
#define RMA_TYPES(X)                                                                                                   \
    X(char, char) X(schar, signed char) X(short, short) X(int, int) X(long, long) X(longlong, long long)               \
    X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long)                    \
    X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t)             \
    X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)                      \
    X(ptrdiff, ptrdiff_t) X(float, float) X(double, double) X(half, half) X(bfloat16, __nv_bfloat16)
// Those of sums, products, minima and maxima.
#define REDUCE_TYPES(X)                                                                                                \
    X(char, char) X(schar, signed char) X(short, short) X(int, int) X(long, long) X(longlong, long long)               \
    X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long)                    \
    X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t)             \
    X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)                      \
    X(float, float) X(double, double) X(half, half) X(bfloat16, __nv_bfloat16)
// Those of and, or and exclusive or in reductions.
#define BITWISE_REDUCE_TYPES(X)                                                                                        \
    X(uchar, unsigned char) X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long)                    \
    X(ulonglong, unsigned long long) X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t)             \
    X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t)
// Those of atomic arithmetic.
#define ATOMIC_TYPES(X)                                                                                                \
    X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned int) X(ulong, unsigned long)                     \
    X(ulonglong, unsigned long long) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)       \
    X(size, size_t) X(ptrdiff, ptrdiff_t)
#define BITWISE_ATOMIC_TYPES(X)                                                                                        \
    X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t)                   \
    X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)
// Those of waits and tests.
#define WAIT_TYPES(X)                                                                                                  \
    X(short, short) X(int, int) X(long, long) X(longlong, long long) X(ushort, unsigned short) X(uint, unsigned int)   \
    X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t)   \
    X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#endif
// Sizes in bits, with a type of each.
#define SIZES(X) X(8, unsigned char) X(16, unsigned short) X(32, unsigned int) X(64, unsigned long long) X(128, Wide)
