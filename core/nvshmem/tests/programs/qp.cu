// Calls through queue pairs: of each type, by a thread, a warp and a block; their fence, their quiet and their signal.
//   qp SCOPE, where SCOPE is thread, warp or block
#include "check.h"

#define CALLS(NAME, TYPE, SCOPE, END)                                                                                  \
    struct SCOPE##_##NAME {                                                                                            \
        using T = TYPE;                                                                                                \
        static __device__ void run(T* dest, const T* source, uint64_t* signal, int pe, nvshmemx_qp_handle_t qp) {      \
            nvshmemx_qp_##NAME##_put##END(dest, source, COUNT, pe, qp);                                                \
            nvshmemx_qp_##NAME##_put_nbi##END(dest + COUNT, source + 1, COUNT, pe, qp);                                \
            nvshmemx_qp_##NAME##_get##END(dest + 2 * COUNT, source, COUNT, pe, qp);                                    \
            nvshmemx_qp_##NAME##_get_nbi##END(dest + 3 * COUNT, source + 1, COUNT, pe, qp);                            \
            nvshmemx_qp_##NAME##_put_signal##END(dest + 4 * COUNT, source, COUNT, signal, 1, NVSHMEM_SIGNAL_ADD, pe, qp); \
            nvshmemx_qp_##NAME##_put_signal_nbi##END(dest + 5 * COUNT, source + 1, COUNT, signal, 1, NVSHMEM_SIGNAL_ADD, pe, qp); \
        }                                                                                                              \
        static __device__ void single(T* dest, const T* source, int pe, nvshmemx_qp_handle_t qp) {                     \
            nvshmemx_qp_##NAME##_p(dest, source[0], pe, qp);                                                           \
            dest[1] = nvshmemx_qp_##NAME##_g(source, pe, qp);                                                          \
        }                                                                                                              \
    };
enum { COUNT = 10 };
#define SCOPES(NAME, TYPE) CALLS(NAME, TYPE, thread, ) CALLS(NAME, TYPE, warp, _warp) CALLS(NAME, TYPE, block, _block)
RMA_TYPES(SCOPES)

template <class Calls, int SCOPE>
__global__ void calls(typename Calls::T* dest, const typename Calls::T* source, uint64_t* signals, nvshmemx_qp_handle_t* qps, int count, int right) {
    Calls::run(dest, source, signals, right, qps[count - 1]);
    SEEN(nvshmem_signal_wait_until(signals, NVSHMEM_CMP_EQ, 2) == 2);
    __syncthreads();
    if (SCOPE == 0) nvshmemx_qp_fence(right, qps, count);
    if (SCOPE == 1) nvshmemx_qp_fence_warp(right, qps, count);
    if (SCOPE == 2) nvshmemx_qp_fence_block(right, qps, count);
    if (threadIdx.x == 0) {
        nvshmemx_qp_signal_op(signals + 1, 9, NVSHMEM_SIGNAL_SET, right, qps[0]);
        SEEN(nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_EQ, 9) == 9);
        Calls::single(dest + 6 * COUNT, source, right, NVSHMEMX_QP_DEFAULT);
    }
    __syncthreads();
    if (SCOPE == 0) nvshmemx_qp_quiet(NVSHMEMX_PE_ALL, qps, count);
    if (SCOPE == 1) nvshmemx_qp_quiet_warp(right, qps, count);
    if (SCOPE == 2) nvshmemx_qp_quiet_block(right, qps, count);
}

static nvshmemx_qp_handle_t* on_gpu;
enum { QPS = 2 };

template <class Calls, int SCOPE>
static void check(const char* what, int threads) {
    using T = typename Calls::T;
    T *dest = (T*)nvshmem_calloc(7 * COUNT, sizeof(T)), *source = (T*)nvshmem_malloc((COUNT + 1) * sizeof(T));
    uint64_t* signals = (uint64_t*)nvshmem_calloc(2, sizeof(uint64_t));
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    std::vector<T> mine(COUNT + 1), wanted;
    for (int i = 0; i <= COUNT; ++i) mine[i] = value<T>(me, i);
    fill(source, mine);
    nvshmem_barrier_all();
    calls<Calls, SCOPE><<<1, threads>>>(dest, source, signals, on_gpu, QPS, right);
    RAN();
    nvshmem_barrier_all();
    for (int part = 0; part < 6; ++part)
        for (int i = 0; i < COUNT; ++i) wanted.push_back(value<T>(part / 2 == 1 ? right : left, i + part % 2));
    wanted.push_back(value<T>(left, 0));
    wanted.push_back(value<T>(right, 0));
    EXPECT(dest, wanted, what);
    nvshmem_free(signals);
    nvshmem_free(source);
    nvshmem_free(dest);
}

int main(int count, char** words) {
    CHECK(count == 2);
    const char* scope = words[1];
    start();
    static_assert(NVSHMEMX_QP_HOST == 0 && NVSHMEMX_QP_DEFAULT == 1, "values that programs store");
    nvshmemx_qp_handle_t* qps = NULL;
    CHECK(nvshmemx_qp_create(QPS, &qps) == 0 && qps);
    CUDA(cudaMalloc(&on_gpu, QPS * sizeof *qps));
    CUDA(cudaMemcpy(on_gpu, qps, QPS * sizeof *qps, cudaMemcpyDefault));
#define THREAD(NAME, TYPE) check<thread_##NAME, 0>("thread " #NAME, 1);
#define WARP(NAME, TYPE) check<warp_##NAME, 1>("warp " #NAME, 32);
#define BLOCK(NAME, TYPE) check<block_##NAME, 2>("block " #NAME, 40);
    if (!strcmp(scope, "thread")) { RMA_TYPES(THREAD) }
    else if (!strcmp(scope, "warp")) { RMA_TYPES(WARP) }
    else if (!strcmp(scope, "block")) { RMA_TYPES(BLOCK) }
    else FAIL("no scope %s", scope);
    nvshmem_finalize();
    return 0;
}
