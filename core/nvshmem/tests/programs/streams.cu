// Work on streams: order with kernels and copies, the default and each thread's stream, graphs by capture, collective launches.
#include "check.h"

enum { COUNT = 16 };

__global__ void make(long* source, const long* step) {
    source[threadIdx.x] = *step * 1000 + nvshmem_my_pe() * 100 + threadIdx.x;
}
__global__ void look(const long* dest, const long* step, int from) {
    SEEN(dest[threadIdx.x] == *step * 1000 + from * 100 + threadIdx.x);
}
__global__ void next(long* step) { ++*step; }

static long *source, *dest, *collected, *sum, *step;
static uint64_t* signal;

// One step: each PE makes numbers, gives them to the right neighbour by a put, a barrier, a put with a signal, and to all by
// collectives.
static void steps(cudaStream_t stream) {
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    next<<<1, 1, 0, stream>>>(step);
    make<<<1, COUNT, 0, stream>>>(source, step);
    nvshmemx_long_put_nbi_on_stream(dest, source, COUNT, right, stream);
    nvshmemx_barrier_all_on_stream(stream);
    look<<<1, COUNT, 0, stream>>>(dest, step, left);
    nvshmemx_long_get_on_stream(dest + COUNT, source, COUNT, right, stream);
    look<<<1, COUNT, 0, stream>>>(dest + COUNT, step, right);
    nvshmemx_long_put_signal_on_stream(dest + 2 * COUNT, source, COUNT, signal, 1, NVSHMEM_SIGNAL_ADD, right, stream);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 1, stream);
    look<<<1, COUNT, 0, stream>>>(dest + 2 * COUNT, step, left);
    CUDA(cudaMemsetAsync(signal, 0, sizeof(uint64_t), stream));
    nvshmemx_sync_all_on_stream(stream);
    nvshmemx_long_fcollect_on_stream(NVSHMEM_TEAM_WORLD, collected, source, COUNT, stream);
    for (int pe = 0; pe < pes; ++pe) look<<<1, COUNT, 0, stream>>>(collected + pe * COUNT, step, pe);
    // In place, after all have looked at the numbers before.
    nvshmemx_barrier_all_on_stream(stream);
    CUDA(cudaMemsetAsync(collected, 0, pes * COUNT * sizeof(long), stream));
    make<<<1, COUNT, 0, stream>>>(collected + me * COUNT, step);
    nvshmemx_barrier_all_on_stream(stream);
    nvshmemx_long_fcollect_on_stream(NVSHMEM_TEAM_WORLD, collected, collected + me * COUNT, COUNT, stream);
    for (int pe = 0; pe < pes; ++pe) look<<<1, COUNT, 0, stream>>>(collected + pe * COUNT, step, pe);
    nvshmemx_barrier_all_on_stream(stream);
    nvshmemx_long_broadcast_on_stream(NVSHMEM_TEAM_WORLD, collected, source, COUNT, pes - 1, stream);
    look<<<1, COUNT, 0, stream>>>(collected, step, pes - 1);
    nvshmemx_long_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, sum, source, COUNT, stream);
    look<<<1, COUNT, 0, stream>>>(sum, step, pes - 1);
    nvshmemx_quiet_on_stream(stream);
    nvshmemx_barrier_all_on_stream(stream);
}

// All blocks meet by a counter, so that all of them run at once.
__global__ void together(int* counter, long* word, int blocks) {
    if (threadIdx.x == 0) {
        atomicAdd(counter, 1);
        while (atomicAdd(counter, 0) < blocks) {}
    }
    __syncthreads();
    if (blockIdx.x == 0) {
        nvshmemx_barrier_all_block();
        if (threadIdx.x == 0) nvshmem_long_atomic_inc(word, 0);
        nvshmemx_barrier_all_block();
    }
}

static void launches() {
    int* counter;
    CUDA(cudaMalloc(&counter, sizeof(int)));
    long* word = (long*)nvshmem_calloc(1, sizeof(long));
    int most = 0;
    dim3 block(16);
    void* none[] = {NULL};
    CHECK(nvshmemx_collective_launch_query_gridsize((const void*)together, block, none, 0, &most) == 0 && most > 0);
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    for (int blocks : {1, 3}) {
        CUDA(cudaMemsetAsync(counter, 0, sizeof(int), stream));
        void* arguments[] = {&counter, &word, &blocks};
        CHECK(nvshmemx_collective_launch((const void*)together, dim3(blocks), block, arguments, 0, stream) == 0);
        // The stream goes on behind the kernel.
        CUDA(cudaMemsetAsync(counter, 0, sizeof(int), stream));
        CUDA(cudaStreamSynchronize(stream));
        RAN();
    }
    nvshmem_barrier_all();
    CHECK(nvshmem_long_g(word, 0) == 2L * pes);
    // A grid of more blocks than run at once is refused.
    int blocks = most + 1;
    void* arguments[] = {&counter, &word, &blocks};
    CHECK(nvshmemx_collective_launch((const void*)together, dim3(blocks), block, arguments, 0, stream) != 0);
    cudaGetLastError();
    CUDA(cudaStreamDestroy(stream));
    nvshmem_barrier_all();
}

int main() {
    start();
    source = (long*)nvshmem_malloc(COUNT * sizeof(long));
    dest = (long*)nvshmem_malloc(3 * COUNT * sizeof(long));
    collected = (long*)nvshmem_malloc(pes * COUNT * sizeof(long));
    sum = (long*)nvshmem_malloc(COUNT * sizeof(long));
    signal = (uint64_t*)nvshmem_calloc(1, sizeof(uint64_t));
    CUDA(cudaMalloc(&step, sizeof(long)));
    CUDA(cudaMemset(step, 0, sizeof(long)));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
    cudaStream_t blocking, own;
    CUDA(cudaStreamCreate(&blocking));
    CUDA(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    for (cudaStream_t stream : {blocking, own, (cudaStream_t)0, cudaStreamLegacy, cudaStreamPerThread}) {
        steps(stream);
        CUDA(cudaStreamSynchronize(stream));
        RAN();
    }
    // Captured once, run three times.
    cudaGraph_t graph;
    cudaGraphExec_t run;
    CUDA(cudaStreamBeginCapture(own, cudaStreamCaptureModeGlobal));
    steps(own);
    CUDA(cudaStreamEndCapture(own, &graph));
    CUDA(cudaGraphInstantiate(&run, graph, NULL, NULL, 0));
    for (int time = 0; time < 3; ++time) CUDA(cudaGraphLaunch(run, own));
    CUDA(cudaStreamSynchronize(own));
    RAN();
    CUDA(cudaGraphExecDestroy(run));
    CUDA(cudaGraphDestroy(graph));
    CHECK(read(step, 1)[0] == 8);
    // The source of a put is changed behind a flush.
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    nvshmemx_long_put_nbi_on_stream(dest, source, COUNT, right, own);
    nvshmemx_flush_on_stream(own);
    CUDA(cudaMemsetAsync(source, 0, COUNT * sizeof(long), own));
    nvshmemx_quiet_on_stream(own);
    CUDA(cudaStreamSynchronize(own));
    nvshmem_barrier_all();
    look<<<1, COUNT>>>(dest, step, left);
    RAN();
    launches();
    nvshmem_finalize();
    return 0;
}
