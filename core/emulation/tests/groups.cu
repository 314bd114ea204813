// Cooperative groups: all forms of tiles, groups as parameters, parts of groups, reductions, scans, copies by a group.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <cstdio>
#include <utility>
namespace cg = cooperative_groups;

// A kernel adds the lines of what it found wrong.
__device__ int wrong;
__device__ int faults;
#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x)) wrong = __LINE__, atomicAdd(&faults, 1);                                         \
    } while (0)

__device__ int sum_of(const cg::thread_block_tile<32>& tile, int value) {
    for (int delta = tile.size() / 2; delta > 0; delta /= 2) value += tile.shfl_down(value, delta);
    return tile.shfl(value, 0);
}
__device__ unsigned long long sum_in(cg::thread_group group, unsigned long long* room, int value) {
    const auto rank = group.thread_rank();
    for (auto half = group.size() / 2; half > 0; half /= 2) {
        room[rank] = value;
        group.sync();
        if (rank < half) value += room[rank + half];
        group.sync();
    }
    return value;
}
template <class Group> __device__ void pass_on(const Group& group, int* room) {
    room[group.thread_rank()] = group.thread_rank();
    cg::sync(group);
    REQUIRE(room[(group.thread_rank() + 1) % group.size()] == (group.thread_rank() + 1) % group.size());
    cg::sync(group);
}
struct Big {
    double a, b;
    int c;
};

__global__ void tiles() {
    __shared__ unsigned long long room[64];
    __shared__ int words[64];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    const int rank = block.thread_rank();
    REQUIRE(sum_of(tile, rank) == (rank < 32 ? 496 : 496 + 32 * 32));
    REQUIRE(sum_of(cg::tiled_partition<32>(block), 1) == 32);
    REQUIRE(tile.meta_group_rank() == rank / 32 && tile.meta_group_size() == 2);

    cg::thread_group all = block;
    REQUIRE(all.size() == 64 && all.thread_rank() == rank);
    const unsigned long long total = sum_in(all, room, 1);
    if (rank == 0) REQUIRE(total == 64);
    block.sync();
    const unsigned long long of_tile = sum_in(tile, room + rank / 32 * 32, 2);
    if (tile.thread_rank() == 0) REQUIRE(of_tile == 64);
    tile.sync();

    // A tile of a tile, of either type.
    auto four = cg::tiled_partition<4>(tile);
    auto four_too = cg::tiled_partition<4>(cg::tiled_partition<16>(block));
    cg::thread_block_tile<4> plain = four;
    REQUIRE(four.meta_group_size() == 8 && four.meta_group_rank() == rank % 32 / 4);
    REQUIRE(four_too.meta_group_size() == 4 && four_too.meta_group_rank() == rank % 16 / 4);
    REQUIRE(plain.shfl(rank, 1) == rank / 4 * 4 + 1 && plain.shfl_xor(rank, 3) == (rank ^ 3));
    REQUIRE(plain.shfl_up(rank, 1) == (rank % 4 ? rank - 1 : rank));
    REQUIRE(tile.shfl_up(rank, 3) == (rank % 32 < 3 ? rank : rank - 3) && tile.shfl_down(rank, 3) == (rank % 32 > 28 ? rank : rank + 3));
    REQUIRE(plain.ballot(rank % 4 == 2) == 4 && plain.match_any(rank % 2) == (rank % 2 ? 10 : 5));
    int same = 7;
    REQUIRE(plain.match_all(rank / 4, same) == 15 && same == 1);
    REQUIRE(plain.match_all(rank, same) == 0 && same == 0);
    REQUIRE(plain.any(rank % 4 == 3) && !plain.all(rank % 4 == 3));
    const Big big = tile.shfl(Big{rank * 0.5, rank * 2.0, rank}, 5);
    REQUIRE(big.c == rank / 32 * 32 + 5 && big.a == big.c * 0.5 && big.b == big.c * 2.0);
    pass_on(block, words);
    pass_on(tile, words + rank / 32 * 32);
    pass_on(four, words + rank / 4 * 4);

    // Sizes that are known at run time alone.
    cg::thread_group eight = cg::tiled_partition(block, 8), two = cg::tiled_partition(eight, 2);
    REQUIRE(eight.size() == 8 && eight.thread_rank() == rank % 8);
    REQUIRE(two.size() == 2 && two.thread_rank() == rank % 2);
    pass_on(eight, words + rank / 8 * 8);
    pass_on(two, words + rank / 2 * 2);

    cg::thread_block::arrival_token token = block.barrier_arrive();
    block.barrier_wait(std::move(token));
    int ones = 0;
    cg::invoke_one(tile, [&](int by) { ones += by; }, 3);
    REQUIRE(tile.shfl(ones, 0) == 3 && cg::reduce(tile, ones, cg::plus<int>()) == 3);
    REQUIRE(cg::invoke_one_broadcast(tile, [=] { return rank + 1; }) == rank / 32 * 32 + 1);
}

__global__ void parts() {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int lane = tile.thread_rank();
    // Three parts of unequal sizes, whose lanes lie in between each other.
    const int label = lane % 7 == 0 ? 30 : lane % 2 ? 20 : 10;
    cg::coalesced_group part = cg::labeled_partition(tile, label);
    int before = 0, size = 0, sum = 0, up_to = 0, largest = 0, next = lane, first = -1;
    for (int other = 0; other < 32; ++other) {
        if ((other % 7 == 0 ? 30 : other % 2 ? 20 : 10) != label) continue;
        before += other < lane;
        sum += other;
        up_to += other <= lane ? other : 0;
        largest = other;
        if (first < 0) first = other;
        if (other > lane && next == lane) next = other;
        ++size;
    }
    REQUIRE((int)part.size() == size && (int)part.thread_rank() == before);
    // Lane 0 has 30, lane 1 has 20, lane 2 has 10.
    REQUIRE(part.meta_group_size() == 3 && (int)part.meta_group_rank() == (30 - label) / 10);
    REQUIRE(cg::reduce(part, lane, cg::plus<int>()) == sum);
    REQUIRE(cg::reduce(part, lane, cg::greater<int>()) == largest);
    REQUIRE(cg::reduce(part, lane, [](int a, int b) { return a > b ? a : b; }) == largest);
    REQUIRE(cg::inclusive_scan(part, lane) == up_to && cg::exclusive_scan(part, lane) == up_to - lane);
    REQUIRE(part.shfl(lane, size - 1) == largest && part.ballot(lane == largest) == 1u << (size - 1));
    REQUIRE(part.any(lane == largest) && !part.all(lane == largest));
    REQUIRE(part.shfl_down(lane, 1) == next);
    REQUIRE(part.match_any(before / 2) == 3u << before / 2 * 2 || before == size - 1);
    REQUIRE(cg::invoke_one_broadcast(part, [=] { return lane; }) == first);
    cg::coalesced_group quarter = cg::tiled_partition(part, 4);
    REQUIRE(quarter.thread_rank() == before % 4 && (int)quarter.meta_group_rank() == before / 4);
    REQUIRE((int)quarter.meta_group_size() == (size + 3) / 4);
    REQUIRE((int)quarter.size() == (size - before / 4 * 4 < 4 ? size - before / 4 * 4 : 4));
    quarter.sync();

    cg::coalesced_group half = cg::binary_partition(tile, lane < 10);
    REQUIRE(half.size() == (lane < 10 ? 10 : 22) && half.meta_group_size() == 2);
    REQUIRE(half.meta_group_rank() == (lane < 10));
    cg::coalesced_group whole = cg::binary_partition(half, true);
    REQUIRE(whole.size() == half.size() && whole.meta_group_size() == 1 && whole.meta_group_rank() == 0);

    REQUIRE(cg::reduce(tile, 1.5f, cg::plus<float>()) == 48);
    REQUIRE(cg::reduce(tile, lane, cg::less<int>()) == 0 && cg::reduce(tile, 1 << lane % 3, cg::bit_or<int>()) == 7);
    REQUIRE(cg::reduce(tile, (1ull << 40) + lane, cg::plus<unsigned long long>()) == (32ull << 40) + 496);
    REQUIRE(cg::inclusive_scan(tile, lane, cg::greater<int>()) == lane);
    REQUIRE(cg::exclusive_scan(tile, lane + 1, cg::greater<int>()) == lane);
    auto eight = cg::tiled_partition<8>(tile);
    REQUIRE(cg::inclusive_scan(eight, 2) == 2 * (lane % 8 + 1) && cg::exclusive_scan(eight, 2.0) == 2 * (lane % 8));
}

// Lanes that run together, of which some come by another way.
__global__ void together(int* count, int* largest) {
    if (threadIdx.x % 3 == 0) return;
    cg::coalesced_group lanes = cg::coalesced_threads();
    REQUIRE(lanes.size() >= 1 && lanes.thread_rank() < lanes.size() && lanes.meta_group_size() == 1);
    REQUIRE(cg::reduce(lanes, 1, cg::plus<int>()) == (int)lanes.size());
    if (lanes.thread_rank() == 0) {
        atomicAdd(count, (int)lanes.size());
        atomicMax(largest, (int)lanes.size());
    }
    lanes.sync();
}

__global__ void copies(const int* in, int* out) {
    __shared__ __align__(16) int words[96];
    __shared__ char bytes[7];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, words, in, sizeof(int) * 96);
    cg::memcpy_async(block, bytes, (const char*)in, 7);
    cg::wait(block);
    int sum = 0;
    for (int i = 0; i < 96; ++i) sum += words[i];
    for (int i = 0; i < 7; ++i) sum += bytes[i];
    block.sync();
    // The shorter of the two counts.
    cg::memcpy_async(block, words, 96, in + 96, 10);
    cg::wait_prior<0>(block);
    sum += words[9] + words[10];
    auto tile = cg::tiled_partition<32>(block);
    block.sync();
    cg::memcpy_async(tile, words + tile.meta_group_rank() * 4, in, cuda::aligned_size_t<16>(16));
    cg::wait(tile);
    sum += words[tile.meta_group_rank() * 4 + 3];
    out[block.thread_rank()] = sum;
}

__global__ void grids(int* data) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_group all = grid;
    data[grid.thread_rank()] = 1;
    all.sync();
    REQUIRE(data[(all.thread_rank() + 33) % all.size()] == 1 && all.size() == 4 * 32);
    cg::grid_group::arrival_token token = grid.barrier_arrive();
    grid.barrier_wait(std::move(token));
    data[grid.thread_rank()] = 2;
    grid.sync();
    REQUIRE(data[(all.thread_rank() + 33) % all.size()] == 2);
}

int main() {
    int *data, *counts, host[256], got[256];
    cudaMalloc(&data, sizeof host);
    cudaMalloc(&counts, sizeof host);
    cudaMemset(counts, 0, sizeof host);
    tiles<<<2, 64>>>();
    parts<<<1, 64>>>();
    together<<<1, 48>>>(counts, counts + 1);
    void* arguments[] = {&counts};
    if (cudaMemcpy(got, counts, 8, cudaMemcpyDeviceToHost) || got[0] != 32) return printf("together: %d\n", got[0]), 1;
    printf("at most %d lanes ran together\n", got[1]);
    if (cudaLaunchCooperativeKernel(grids, dim3(4), dim3(32), arguments)) return puts("grids"), 1;
    for (int i = 0; i < 256; ++i) host[i] = i + 1;
    cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
    copies<<<1, 64>>>(data, counts);
    if (cudaMemcpy(got, counts, 64 * sizeof(int), cudaMemcpyDeviceToHost)) return puts("copies"), 1;
    int sum = 96 * 97 / 2 + (1 + 2) + (96 + 10) + 11 + 4;
    for (int i = 0; i < 64; ++i) {
        if (got[i] != sum) return printf("copies: %d is %d and not %d\n", i, got[i], sum), 1;
    }
    int line = 0;
    cudaMemcpyFromSymbol(got, faults, sizeof(int));
    cudaMemcpyFromSymbol(&line, wrong, sizeof(int));
    if (cudaGetLastError() || got[0]) return printf("%d faults, one in line %d\n", got[0], line), 1;
    puts("groups: all right");
}
