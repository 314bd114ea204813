// Atomic operations of each type: alone, their old values, and all PEs' threads against each other. In kernels, and by the host.
#include "check.h"

// The word of each operation, and what it was before.
enum { SET, SWAP, FETCHED, ADD, INC, FETCH_ADD, FETCH_INC, CSWAP, CSWAP_NOT, AND, OR, XOR, FETCH_AND, FETCH_OR, FETCH_XOR, WORDS };

#define ACCESSES(NAME, TYPE)                                                                                           \
    struct access_##NAME {                                                                                             \
        using T = TYPE;                                                                                                \
        static __host__ __device__ void run(T* words, T* old, int pe) {                                                \
            nvshmem_##NAME##_atomic_set(words + SET, T(40.0f), pe);                                                    \
            old[SWAP] = nvshmem_##NAME##_atomic_swap(words + SWAP, T(41.0f), pe);                                      \
            old[FETCHED] = nvshmem_##NAME##_atomic_fetch(words + FETCHED, pe);                                         \
        }                                                                                                              \
    };
#define SUMS(NAME, TYPE)                                                                                               \
    struct sum_##NAME {                                                                                                \
        using T = TYPE;                                                                                                \
        static __host__ __device__ void run(T* words, T* old, int pe) {                                                \
            nvshmem_##NAME##_atomic_add(words + ADD, 30, pe);                                                          \
            nvshmem_##NAME##_atomic_inc(words + INC, pe);                                                              \
            old[FETCH_ADD] = nvshmem_##NAME##_atomic_fetch_add(words + FETCH_ADD, 30, pe);                             \
            old[FETCH_INC] = nvshmem_##NAME##_atomic_fetch_inc(words + FETCH_INC, pe);                                 \
            old[CSWAP] = nvshmem_##NAME##_atomic_compare_swap(words + CSWAP, 12, 90, pe);                              \
            old[CSWAP_NOT] = nvshmem_##NAME##_atomic_compare_swap(words + CSWAP_NOT, 13, 90, pe);                      \
        }                                                                                                              \
        static __device__ T add(T* word, int pe) {                                                                     \
            nvshmem_##NAME##_atomic_add(word, 1, pe);                                                                  \
            return nvshmem_##NAME##_atomic_fetch_inc(word + 1, pe);                                                    \
        }                                                                                                              \
    };
#define BITS(NAME, TYPE)                                                                                               \
    struct bits_##NAME {                                                                                               \
        using T = TYPE;                                                                                                \
        static __host__ __device__ void run(T* words, T* old, int pe) {                                                \
            nvshmem_##NAME##_atomic_and(words + AND, 10, pe);                                                          \
            nvshmem_##NAME##_atomic_or(words + OR, 3, pe);                                                             \
            nvshmem_##NAME##_atomic_xor(words + XOR, 5, pe);                                                           \
            old[FETCH_AND] = nvshmem_##NAME##_atomic_fetch_and(words + FETCH_AND, 10, pe);                             \
            old[FETCH_OR] = nvshmem_##NAME##_atomic_fetch_or(words + FETCH_OR, 3, pe);                                 \
            old[FETCH_XOR] = nvshmem_##NAME##_atomic_fetch_xor(words + FETCH_XOR, 5, pe);                              \
        }                                                                                                              \
    };
#define ACCESS_TYPES(X) ATOMIC_TYPES(X) X(float, float) X(double, double)
#define ADD_TYPES(X) X(float, float) X(double, double) X(half, half)
#define FLOATING(NAME, TYPE)                                                                                           \
    struct floating_##NAME {                                                                                           \
        using T = TYPE;                                                                                                \
        static __host__ __device__ void run(T* words, T* old, int pe) {                                                \
            nvshmemx_##NAME##_atomic_add(words + ADD, T(30.0f), pe);                                                   \
            old[FETCH_ADD] = nvshmemx_##NAME##_atomic_fetch_add(words + FETCH_ADD, T(30.0f), pe);                      \
        }                                                                                                              \
    };
ACCESS_TYPES(ACCESSES)
ACCESSES(half, half)
ATOMIC_TYPES(SUMS)
BITWISE_ATOMIC_TYPES(BITS)
ADD_TYPES(FLOATING)

template <class Calls>
__global__ void run(typename Calls::T* words, typename Calls::T* old, int pe) {
    Calls::run(words, old, pe);
    nvshmem_quiet();
}

// Every word begins at 12. The kernel's or the host's calls go to the right neighbour.
template <class Calls>
static void operate(bool by_host, const char* what, const std::vector<std::pair<int, int>>& changed, const std::vector<int>& fetched) {
    using T = typename Calls::T;
    T *words = (T*)nvshmem_malloc(WORDS * sizeof(T)), *old = (T*)nvshmem_malloc(WORDS * sizeof(T));
    std::vector<T> wanted(WORDS, T(12.0f)), before(WORDS, T(99.0f));
    fill(words, wanted);
    fill(old, before);
    nvshmem_barrier_all();
    if (by_host) {
        std::vector<T> seen = before;
        Calls::run(words, seen.data(), (me + 1) % pes);
        nvshmem_quiet();
        fill(old, seen);
    } else {
        run<Calls><<<1, 1>>>(words, old, (me + 1) % pes);
        RAN();
    }
    nvshmem_barrier_all();
    for (auto [word, to] : changed) wanted[word] = T((float)to);
    for (int word : fetched) before[word] = T(12.0f);
    EXPECT(words, wanted, what);
    EXPECT(old, before, what);
    nvshmem_free(old);
    nvshmem_free(words);
}

// All threads of all PEs add to words of PE 0. Each old value of the second word is seen once.
template <class Sum>
__global__ void meet(typename Sum::T* word, typename Sum::T* old) {
    old[threadIdx.x] = Sum::add(word, 0);
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
}

template <class Sum>
static void contend(const char* what) {
    using T = typename Sum::T;
    enum { THREADS = 24 };
    T *words = (T*)nvshmem_calloc(2, sizeof(T)), *old = (T*)nvshmem_malloc(THREADS * sizeof(T));
    T* all = (T*)nvshmem_malloc(THREADS * pes * sizeof(T));
    meet<Sum><<<1, THREADS>>>(words, old);
    RAN();
    nvshmem_barrier_all();
    if (me == 0) EXPECT(words, (std::vector<T>{(T)(THREADS * pes), (T)(THREADS * pes)}), what);
    nvshmem_fcollectmem(NVSHMEM_TEAM_WORLD, all, old, THREADS * sizeof(T));
    std::vector<bool> had(THREADS * pes);
    for (T one : read(all, THREADS * pes)) {
        CHECK((size_t)one < had.size() && !had[(size_t)one]);
        had[(size_t)one] = true;
    }
    nvshmem_barrier_all();
    nvshmem_free(all);
    nvshmem_free(old);
    nvshmem_free(words);
}

int main() {
    start();
    for (int by_host = 0; by_host < 2; ++by_host) {
#define ACCESS(NAME, TYPE) operate<access_##NAME>(by_host, "access " #NAME, {{SET, 40}, {SWAP, 41}}, {SWAP, FETCHED});
#define SUM(NAME, TYPE)                                                                                                \
    operate<sum_##NAME>(by_host, "sum " #NAME, {{ADD, 42}, {INC, 13}, {FETCH_ADD, 42}, {FETCH_INC, 13}, {CSWAP, 90}},  \
                        {FETCH_ADD, FETCH_INC, CSWAP, CSWAP_NOT});
#define BIT(NAME, TYPE)                                                                                                \
    operate<bits_##NAME>(by_host, "bits " #NAME,                                                                       \
                         {{AND, 8}, {OR, 15}, {XOR, 9}, {FETCH_AND, 8}, {FETCH_OR, 15}, {FETCH_XOR, 9}},               \
                         {FETCH_AND, FETCH_OR, FETCH_XOR});
#define FLOAT(NAME, TYPE) operate<floating_##NAME>(by_host, "floating " #NAME, {{ADD, 42}, {FETCH_ADD, 42}}, {FETCH_ADD});
        ACCESS_TYPES(ACCESS)
        ATOMIC_TYPES(SUM)
        BITWISE_ATOMIC_TYPES(BIT)
        FLOAT(float, float)
        FLOAT(double, double)
        // The host has none of 16 bits.
        if (!by_host) {
            ACCESS(half, half)
            FLOAT(half, half)
        }
    }
#define CONTEND(NAME, TYPE) contend<sum_##NAME>("contended " #NAME);
    ATOMIC_TYPES(CONTEND)
    nvshmem_finalize();
    return 0;
}
