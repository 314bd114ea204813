// The calls of whole blocks (core/nvshmem/bitcode/block.cuh), which Triton's kernels make: each has its result on all threads, and
// is made once. Run with 2 PEs or more on the emulation, by ci/test-triton.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <shmem.h>
#include <shmemx.h>

#include "../bitcode/block.cuh"

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)
#define CUDA(call) CHECK((call) == cudaSuccess)

typedef unsigned long long u64;
enum { N = 100, THREADS = 64 };
enum { EQ, NE, GT, LE, LT, GE };

// Symmetric memory of a PE. Each test has fields of its own.
struct Room {
    float put[N], put_nbi[N], mem[N], source[N], got[N], got_nbi[N], strided[2 * N], gathered[3 * N];
    u64 signals[8];
    unsigned words[8];
    u64 longs[8];
    unsigned char bytes[8];
    unsigned short shorts[8];
    float collected[4 * N], spread[4 * N], all[4 * N], sums[N], scattered[N], broadcast[N];
    __half halves[8], half_sums[8];
    __nv_bfloat16 brains[8], brain_most[8];
    long long bits[8], xors[8];
};

// Results of each thread: each notes its own.
struct Seen {
    u64 g8[THREADS], g16[THREADS], g32[THREADS], g64[THREADS], fetched[THREADS], swapped[THREADS], compared[THREADS];
    u64 signal[THREADS], waited[THREADS], any[THREADS], test[THREADS], ptr[THREADS], member[THREADS];
};

#define AT(field) ((u64)(room->field))

__global__ void calls(Room* room, Seen* seen) {
    const int me = oxshmem_block_my_pe(), n = oxshmem_block_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    const unsigned t = threadIdx.x;
    // A block's own stores come before its calls.
    for (unsigned i = t; i < N; i += THREADS) room->source[i] = 1000.0f * me + i;
    oxshmem_block_barrier(0);

    oxshmem_block_putmem(AT(put), AT(source), sizeof room->put, right);
    oxshmem_block_putmem_nbi(AT(put_nbi), AT(source), sizeof room->put, right);
    oxshmem_block_put_signal(AT(mem), AT(source), sizeof room->mem, AT(signals), 7, 9, right);
    seen->waited[t] = oxshmem_block_signal_wait_until(AT(signals), EQ, 7);
    if (t == 0)
        for (int i = 0; i < N; ++i)
            if (room->mem[i] != 1000.0f * left + i) __trap();
    oxshmem_block_put_signal_nbi(AT(mem), AT(source), sizeof room->mem, AT(signals) + 8, 5, 10, right);
    oxshmem_block_put_signal_nbi(AT(mem), AT(source), sizeof room->mem, AT(signals) + 8, 6, 10, right);
    oxshmem_block_signal_wait_until(AT(signals) + 8, GE, 11);
    seen->signal[t] = oxshmem_block_signal_fetch(AT(signals) + 8);
    // Once, and not by each of 64 threads.
    oxshmem_block_signal_op(AT(signals) + 16, 3, 10, right);
    oxshmem_block_getmem(AT(got), AT(source), sizeof room->got, right);
    oxshmem_block_getmem_nbi(AT(got_nbi), AT(source), sizeof room->got, right);
    oxshmem_block_iput32(AT(strided), AT(source), 2, 1, N, right);
    oxshmem_block_iget32(AT(gathered), AT(source), 3, 2, N / 2, right);
    oxshmem_block_p8(AT(bytes), 200 + me, right);
    oxshmem_block_p16(AT(shorts), 60000 + me, right);
    oxshmem_block_p32(AT(words), 4000000000u + me, right);
    oxshmem_block_p64(AT(longs), (1ull << 63) + me, right);
    oxshmem_block_fence();
    oxshmem_block_flush();
    oxshmem_block_quiet();
    oxshmem_block_barrier(0);
    seen->g8[t] = oxshmem_block_g8(AT(bytes), right);
    seen->g16[t] = oxshmem_block_g16(AT(shorts), right);
    seen->g32[t] = oxshmem_block_g32(AT(words), right);
    seen->g64[t] = oxshmem_block_g64(AT(longs), right);

    using namespace oxshmem::blocks;
    oxshmem_block_atomic32(ADD, AT(words) + 4, 5, 0, 0);
    oxshmem_block_atomic64(FETCH_ADD, AT(longs) + 8, 1, 0, 0);
    oxshmem_block_atomic32(OR, AT(words) + 8, 1u << me, 0, 0);
    oxshmem_block_atomic64(XOR, AT(longs) + 16, 1ull << me, 0, 0);
    oxshmem_block_atomic32(SET, AT(words) + 12, 77, 0, right);
    oxshmem_block_barrier(0);
    seen->fetched[t] = oxshmem_block_atomic32(FETCH, AT(words) + 4, 0, 0, 0);
    seen->swapped[t] = oxshmem_block_atomic32(SWAP, AT(words) + 12, 78, 0, right);
    seen->compared[t] = oxshmem_block_atomic32(COMPARE_SWAP, AT(words) + 12, 79, 78, right);
    oxshmem_block_atomic32(AND, AT(words) + 12, 0xf, 0, right);
    oxshmem_block_barrier(0);

    // -1 is less than 1 as a signed number, and the greatest as an unsigned one.
    if (t == 0) room->words[4] = (unsigned)-1, room->longs[4] = 9, room->longs[5] = 4;
    seen->test[t] = oxshmem_block_int32_test(AT(words) + 16, LT, 1) << 2 | oxshmem_block_uint32_test(AT(words) + 16, LT, 1) << 1 |
                    oxshmem_block_uint32_test(AT(words) + 16, GT, 1);
    oxshmem_block_uint64_wait_until_all(AT(longs) + 32, 2, GT, 3);
    seen->any[t] = oxshmem_block_int64_wait_until_any(AT(longs) + 32, 2, LE, 4);
    oxshmem_block_p32(AT(words) + 20, (unsigned)-5, right);
    oxshmem_block_int32_wait_until(AT(words) + 20, EQ, -5);
    const u64 theirs = oxshmem_block_ptr(AT(source), right);
    seen->ptr[t] = theirs ? (u64)((float*)theirs)[t] : (u64)-1;
    seen->member[t] = oxshmem_block_team_my_pe(0) == me && oxshmem_block_team_n_pes(0) == n && oxshmem_block_team_translate_pe(0, left, 0) == left;

    for (unsigned i = t; i < N * n; i += THREADS) room->spread[i] = 100.0f * me + i / N;
    if (t < 8) {
        room->halves[t] = (__half)(float)(me + t);
        room->brains[t] = (__nv_bfloat16)(float)(me * t);
        room->bits[t] = 1ll << (me + t);
    }
    oxshmem_block_sync(0);
    int failed = oxshmem_block_broadcastmem(0, AT(broadcast), AT(source), sizeof room->broadcast, n - 1);
    failed |= oxshmem_block_fcollectmem(0, AT(collected), AT(source), sizeof room->source);
    failed |= oxshmem_block_alltoallmem(0, AT(all), AT(spread), sizeof room->source);
    failed |= oxshmem_block_float_sum_reduce(0, AT(sums), AT(source), N);
    failed |= oxshmem_block_float_max_reducescatter(0, AT(scattered), AT(spread), N);
    failed |= oxshmem_block_half_sum_reduce(0, AT(half_sums), AT(halves), 8);
    failed |= oxshmem_block_bfloat16_max_reduce(0, AT(brain_most), AT(brains), 8);
    failed |= oxshmem_block_int64_xor_reduce(0, AT(xors), AT(bits), 8);
    if (failed) __trap();
    oxshmem_block_barrier(0);
}

int main() {
    shmem_init();
    CHECK(shmemx_cuda_init() == 0);
    const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    CHECK(n >= 2 && n <= 4);
    Room* room = (Room*)shmemx_cuda_malloc(sizeof(Room));
    CHECK(room);
    CUDA(cudaMemset(room, 0, sizeof *room));
    Seen* seen;
    CUDA(cudaMallocHost(&seen, sizeof *seen));
    shmem_barrier_all();
    calls<<<1, THREADS>>>(room, seen);
    CUDA(cudaDeviceSynchronize());
    CHECK(shmemx_cuda_check() == 0);
    shmem_barrier_all();

    static Room own;
    CUDA(cudaMemcpy(&own, room, sizeof own, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; ++i) {
        const float from_left = 1000.0f * left + i, from_right = 1000.0f * right + i;
        CHECK(own.put[i] == from_left && own.put_nbi[i] == from_left && own.mem[i] == from_left);
        CHECK(own.got[i] == from_right && own.got_nbi[i] == from_right);
        CHECK(own.strided[2 * i] == from_left && own.strided[2 * i + 1] == 0);
        if (i < N / 2) CHECK(own.gathered[3 * i] == 1000.0f * right + 2 * i && own.gathered[3 * i + 1] == 0);
        CHECK(own.broadcast[i] == 1000.0f * (n - 1) + i);
        CHECK(own.sums[i] == 1000.0f * (n * (n - 1) / 2) + n * i);
        CHECK(own.scattered[i] == 100.0f * (n - 1) + me);
        for (int pe = 0; pe < n; ++pe) {
            CHECK(own.collected[pe * N + i] == 1000.0f * pe + i);
            CHECK(own.all[pe * N + i] == 100.0f * pe + me);
        }
    }
    CHECK(own.signals[2] == 3);
    CHECK(own.longs[1] == (me == 0 ? (u64)n : 0) && own.words[2] == (me == 0 ? (1u << n) - 1 : 0));
    CHECK(own.longs[2] == (me == 0 ? (1ull << n) - 1 : 0) && own.words[3] == (79 & 0xf));
    for (int i = 0; i < 8; ++i) {
        CHECK((float)own.half_sums[i] == (float)(n * (n - 1) / 2 + n * i));
        CHECK((float)own.brain_most[i] == (float)((n - 1) * i));
        long long xors = 0;
        for (int pe = 0; pe < n; ++pe) xors ^= 1ll << (pe + i);
        CHECK(own.xors[i] == xors);
    }
    for (int t = 0; t < THREADS; ++t) {
        CHECK(seen->waited[t] == 7 && seen->signal[t] == 11);
        CHECK(seen->g8[t] == 200u + me && seen->g16[t] == 60000u + me && seen->g32[t] == 4000000000u + me && seen->g64[t] == (1ull << 63) + me);
        CHECK(seen->fetched[t] == 5u * n && seen->swapped[t] == 77 && seen->compared[t] == 78);
        CHECK(seen->test[t] == 5 && seen->any[t] == 1 && seen->member[t] == 1);
        CHECK(seen->ptr[t] == (shmemx_cuda_ptr(room, right) ? (u64)(1000 * right + t) : (u64)-1));
    }
    printf("PE %d of %d: right\n", me, n);
    shmem_finalize();
}
