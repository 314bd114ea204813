/* A program as they were written for the first machines with SHMEM: C89, start_pes, symmetric variables, active sets
   with pSync and pWrk, flags that are put and waited for. */
#include <mpp/shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PES 64
#define WORDS 40
#define REDUCED 5

static long pSync[2][_SHMEM_REDUCE_SYNC_SIZE];
static long bSync[_SHMEM_BCAST_SYNC_SIZE];
static long cSync[_SHMEM_COLLECT_SYNC_SIZE];
static long barrierSync[_SHMEM_BARRIER_SYNC_SIZE];
static int iWrk[REDUCED / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static double dWrk[REDUCED / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE];

long flag, words[WORDS], counter, lock;
int matrix[8][8];
short small[4];
static int ints[REDUCED], int_sums[REDUCED];
static double reals[REDUCED], real_max[REDUCED];
static long every[4 * MAX_PES];

static void fail(const char *what)
{
    fprintf(stderr, "PE %d: %s\n", _my_pe(), what);
    shmem_global_exit(1);
}

#define EXPECT(it) do { if (!(it)) fail(#it); } while (0)

/* The word after the data tells that they are there. */
static void put_and_flag(int me, int n)
{
    int i, right = (me + 1) % n, left = (me + n - 1) % n, round;
    long mine[WORDS];
    for (round = 1; round <= 3; round++) {
        for (i = 0; i < WORDS; i++) mine[i] = 1000 * round + 10 * me + i;
        shmem_long_put(words, mine, WORDS, right);
        shmem_fence();
        shmem_long_p(&flag, (long)round, right);
        shmem_wait(&flag, (long)round - 1);
        shmem_wait_until(&flag, _SHMEM_CMP_GE, (long)round);
        shmem_udcflush();
        for (i = 0; i < WORDS; i++) EXPECT(words[i] == 1000 * round + 10 * left + i);
        shmem_barrier_all();
    }
    shmem_set_cache_inv();
    small[0] = 0;
    shmem_barrier_all();
    shmem_short_p(&small[0], (short)(me + 1), right);
    shmem_short_wait(&small[0], 0);
    EXPECT(small[0] == left + 1);
    shmem_clear_cache_line_inv(&small[0]);
    shmem_clear_cache_inv();
}

/* A column is put into a row of the neighbour's. */
static void strides(int me, int n)
{
    int i, right = (me + 1) % n, left = (me + n - 1) % n, column[8];
    for (i = 0; i < 64; i++) matrix[i / 8][i % 8] = -1;
    for (i = 0; i < 8; i++) column[i] = 100 * me + i;
    shmem_barrier_all();
    shmem_int_iput(&matrix[0][3], column, 8, 1, 8, right);
    shmem_barrier_all();
    for (i = 0; i < 64; i++) EXPECT(matrix[i / 8][i % 8] == (i % 8 == 3 ? 100 * left + i / 8 : -1));
    shmem_iget32(column, &matrix[0][3], 2, 16, 4, right);
    for (i = 0; i < 4; i++) EXPECT(column[2 * i] == 100 * me + 2 * i);
}

/* Each has as many words as its number says, and the sets of the even and the odd PEs do the same apart. */
static void active_sets(int me, int n)
{
    int i, pe, first = n > 1 ? me % 2 : 0, step = n > 1, size = n > 1 ? (n - first + 1) / 2 : 1, members = 0, sum = 0;
    long *to, *from;
    int round;
    for (round = 0; round < 4; round++) {
        for (i = 0; i < REDUCED; i++) {
            ints[i] = me + i + round;
            reals[i] = (me * 7 + i + round) % 5 + 0.5;
        }
        shmem_int_sum_to_all(int_sums, ints, REDUCED, 0, 0, n, iWrk, pSync[0]);
        shmem_double_max_to_all(real_max, reals, REDUCED, 0, 0, n, dWrk, pSync[1]);
        for (i = 0; i < REDUCED; i++) {
            double max = 0;
            for (pe = 0; pe < n; pe++)
                if ((pe * 7 + i + round) % 5 + 0.5 > max) max = (pe * 7 + i + round) % 5 + 0.5;
            EXPECT(int_sums[i] == n * (n - 1) / 2 + n * (i + round));
            EXPECT(real_max[i] == max);
        }
        /* In place. */
        shmem_int_sum_to_all(ints, ints, REDUCED, 0, 0, n, iWrk, pSync[0]);
        EXPECT(memcmp(ints, int_sums, sizeof ints) == 0);
        shmem_barrier_all();
    }
    to = (long *)shmalloc(16 * sizeof(long));
    from = (long *)shmemalign(64, 16 * sizeof(long));
    for (i = 0; i < 16; i++) {
        from[i] = 100 * me + i;
        to[i] = -7;
    }
    shmem_barrier_all();
    /* Of the set's second PE, or its only one; its own destination stays as it was. */
    shmem_broadcast64(to, from, 16, size > 1, first, step, size, bSync);
    pe = first + (size > 1 ? 2 : 0);
    for (i = 0; i < 16; i++) EXPECT(to[i] == (me == pe ? -7 : 100 * pe + i));
    for (i = 0; i < _SHMEM_BCAST_SYNC_SIZE; i++) EXPECT(bSync[i] == _SHMEM_SYNC_VALUE);
    shmem_barrier(first, step, size, barrierSync);
    shmem_collect64(every, from, me % 3 + 1, 0, 0, n, cSync);
    for (pe = 0; pe < n; pe++)
        for (i = 0; i <= pe % 3; i++, members++) EXPECT(every[members] == 100 * pe + i);
    shmem_barrier_all();
    shmem_fcollect64(every, from, 2, first, step, size, cSync);
    for (i = 0; i < size; i++) EXPECT(every[2 * i + 1] == 100 * (first + 2 * i) + 1);
    ints[0] = 1;
    shmem_barrier(first, step, size, barrierSync);
    shmem_int_sum_to_all(int_sums, ints, 1, first, step, size, iWrk, pSync[0]);
    sum = int_sums[0];
    EXPECT(sum == size);
    shmem_barrier_all();
    shfree(from);
    shfree(to);
}

static void atomics(int me, int n)
{
    int i;
    long old;
    for (i = 0; i < 10; i++) {
        shmem_long_inc(&counter, 0);
        (void)shmem_long_finc(&counter, 0);
        shmem_long_add(&counter, 3, 0);
        (void)shmem_long_fadd(&counter, 5, 0);
    }
    shmem_barrier_all();
    if (me == 0) EXPECT(counter == 100L * n);
    shmem_barrier_all();
    old = shmem_swap(&counter, 0, 0);
    EXPECT(old == 0 || old == 100L * n);
    shmem_barrier_all();
    /* Who changes 0 into its number first writes it down; the rest see it. */
    old = shmem_long_cswap(&counter, 0, me + 1, 0);
    shmem_set_lock(&lock);
    shmem_long_p(&words[0], shmem_long_g(&words[0], 0) + (old == 0), 0);
    shmem_clear_lock(&lock);
    shmem_barrier_all();
}

int main(void)
{
    int i, me, n;
    for (i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; i++) pSync[0][i] = pSync[1][i] = _SHMEM_SYNC_VALUE;
    for (i = 0; i < _SHMEM_BCAST_SYNC_SIZE; i++) bSync[i] = _SHMEM_SYNC_VALUE;
    for (i = 0; i < _SHMEM_COLLECT_SYNC_SIZE; i++) cSync[i] = _SHMEM_SYNC_VALUE;
    for (i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++) barrierSync[i] = _SHMEM_SYNC_VALUE;
    start_pes(0);
    me = my_pe();
    n = num_pes();
    EXPECT(me == _my_pe() && n == _num_pes() && n <= MAX_PES);
    shmem_barrier_all();
    put_and_flag(me, n);
    strides(me, n);
    active_sets(me, n);
    words[0] = 0;
    shmem_barrier_all();
    atomics(me, n);
    if (me == 0) {
        EXPECT(words[0] == 1);
        printf("right\n");
    }
    return 0;
}
