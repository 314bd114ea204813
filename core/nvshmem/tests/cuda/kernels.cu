// Calls of kernels by NVSHMEM's names, each in the scopes that it has: what they give, on 1 to 8 PEs. Prints the first lines that fail.
#include <cstdio>
#include <cstdlib>
#include <nvshmem.h>
#include <nvshmemx.h>

#define CUDA(call)                                                                                                    \
    do {                                                                                                              \
        const cudaError_t error = call;                                                                               \
        if (error != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error));                            \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

// Faults of a kernel, of which the first line is kept.
struct Faults {
    int count;
    int line;
};
#define CHECK(holds)                                                                                                  \
    do {                                                                                                              \
        if (!(holds) && atomicAdd(&faults->count, 1) == 0) faults->line = __LINE__;                                   \
    } while (0)

__device__ static bool is_first() { return threadIdx.x == 0; }

// `room` has 64 places for each PE.
template <class T>
struct Named;
#define NAMED(T, name)                                                                                                \
    template <>                                                                                                       \
    struct Named<T> {                                                                                                 \
        __device__ static void put(T *d, const T *s, size_t n, int pe) { nvshmem_##name##_put(d, s, n, pe); }          \
        __device__ static void put_warp(T *d, const T *s, size_t n, int pe) { nvshmemx_##name##_put_warp(d, s, n, pe); } \
        __device__ static void put_block(T *d, const T *s, size_t n, int pe) { nvshmemx_##name##_put_nbi_block(d, s, n, pe); } \
        __device__ static void get_block(T *d, const T *s, size_t n, int pe) { nvshmemx_##name##_get_block(d, s, n, pe); } \
        __device__ static void iput(T *d, const T *s, ptrdiff_t a, ptrdiff_t b, size_t n, int pe) { nvshmemx_##name##_iput_warp(d, s, a, b, n, pe); } \
        __device__ static void iget(T *d, const T *s, ptrdiff_t a, ptrdiff_t b, size_t n, int pe) { nvshmem_##name##_iget(d, s, a, b, n, pe); } \
        __device__ static void qp_put(T *d, const T *s, size_t n, int pe) { nvshmemx_qp_##name##_put_warp(d, s, n, pe, NVSHMEMX_QP_ANY); } \
        __device__ static void p(T *d, T v, int pe) { nvshmem_##name##_p(d, v, pe); }                                  \
        __device__ static T g(const T *s, int pe) { return nvshmem_##name##_g(s, pe); }                               \
        __device__ static void signal(T *d, const T *s, size_t n, uint64_t *sig, int pe) { nvshmemx_##name##_put_signal_block(d, s, n, sig, 1, NVSHMEM_SIGNAL_ADD, pe); } \
        __device__ static int sum(T *d, const T *s, size_t n) { return nvshmemx_##name##_sum_reduce_block(NVSHMEM_TEAM_WORLD, d, s, n); } \
        __device__ static int prod(T *d, const T *s, size_t n) { return nvshmemx_##name##_prod_reduce_warp(NVSHMEM_TEAM_WORLD, d, s, n); } \
        __device__ static int max(T *d, const T *s, size_t n) { return nvshmem_##name##_max_reduce(NVSHMEM_TEAM_WORLD, d, s, n); } \
        __device__ static int min(T *d, const T *s, size_t n) { return nvshmemx_##name##_min_reducescatter_block(NVSHMEM_TEAM_WORLD, d, s, n); } \
        __device__ static int fcollect(T *d, const T *s, size_t n) { return nvshmemx_##name##_fcollect_warp(NVSHMEM_TEAM_WORLD, d, s, n); } \
        __device__ static int broadcast(T *d, const T *s, size_t n, int root) { return nvshmemx_##name##_broadcast_block(NVSHMEM_TEAM_WORLD, d, s, n, root); } \
        __device__ static int alltoall(T *d, const T *s, size_t n) { return nvshmemx_##name##_alltoall_block(NVSHMEM_TEAM_WORLD, d, s, n); } \
    };
NAMED(float, float)
NAMED(double, double)
NAMED(half, half)
NAMED(__nv_bfloat16, bfloat16)
NAMED(signed char, schar)
NAMED(unsigned short, ushort)
NAMED(int, int)
NAMED(long, long)
NAMED(unsigned long long, ulonglong)

template <class T>
__global__ void of_type(T *room, T *mine, uint64_t *signal, Faults *faults) {
    typedef Named<T> N;
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    if (is_first())
        for (int i = 0; i < 64; ++i) mine[i] = T(float(me + i % 4 + 1));
    nvshmemx_barrier_all_block();
    // Puts by a thread, a warp, a block, and a queue pair; strided; single values.
    if (is_first()) N::put(room, mine, 4, right);
    if (threadIdx.x < 32) N::put_warp(room + 4, mine + 4, 4, right);
    N::put_block(room + 8, mine + 8, 9, right);
    if (threadIdx.x < 32) N::qp_put(room + 17, mine + 1, 3, right);
    if (threadIdx.x < 32) N::iput(room + 20, mine, 2, 4, 3, right);
    if (is_first()) N::p(room + 30, T(float(7 + me)), right);
    if (is_first()) nvshmem_quiet();
    nvshmemx_barrier_all_block();
    if (is_first()) {
        for (int i = 0; i < 17; ++i) CHECK(float(room[i]) == float(left + i % 4 + 1));
        for (int i = 0; i < 3; ++i) CHECK(float(room[17 + i]) == float(left + i + 2));
        for (int i = 0; i < 3; ++i) CHECK(float(room[20 + 2 * i]) == float(left + 1));
        CHECK(float(room[30]) == float(7 + left));
        CHECK(float(N::g(room + 30, right)) == float(7 + me));
        N::iget(room + 40, mine, 1, 1, 4, right);
        for (int i = 0; i < 4; ++i) CHECK(float(room[40 + i]) == float(right + i + 1));
    }
    __syncthreads();
    N::get_block(room + 50, mine, 5, right);
    for (int i = 0; i < 5; ++i) CHECK(float(room[50 + i]) == float(right + i % 4 + 1));
    nvshmemx_barrier_all_block();
    N::signal(room, mine + 2, 2, signal, right);
    CHECK(nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1) == 1);
    CHECK(float(room[0]) == float(left + 3) && float(room[1]) == float(left + 4));
    nvshmemx_barrier_all_block();
    if (is_first()) nvshmemx_signal_counted_reset(signal);
    // Collective calls.
    float sum = 0, prod = 1;
    for (int i = 0; i < n; ++i) sum += i + 1, prod *= i + 1;
    CHECK(N::sum(room, mine, 5) == 0 && float(room[0]) == sum && float(room[1]) == sum + n && float(room[4]) == sum);
    nvshmemx_barrier_all_block();
    if (threadIdx.x < 32) CHECK(N::prod(room, mine, 1) == 0 && float(room[0]) == prod);
    nvshmemx_barrier_all_block();
    if (is_first()) CHECK(N::max(room, mine, 2) == 0 && float(room[0]) == n && float(room[1]) == n + 1);
    nvshmemx_barrier_all_block();
    CHECK(N::min(room, mine, 1) == 0 && float(room[0]) == me % 4 + 1);
    nvshmemx_barrier_all_block();
    if (threadIdx.x < 32) CHECK(N::fcollect(room, mine + 1, 2) == 0);
    nvshmemx_barrier_all_block();
    for (int i = 0; i < n; ++i) CHECK(float(room[2 * i]) == i + 2 && float(room[2 * i + 1]) == i + 3);
    nvshmemx_barrier_all_block();
    CHECK(N::broadcast(room, mine + 3, 1, n - 1) == 0 && float(room[0]) == n - 1 + 4);
    nvshmemx_barrier_all_block();
    CHECK(N::alltoall(room, mine, 1) == 0);
    for (int i = 0; i < n; ++i) CHECK(float(room[i]) == i + me % 4 + 1);
    nvshmemx_barrier_all_block();
}

// A sum of 16-bit numbers is rounded once: 1 and many quarters of a unit in its last place.
__global__ void rounded_once(half *room, half *mine, Faults *faults) {
    const int n = nvshmem_n_pes();
    if (is_first()) *mine = half(nvshmem_my_pe() == 0 ? 1.0f : 1.0f / 4096);
    nvshmemx_barrier_all_block();
    nvshmemx_half_sum_reduce_block(NVSHMEM_TEAM_WORLD, room, mine, 1);
    CHECK(float(*room) == float(half(1.0f + (n - 1) / 4096.0f)));
    nvshmemx_barrier_all_block();
}

// Every thread of every PE adds to words of PE 0, of each kind.
__global__ void atomics(float *f, double *d, half *h, unsigned long long *u, int *i, Faults *faults) {
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe(), threads = blockDim.x, last = n - 1;
    if (is_first()) *f = 0, *d = 0, h[0] = half(0.0f), h[1] = half(5.0f), *u = 0, *i = -1;
    nvshmemx_barrier_all_block();
    nvshmemx_float_atomic_add(f, 0.5f, 0);
    nvshmemx_double_atomic_fetch_add(d, 0.25, last);
    nvshmemx_half_atomic_add(h, half(1.0f), 0);
    nvshmem_uint64_atomic_inc((uint64_t *)u, 0);
    nvshmem_ulonglong_atomic_add(u, 2, 0);
    nvshmem_int_atomic_fetch_add(i, 1, 0);
    nvshmem_quiet();
    nvshmemx_barrier_all_block();
    if (is_first()) {
        CHECK(nvshmem_float_atomic_fetch(f, 0) == 0.5f * n * threads);
        CHECK(nvshmem_double_atomic_fetch(d, last) == 0.25 * n * threads);
        CHECK(float(nvshmem_half_atomic_fetch(h, 0)) == n * threads && float(nvshmem_half_atomic_fetch(h + 1, 0)) == 5);
        CHECK(nvshmem_ulonglong_atomic_fetch(u, 0) == 3ull * n * threads);
        CHECK(nvshmem_int_atomic_fetch(i, 0) == n * threads - 1);
    }
    nvshmemx_barrier_all_block();
    if (is_first() && me == last) {
        CHECK(float(nvshmem_half_atomic_swap(h + 1, half(6.0f), 0)) == 5);
        nvshmem_half_atomic_set(h, half(2.0f), 0);
        CHECK(float(nvshmemx_half_atomic_fetch_add(h, half(0.5f), 0)) == 2);
        CHECK(float(nvshmem_half_atomic_fetch(h, 0)) == 2.5f && float(nvshmem_half_atomic_fetch(h + 1, 0)) == 6);
        nvshmem_int_atomic_set(i, 12, 0);
        CHECK(nvshmem_int_atomic_compare_swap(i, 11, 5, 0) == 12 && nvshmem_int_atomic_compare_swap(i, 12, 5, 0) == 12);
        CHECK(nvshmem_int_atomic_swap(i, -3, 0) == 5 && nvshmem_int_atomic_fetch_inc(i, 0) == -3);
        CHECK(nvshmem_uint32_atomic_fetch_and((uint32_t *)i, 0xfffffff0u, 0) == (uint32_t)-2);
        CHECK(nvshmem_uint_atomic_fetch_or((unsigned *)i, 5, 0) == (unsigned)-16);
        CHECK(nvshmem_int32_atomic_fetch_xor(i, -1, 0) == -11 && nvshmem_int_atomic_fetch(i, 0) == 10);
    }
    nvshmemx_barrier_all_block();
}

// Waits and tests of each comparison on words of 16, 32 and 64 bits, and on several.
__global__ void waits(short *s, unsigned *u, long *l, int *status, Faults *faults) {
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe(), right = (me + 1) % n;
    if (is_first()) {
        for (int i = 0; i < 4; ++i) s[i] = 0, u[i] = 0, l[i] = 0, status[i] = i == 1;
    }
    nvshmemx_barrier_all_block();
    if (is_first()) {
        CHECK(!nvshmem_short_test(s, NVSHMEM_CMP_GT, 0) && nvshmem_short_test(s, NVSHMEM_CMP_LE, 0));
        nvshmem_short_p(s, -5, right);
        nvshmem_uint_p(u, 4000000000u, right);
        for (int i = 0; i < 4; ++i) nvshmem_long_p(l + i, 10 + i, right);
        nvshmem_short_wait_until(s, NVSHMEM_CMP_NE, 0);
        CHECK(nvshmem_short_test(s, NVSHMEM_CMP_LT, 0) && nvshmem_short_test(s, NVSHMEM_CMP_LE, -5));
        CHECK(!nvshmem_short_test(s, NVSHMEM_CMP_GE, 0) && nvshmem_short_test(s, NVSHMEM_CMP_GE, -5));
        nvshmem_uint_wait_until(u, NVSHMEM_CMP_GT, 5);
        nvshmem_uint32_wait_until((uint32_t *)u, NVSHMEM_CMP_GE, 4000000000u);
        nvshmem_long_wait_until_all(l, 4, status, NVSHMEM_CMP_GE, 10);
        long each[4] = {10, 99, 12, 13};
        nvshmem_long_wait_until_all_vector(l, 4, status, NVSHMEM_CMP_EQ, each);
        const size_t any = nvshmem_long_wait_until_any(l, 4, status, NVSHMEM_CMP_LE, 12);
        CHECK(any == 0 || any == 2);
        size_t indices[4];
        CHECK(nvshmem_long_wait_until_some(l, 4, indices, status, NVSHMEM_CMP_GT, 11) == 2 && indices[0] == 2 && indices[1] == 3);
        CHECK(nvshmem_long_test_any(l, 4, NULL, NVSHMEM_CMP_LT, 10) == (size_t)-1);
        CHECK(nvshmem_long_test_all(l, 4, NULL, NVSHMEM_CMP_LT, 14) == 1);
        CHECK(nvshmem_long_test_some(l, 4, indices, NULL, NVSHMEM_CMP_EQ, 11) == 1 && indices[0] == 1);
        int out[2] = {1, 1};
        CHECK(nvshmem_long_wait_until_any(l, 2, out, NVSHMEM_CMP_EQ, 0) == (size_t)-1 && nvshmem_long_test_all(l, 2, out, NVSHMEM_CMP_EQ, 0));
    }
    nvshmemx_barrier_all_block();
}

// The greatest value, with the PE that has it; and meetings in all scopes.
__global__ void places(double2 *room, double2 *mine, Faults *faults) {
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe();
    if (is_first()) mine[0] = double2{double(me % 2), double(me)}, mine[1] = double2{3, double(n - me)};
    nvshmemx_barrier_all_block();
    nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, room, mine, 2);
    CHECK(room[0].x == (n > 1) && room[0].y == (n > 1) && room[1].x == 3 && room[1].y == 1);
    nvshmemx_barrier_block(NVSHMEM_TEAM_WORLD);
    if (threadIdx.x < 32) nvshmemx_sync_all_warp();
    __syncthreads();
    CHECK(nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD) == 0);
    nvshmemx_flush_block();
    nvshmemx_qp_quiet_block(NVSHMEMX_PE_ALL, NULL, 0);
    if (threadIdx.x < 32) nvshmemx_qp_fence_warp(NVSHMEMX_PE_ALL, NULL, 0);
    nvshmemx_team_sync_block(NVSHMEM_TEAM_WORLD);
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == me && nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) == n);
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1 && nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, n - 1, NVSHMEM_TEAM_WORLD) == n - 1);
    CHECK(nvshmem_ptr(room, me) == room && nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, room) == NULL);
    nvshmemx_barrier_all_block();
}

// A tile of 4 x 3 elements in rows of 5, of which the boundary leaves out the last row.
template <class T>
__global__ void tiles(T *a, T *b, Faults *faults) {
    using namespace nvshmemx;
    typedef Layout<shape<ConstInt<4>, int>, stride<ConstInt<1>, int>> Rows;
    typedef Tensor<T, Rows> Tile;
    typedef shape<int, int> Place;
    const int n = nvshmem_n_pes(), me = nvshmem_my_pe(), right = (me + 1) % n, left = (me + n - 1) % n;
    const Rows rows = make_layout(make_shape(ConstInt<4>(), 3), make_stride(ConstInt<1>(), 5));
    const Place start = make_shape(0, 2), boundary = make_shape(4, 4);
    const Tile from(a, rows), to(b, rows);
    for (int i = threadIdx.x; i < 15; i += blockDim.x) a[i] = T(float(me + i)), b[i] = T(-1.0f);
    nvshmemx_barrier_all_block();
    tile_sum_reduce_block<Tile, Tile, Place, NVLS_ONE_SHOT_PULL_NBI>(NVSHMEM_TEAM_WORLD, from, to, start, boundary, 0);
    tile_collective_wait_block<NVLS_ONE_SHOT_PULL_NBI>(NVSHMEM_TEAM_WORLD, 0);
    for (int i = 0; i < 15; ++i) CHECK(float(b[i]) == (i < 10 && i % 5 < 4 ? n * (n - 1) / 2 + n * i : -1));
    nvshmemx_barrier_all_block();
    tile_max_rooted_reduce_block<Tile, Tile, Place, NVLS_ONE_SHOT_PULL_NBI>(NVSHMEM_TEAM_WORLD, from, to, start, boundary, n - 1, 0);
    tile_collective_wait_block<NVLS_ONE_SHOT_PULL_NBI>(NVSHMEM_TEAM_WORLD, 0);
    if (me == n - 1) CHECK(float(b[6]) == n - 1 + 6);
    nvshmemx_barrier_all_block();
    tile_put_block<Tile, Tile, Place, PEER_PUSH_NBI>(from, to, start, boundary, right, 0);
    if (is_first()) nvshmem_quiet();
    nvshmemx_barrier_all_block();
    CHECK(float(b[6]) == left + 6 && float(b[10]) == -1);
    nvshmemx_barrier_all_block();
    if (threadIdx.x < 32) tile_get_warp<Tile, Tile, shape<>, PEER_PULL_NBI>(from, to, shape<>(), shape<>(), right, 0);
    if (is_first()) nvshmem_quiet();
    __syncthreads();
    CHECK(float(b[12]) == right + 12 && float(b[4]) == -1);
    nvshmemx_barrier_all_block();
    if (me == n - 1) tile_broadcast_block<Tile, Tile, Place, NVLS_ONE_SHOT_PUSH_NBI>(NVSHMEM_TEAM_WORLD, from, to, start, boundary, 0);
    tile_collective_wait_block<NVLS_ONE_SHOT_PUSH_NBI>(NVSHMEM_TEAM_WORLD, 0);
    CHECK(float(b[7]) == n - 1 + 7);
    nvshmemx_barrier_all_block();
}

static Faults *faults;
static int failed;

// Waits for a kernel and tells of its faults.
static void told(const char *kernel) {
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    if (faults->count) {
        fprintf(stderr, "PE %d: %s: %d checks failed, the first in line %d\n", nvshmem_my_pe(), kernel, faults->count, faults->line);
        failed = 1;
    }
    faults->count = 0;
}

template <class T>
static void run(const char *name) {
    T *room = (T *)nvshmem_malloc(64 * sizeof(T)), *mine = (T *)nvshmem_malloc(64 * sizeof(T));
    uint64_t *signal = (uint64_t *)nvshmem_calloc(1, sizeof(uint64_t));
    of_type<T><<<1, 48>>>(room, mine, signal, faults);
    told(name);
    nvshmem_free(signal);
    nvshmem_free(mine);
    nvshmem_free(room);
}

int main() {
    nvshmem_init();
    CUDA(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % []() {
        int devices = 1;
        CUDA(cudaGetDeviceCount(&devices));
        return devices;
    }()));
    CUDA(cudaMallocHost(&faults, sizeof *faults));
    *faults = Faults();
    run<float>("float");
    run<double>("double");
    run<half>("half");
    run<__nv_bfloat16>("bfloat16");
    run<signed char>("schar");
    run<unsigned short>("ushort");
    run<int>("int");
    run<long>("long");
    run<unsigned long long>("ulonglong");
    char *room = (char *)nvshmem_malloc(4096), *mine = (char *)nvshmem_malloc(4096);
    rounded_once<<<1, 32>>>((half *)room, (half *)mine, faults);
    told("rounded_once");
    atomics<<<1, 32>>>((float *)room, (double *)(room + 8), (half *)(room + 16), (unsigned long long *)(room + 24), (int *)(room + 32), faults);
    told("atomics");
    waits<<<1, 32>>>((short *)room, (unsigned *)(room + 64), (long *)(room + 128), (int *)mine, faults);
    told("waits");
    places<<<1, 48>>>((double2 *)room, (double2 *)mine, faults);
    told("places");
    tiles<float><<<1, 32>>>((float *)room, (float *)mine, faults);
    told("tiles of float");
    tiles<half><<<1, 32>>>((half *)room, (half *)mine, faults);
    told("tiles of half");
    nvshmem_free(mine);
    nvshmem_free(room);
    nvshmem_finalize();
    return failed;
}
