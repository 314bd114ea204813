// Edges: reductions in place, of no element, and longer than a team's place in kernels; a configuration; nothing to free.
#include "check.h"

enum { LONG = 5000 };

template <class T>
static std::vector<T> of(int pe, size_t n) {
    std::vector<T> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = (T)((pe + 1) * (int)(i % 100 + 1));
    return values;
}
// The sum of all PEs' values.
template <class T>
static std::vector<T> sums(size_t n) {
    std::vector<T> values(n);
    for (int pe = 0; pe < pes; ++pe)
        for (size_t i = 0; i < n; ++i) values[i] += of<T>(pe, n)[i];
    return values;
}

__global__ void reduce_block(int* ints, double* doubles, int* status) {
    const int one = nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, ints, ints, LONG);
    const int other = nvshmemx_double_sum_reduce_block(NVSHMEM_TEAM_WORLD, doubles + LONG, doubles, LONG);
    const int nothing = nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, ints, ints, 0);
    if (threadIdx.x == 0) *status = one | other | nothing;
}

int main() {
    start();
    int *ints = (int*)nvshmem_malloc(LONG * sizeof(int)), *status = (int*)nvshmem_calloc(1, sizeof(int));
    double* doubles = (double*)nvshmem_malloc(2 * LONG * sizeof(double));
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    for (int way = 0; way < 3; ++way) {
        fill(ints, of<int>(me, LONG));
        fill(doubles, of<double>(me, LONG));
        nvshmem_barrier_all();
        if (way == 0) {
            reduce_block<<<1, 64>>>(ints, doubles, status);
            RAN();
            CHECK(read(status, 1)[0] == 0);
        } else if (way == 1) {
            CHECK(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, ints, ints, LONG, stream) == 0);
            CHECK(nvshmemx_double_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, doubles + LONG, doubles, LONG, stream) == 0);
            CHECK(nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, ints, ints, 0, stream) == 0);
            CUDA(cudaStreamSynchronize(stream));
        } else {
            CHECK(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, ints, ints, LONG) == 0);
            CHECK(nvshmem_double_sum_reduce(NVSHMEM_TEAM_WORLD, doubles + LONG, doubles, LONG) == 0);
            CHECK(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, ints, ints, 0) == 0);
        }
        CHECK(read(ints, LONG) == sums<int>(LONG));
        CHECK(read(doubles + LONG, LONG) == sums<double>(LONG));
        nvshmem_barrier_all();
    }
    CHECK(nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, ints, ints, 0, 0) == 0);
    CHECK(nvshmem_int_fcollect(NVSHMEM_TEAM_WORLD, nullptr, nullptr, 0) == 0);
    nvshmem_int_put(ints, nullptr, 0, 0);
    // For one PE by itself.
    if (me == 0) nvshmem_free(nullptr);

    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER, found;
    config.num_contexts = 3;
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pes, &config, NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS, &team) == 0);
    nvshmem_team_get_config(team, &found);
    CHECK(found.num_contexts == 3);
    nvshmem_team_destroy(team);
    CHECK(nvshmem_team_n_pes(team) == -1);
    nvshmem_finalize();
    return 0;
}
