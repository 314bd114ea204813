// Calls that are in no other program: warp groups, the place of a maximum, registered buffers, teams by a list, hints, statuses
// by name.
#include "check.h"

__global__ void warpgroups(long* word, int right) {
    nvshmem_long_p(word, nvshmem_my_pe() + 1, right);
    SEEN(nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD) == 0);
}

__global__ void location(double2* dest, const double2* source) {
    SEEN(nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, dest, source, 1) == 0);
}

// Hints change nothing but speed.
__global__ void hints(long* dest, const long* source, int right) {
    nvshmemx_region_handle_t region;
    nvshmemx_region_attrs_t attributes = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    SEEN(nvshmemx_region_start_block(&region, &attributes) == 0);
    nvshmemx_long_put_nbi_block(dest, source, 16, right);
    // Shared memory may be offered to the library: it asks for none, or for some.
    extern __shared__ char shared[];
    const int wanted = nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED);
    SEEN(wanted >= 0);
    nvshmemx_give_smem(shared, 64);
    int active = 7;
    SEEN(nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_BATCH_RMA, &active) == 0 && (active == 0 || active == 1));
    SEEN(nvshmemx_region_stop_block(region) == 0);
    nvshmemx_release_smem();
    nvshmemx_barrier_all_block();
}

int main() {
    start();
    const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
    long *words = (long*)nvshmem_calloc(16, sizeof(long)), *source = (long*)nvshmem_malloc(16 * sizeof(long));
    std::vector<long> mine(16);
    for (int i = 0; i < 16; ++i) mine[i] = value<long>(me, i);
    fill(source, mine);
    nvshmem_barrier_all();
    warpgroups<<<1, 128>>>(words, right);
    RAN();
    CHECK(nvshmem_long_g(words, me) == left + 1);
    nvshmem_barrier_all();
    nvshmemx_region_handle_t region;
    nvshmemx_region_attrs_t attributes = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    CHECK(nvshmemx_region_start(&region, &attributes) == 0);
    hints<<<1, 32, 64>>>(words, source, right);
    RAN();
    CHECK(nvshmemx_region_stop(region) == 0);
    for (int i = 0; i < 16; ++i) mine[i] = value<long>(left, i);
    EXPECT(words, mine, "puts in a region");

    // The largest value, and its place.
    double2 *dest = (double2*)nvshmem_malloc(sizeof(double2)), *pair = (double2*)nvshmem_malloc(sizeof(double2));
    fill(pair, std::vector<double2>{{(double)((me * 3) % 4), (double)(100 + me)}});
    nvshmem_barrier_all();
    location<<<1, 32>>>(dest, pair);
    RAN();
    double2 most = {-1, -1};
    for (int pe = 0; pe < pes; ++pe)
        if ((pe * 3) % 4 > most.x) most = {(double)((pe * 3) % 4), (double)(100 + pe)};
    const double2 found = read(dest, 1)[0];
    CHECK(found.x == most.x && found.y == most.y);

    // Memory of the program's own may be registered, and is then the local side of a transfer.
    long* own;
    CUDA(cudaMalloc(&own, 1 << 16));
    CHECK(nvshmemx_buffer_register(own, 1 << 16) == 0);
    nvshmem_long_get(own, source, 16, right);
    for (int i = 0; i < 16; ++i) mine[i] = value<long>(right, i);
    EXPECT(own, mine, "a get to registered memory");
    CHECK(nvshmemx_buffer_unregister(own) == 0);
    nvshmemx_buffer_unregister_all();

    // Calls that are not there say so.
    nvshmemx_team_uniqueid_t id;
    nvshmem_team_t team = 77;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    CHECK(nvshmemx_team_get_uniqueid(&id) != 0);
    CHECK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, pes, me) != 0);
    CHECK(!nvshmemx_buffer_register_symmetric(own, 1 << 16, 0));
    CHECK(!nvshmemx_buffer_register_symmetric_at_preferred_address(own, 1 << 16, NULL, 0));
    CHECK(nvshmemx_buffer_unregister_symmetric(own, 1 << 16) != 0);
    CHECK(nvshmemx_culibrary_init(NULL) != 0);
    CHECK(nvshmemx_culibrary_finalize(NULL) == 0);

    for (int status : {NVSHMEMX_SUCCESS, NVSHMEMX_ERROR_INVALID_VALUE, NVSHMEMX_ERROR_OUT_OF_MEMORY, NVSHMEMX_ERROR_NOT_SUPPORTED})
        CHECK(nvshmemx_status_string(status) && *nvshmemx_status_string(status));
    CHECK(strcmp(nvshmemx_status_string(NVSHMEMX_SUCCESS), nvshmemx_status_string(NVSHMEMX_ERROR_INTERNAL)));

    // There is no multicast memory here: no address, and no failure.
    CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, words) == NULL);
    uint64_t* signal = (uint64_t*)nvshmem_calloc(1, sizeof(uint64_t));
    nvshmem_barrier_all();
    nvshmemx_signal_op_on_stream(signal, 5, NVSHMEM_SIGNAL_SET, me, 0);
    CUDA(cudaStreamSynchronize(0));
    nvshmemx_signal_counted_reset(signal);
    CHECK(nvshmem_signal_fetch(signal) == 0);
    nvshmem_finalize();
    return 0;
}
