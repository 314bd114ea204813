// Collective calls in loops with times by events, as benchmarks have them: in kernels of each scope, on a stream, and on a stream
// by a graph.
#include "check.h"

enum { COUNT = 32, ROUNDS = 4 };

template <int SCOPE>
__global__ void rounds(nvshmem_team_t team, int* dest, int* source, int* sum) {
    const int n = nvshmem_team_n_pes(team);
    for (int round = 0; round < ROUNDS; ++round) {
        if (SCOPE == 0) {
            if (threadIdx.x == 0) {
                nvshmem_int_fcollect(team, dest, source, COUNT);
                nvshmem_int_sum_reduce(team, sum, source, COUNT);
                nvshmem_barrier(team);
            }
        } else if (SCOPE == 1) {
            if (threadIdx.x < 32) {
                nvshmemx_int_fcollect_warp(team, dest, source, COUNT);
                nvshmemx_int_sum_reduce_warp(team, sum, source, COUNT);
                nvshmemx_barrier_warp(team);
            }
        } else {
            nvshmemx_int_fcollect_block(team, dest, source, COUNT);
            nvshmemx_int_sum_reduce_block(team, sum, source, COUNT);
            nvshmemx_barrier_block(team);
        }
        __syncthreads();
        SEEN(dest[(n - 1) * COUNT] == value<int>(n - 1, 0));
        // No PE begins the next round before all have looked.
        __syncthreads();
        if (threadIdx.x == 0) nvshmem_team_sync(team);
        __syncthreads();
    }
}

static int *dest, *source, *sum;

static void on_stream(cudaStream_t stream) {
    for (int round = 0; round < ROUNDS; ++round) {
        nvshmemx_int_fcollect_on_stream(NVSHMEM_TEAM_WORLD, dest, source, COUNT, stream);
        nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, sum, source, COUNT, stream);
        nvshmemx_barrier_all_on_stream(stream);
    }
}

static void compare(const char* what) {
    std::vector<int> sums(COUNT), all;
    for (int pe = 0; pe < pes; ++pe)
        for (int i = 0; i < COUNT; ++i) {
            all.push_back(value<int>(pe, i));
            sums[i] = (int)((unsigned)sums[i] + (unsigned)value<int>(pe, i));
        }
    EXPECT(dest, all, what);
    EXPECT(sum, sums, what);
    CUDA(cudaMemset(dest, 0, pes * COUNT * sizeof(int)));
    CUDA(cudaMemset(sum, 0, COUNT * sizeof(int)));
    CUDA(cudaDeviceSynchronize());
    nvshmem_barrier_all();
}

template <class Run>
static void timed(cudaStream_t stream, const char* what, Run run) {
    cudaEvent_t begin, end;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaEventRecord(begin, stream));
    run();
    CUDA(cudaEventRecord(end, stream));
    CUDA(cudaEventSynchronize(end));
    RAN();
    float milliseconds = -1;
    CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(milliseconds >= 0);
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    nvshmem_barrier_all();
    compare(what);
}

int main() {
    start();
    dest = (int*)nvshmem_malloc(pes * COUNT * sizeof(int));
    source = (int*)nvshmem_malloc(COUNT * sizeof(int));
    sum = (int*)nvshmem_malloc(COUNT * sizeof(int));
    std::vector<int> mine(COUNT);
    for (int i = 0; i < COUNT; ++i) mine[i] = value<int>(me, i);
    fill(source, mine);
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    nvshmem_barrier_all();
    timed(stream, "threads", [=] { rounds<0><<<1, 16, 0, stream>>>(NVSHMEM_TEAM_WORLD, dest, source, sum); });
    timed(stream, "warps", [=] { rounds<1><<<1, 32, 0, stream>>>(NVSHMEM_TEAM_WORLD, dest, source, sum); });
    timed(stream, "blocks", [=] { rounds<2><<<1, 48, 0, stream>>>(NVSHMEM_TEAM_WORLD, dest, source, sum); });
    timed(stream, "a stream", [=] { on_stream(stream); });
    cudaGraph_t graph;
    cudaGraphExec_t run;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    on_stream(stream);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&run, graph, NULL, NULL, 0));
    timed(stream, "a graph", [=] { CUDA(cudaGraphLaunch(run, stream)); });
    CUDA(cudaGraphExecDestroy(run));
    CUDA(cudaGraphDestroy(graph));
    nvshmem_finalize();
    return 0;
}
