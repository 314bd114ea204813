/* Kernels that OpenSHMEM is measured with, small: an integer sort by buckets, random updates of a table, histogram and
   index gather, transposition, a prefix sum, and a numeric integral. C99. */
#include <inttypes.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int me, n;

/* A generator of its own for each PE. */
static uint64_t state;
static uint64_t next_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int by_value(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

enum { KEYS = 3000, GREATEST = 1 << 16 };
static int bucket[KEYS * 64];
static long long received;

/* As ISx: each PE makes room at each other by a fetching add and puts the keys of its bucket there. */
static void sort(void)
{
    const int width = (GREATEST + n - 1) / n;
    int *keys = malloc(KEYS * sizeof *keys), *sorted = malloc(KEYS * sizeof *sorted);
    size_t *start = calloc((size_t)n + 1, sizeof *start);
    static long sum_before, sum_after, sum_before_all, sum_after_all, count, count_all, bSync[SHMEM_BARRIER_SYNC_SIZE],
        rSync[SHMEM_REDUCE_SYNC_SIZE], rWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; i++) bSync[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++) rSync[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < KEYS; i++) {
        keys[i] = (int)(next_number() % GREATEST);
        sum_before += keys[i];
        start[keys[i] / width + 1]++;
    }
    for (int pe = 0; pe < n; pe++) start[pe + 1] += start[pe];
    size_t *at = malloc((size_t)n * sizeof *at);
    memcpy(at, start, (size_t)n * sizeof *at);
    for (int i = 0; i < KEYS; i++) sorted[at[keys[i] / width]++] = keys[i];
    shmem_barrier(0, 0, n, bSync);
    for (int i = 0; i < n; i++) {
        const int pe = (me + i) % n;
        const size_t len = start[pe + 1] - start[pe];
        const long long there = shmem_longlong_atomic_fetch_add(&received, (long long)len, pe);
        CHECK((size_t)there + len <= sizeof bucket / sizeof *bucket);
        shmem_int_put_nbi(bucket + there, sorted + start[pe], len, pe);
    }
    shmem_barrier_all();
    qsort(bucket, (size_t)received, sizeof *bucket, by_value);
    for (long long i = 0; i < received; i++) {
        CHECK(bucket[i] / width == me);
        sum_after += bucket[i];
    }
    count = (long)received;
    shmem_long_sum_to_all(&sum_before_all, &sum_before, 1, 0, 0, n, rWrk, rSync);
    shmem_barrier_all();
    shmem_long_sum_to_all(&sum_after_all, &sum_after, 1, 0, 0, n, rWrk, rSync);
    shmem_barrier_all();
    shmem_long_sum_to_all(&count_all, &count, 1, 0, 0, n, rWrk, rSync);
    CHECK(sum_before_all == sum_after_all && count_all == (long)KEYS * n);
    free(at);
    free(start);
    free(sorted);
    free(keys);
}

/* Each update done twice leaves the table as it was. */
static void random_updates(void)
{
    enum { TABLE = 256, UPDATES = 500 };
    uint64_t *table = shmem_align(4096, TABLE * sizeof *table), seed = state;
    for (uint64_t i = 0; i < TABLE; i++) table[i] = (uint64_t)me * TABLE + i;
    shmem_barrier_all();
    for (int twice = 0; twice < 2; twice++) {
        state = seed;
        for (int i = 0; i < UPDATES; i++) {
            const uint64_t number = next_number(), place = number % ((uint64_t)n * TABLE);
            shmem_uint64_atomic_xor(table + place % TABLE, number, (int)(place / TABLE));
        }
        shmem_barrier_all();
    }
    for (uint64_t i = 0; i < TABLE; i++) CHECK(table[i] == (uint64_t)me * TABLE + i);
    shmem_free(table);
}

/* Place i of a spread array is element i / n of PE i % n. */
static void histogram_and_gather(void)
{
    enum { PLACES = 100, LOOKS = 400 };
    int64_t *counts = shmem_calloc(PLACES, sizeof *counts);
    int64_t *total = shmem_calloc(2, sizeof *total), got[LOOKS];
    size_t places[LOOKS];
    for (int i = 0; i < LOOKS; i++) {
        places[i] = next_number() % ((size_t)n * PLACES);
        shmem_int64_atomic_inc(counts + places[i] / (size_t)n, (int)(places[i] % (size_t)n));
    }
    shmem_barrier_all();
    for (int i = 0; i < PLACES; i++) total[0] += counts[i];
    shmem_int64_sum_reduce(SHMEM_TEAM_WORLD, total + 1, total, 1);
    CHECK(total[1] == (int64_t)LOOKS * n);
    shmem_barrier_all();
    for (int i = 0; i < PLACES; i++) counts[i] = 3 * (i * n + me) + 1;
    shmem_sync_all();
    for (int i = 0; i < LOOKS; i++)
        shmem_int64_get_nbi(got + i, counts + places[i] / (size_t)n, 1, (int)(places[i] % (size_t)n));
    shmem_quiet();
    for (int i = 0; i < LOOKS; i++) CHECK(got[i] == 3 * (int64_t)places[i] + 1);
    shmem_barrier_all();
    shmem_free(total);
    shmem_free(counts);
}

/* Each PE has some columns of a matrix; three ways give the same transposed one. */
static void transpose(void)
{
    enum { B = 6 };
    const size_t order = (size_t)n * B, all = order * B;
    double *a = shmem_malloc(all * sizeof *a), *by_put = shmem_calloc(all, sizeof *a), *by_all = shmem_calloc(all, sizeof *a),
           *blocks = shmem_malloc(all * sizeof *a), *buffer = shmem_malloc(all * sizeof *a);
    for (size_t c = 0; c < B; c++)
        for (size_t r = 0; r < order; r++) a[c * order + r] = (double)((size_t)me * B + c) * 1000 + (double)r;
    shmem_barrier_all();
    for (int pe = 0; pe < n; pe++)
        for (size_t c = 0; c < B; c++)
            shmem_double_iput(by_put + (size_t)me * B + c, a + c * order + (size_t)pe * B, (ptrdiff_t)order, 1, B, pe);
    for (int pe = 0; pe < n; pe++)
        for (size_t c = 0; c < B; c++)
            for (size_t r = 0; r < B; r++) blocks[(size_t)pe * B * B + r * B + c] = a[c * order + (size_t)pe * B + r];
    CHECK(shmem_double_alltoall(SHMEM_TEAM_WORLD, buffer, blocks, B * B) == 0);
    for (int pe = 0; pe < n; pe++)
        for (size_t r = 0; r < B; r++)
            memcpy(by_all + r * order + (size_t)pe * B, buffer + (size_t)pe * B * B + r * B, B * sizeof *a);
    shmem_barrier_all();
    for (size_t c = 0; c < B; c++)
        for (size_t r = 0; r < order; r++) {
            CHECK(by_put[c * order + r] == (double)r * 1000 + (double)((size_t)me * B + c));
            CHECK(by_all[c * order + r] == by_put[c * order + r]);
            double one;
            shmem_getmem(&one, a + (r % B) * order + (size_t)me * B + c, sizeof one, (int)(r / B));
            CHECK(one == by_put[c * order + r]);
        }
    shmem_barrier_all();
    shmem_free(buffer);
    shmem_free(blocks);
    shmem_free(by_all);
    shmem_free(by_put);
    shmem_free(a);
}

/* By doubling distances, with a word for each round. */
static void prefix_sum(void)
{
    static long in[32], arrived[32];
    long sum = me + 1;
    memset(arrived, 0, sizeof arrived);
    shmem_barrier_all();
    for (int round = 0, far = 1; far < n; far *= 2, round++) {
        if (me + far < n) {
            shmem_long_put(in + round, &sum, 1, me + far);
            shmem_fence();
            shmem_long_atomic_set(arrived + round, 1, me + far);
        }
        if (me - far >= 0) {
            shmem_long_wait_until(arrived + round, SHMEM_CMP_EQ, 1);
            sum += in[round];
        }
    }
    CHECK(sum == (long)(me + 1) * (me + 2) / 2);
    shmem_barrier_all();
}

/* Whoever is done draws the next piece by a shared counter; PE 0 has the sum under a lock. */
static void integral(void)
{
    static int next;
    static long lock;
    static double sum;
    enum { PIECES = 50, STEPS = 200 };
    double mine = 0;
    for (int piece; (piece = shmem_int_atomic_fetch_inc(&next, 0)) < PIECES;)
        for (int i = 0; i < STEPS; i++) {
            const double x = (piece * STEPS + i + 0.5) / (PIECES * STEPS);
            mine += 4 / (1 + x * x) / (PIECES * STEPS);
        }
    while (shmem_test_lock(&lock) != 0)
        ;
    shmem_double_p(&sum, shmem_double_g(&sum, 0) + mine, 0);
    shmem_quiet();
    shmem_clear_lock(&lock);
    shmem_barrier_all();
    const double all = shmem_double_g(&sum, 0);
    CHECK(all > 3.14159 && all < 3.1416);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    state = 88172645463325252u + (uint64_t)me * 1000003;
    sort();
    random_updates();
    histogram_and_gather();
    transpose();
    prefix_sum();
    integral();
    if (me == 0) printf("right\n");
    shmem_finalize();
    return 0;
}
