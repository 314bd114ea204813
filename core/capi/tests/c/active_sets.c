/* Collective calls of active sets: every function, of every type, of all PEs and of every second. */
#include "check.h"
#include <complex.h>

enum { LEN = 5 };

static long *pSync;
/* The set of a round. */
static int start, log_stride, size;

#define PE(i) (start + (i) * (1 << log_stride))
#define SET start, log_stride, size, pSync

/* This PE's place in the set; -1 if it has none. */
static int place;

#define MOVES(S)                                                                          \
    static void moves_##S(void)                                                           \
    {                                                                                     \
        int##S##_t *x = shmem_malloc(2 * LEN * n * sizeof *x);                            \
        int##S##_t *y = shmem_malloc(2 * LEN * n * sizeof *x);                            \
        int i, j, at;                                                                     \
        for (i = 0; i < 2 * LEN * n; i++)                                                 \
            x[i] = me * 100 + i, y[i] = -1;                                               \
        shmem_barrier_all();                                                              \
        if (place >= 0) {                                                                 \
            /* The root's own stays. */                                                   \
            shmem_broadcast##S(y, x, LEN, size - 1, SET);                                 \
            for (i = 0; i < LEN; i++)                                                     \
                CHECK(y[i] == (place == size - 1 ? -1 : PE(size - 1) * 100 + i));         \
            shmem_fcollect##S(y, x, LEN, SET);                                            \
            for (i = 0; i < size; i++)                                                    \
                for (j = 0; j < LEN; j++)                                                 \
                    CHECK(y[i * LEN + j] == PE(i) * 100 + j);                             \
            shmem_collect##S(y, x, place + 1, SET);                                       \
            for (i = 0, at = 0; i < size; at += ++i)                                      \
                for (j = 0; j <= i; j++)                                                  \
                    CHECK(y[at + j] == PE(i) * 100 + j);                                  \
            shmem_alltoall##S(y, x, LEN, SET);                                            \
            for (i = 0; i < size; i++)                                                    \
                for (j = 0; j < LEN; j++)                                                 \
                    CHECK(y[i * LEN + j] == PE(i) * 100 + place * LEN + j);               \
            shmem_alltoalls##S(y, x, 1, 2, LEN, SET);                                     \
            for (i = 0; i < size; i++)                                                    \
                for (j = 0; j < LEN; j++)                                                 \
                    CHECK(y[i * LEN + j] == PE(i) * 100 + 2 * (place * LEN + j));         \
            shmem_broadcast##S(NULL, NULL, 0, 0, SET);                                    \
            shmem_fcollect##S(NULL, NULL, 0, SET);                                        \
            shmem_collect##S(NULL, NULL, 0, SET);                                         \
            shmem_alltoall##S(NULL, NULL, 0, SET);                                        \
            shmem_alltoalls##S(NULL, NULL, 1, 1, 0, SET);                                 \
        }                                                                                 \
        shmem_free(y);                                                                    \
        shmem_free(x);                                                                    \
    }
OLD_SIZES(MOVES)

#define EACH(N, T, OP, FOLD, START)                                                     \
    do {                                                                                \
        T *x = shmem_malloc(LEN * sizeof(T)), *y = shmem_malloc(LEN * sizeof(T));       \
        T *pWrk = shmem_malloc((LEN + SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof(T));      \
        int i, j;                                                                       \
        for (i = 0; i < LEN; i++)                                                       \
            x[i] = GIVEN(T, place + i % 3 + 1), y[i] = (T)0;                            \
        shmem_barrier_all();                                                            \
        if (place >= 0) {                                                               \
            shmem_##N##_##OP##_to_all(NULL, NULL, 0, SET_FOR(pWrk));                    \
            shmem_##N##_##OP##_to_all(y, x, LEN, SET_FOR(pWrk));                        \
            for (i = 0; i < LEN; i++) {                                                 \
                T a = START;                                                            \
                for (j = 0; j < size; j++) {                                            \
                    T b = GIVEN(T, j + i % 3 + 1);                                      \
                    a = (T)(FOLD);                                                      \
                }                                                                       \
                CHECK(y[i] == a);                                                       \
            }                                                                           \
        }                                                                               \
        shmem_free(pWrk);                                                               \
        shmem_free(y);                                                                  \
        shmem_free(x);                                                                  \
    } while (0)
#define SET_FOR(pWrk) start, log_stride, size, pWrk, pSync

#define BITS(N, T)                              \
    static void bits_##N(void)                  \
    {                                           \
        EACH(N, T, and, a & b, (T)~(T)0);       \
        EACH(N, T, or, a | b, (T)0);            \
        EACH(N, T, xor, a ^ b, (T)0);           \
    }
#define ORDER(N, T)                             \
    static void order_##N(void)                 \
    {                                           \
        EACH(N, T, max, b > a ? b : a, (T)0);   \
        EACH(N, T, min, b < a ? b : a, (T)100); \
    }
#define SUM(N, T)                               \
    static void sum_##N(void)                   \
    {                                           \
        EACH(N, T, sum, a + b, (T)0);           \
        EACH(N, T, prod, a * b, (T)1);          \
    }
OLD_REDUCE_BITS_TYPES(BITS)
OLD_REDUCE_ORDER_TYPES(ORDER)
OLD_REDUCE_SUM_TYPES(SUM)

#define CALL_MOVES(S) moves_##S();
#define CALL_BITS(N, T) bits_##N();
#define CALL_ORDER(N, T) order_##N();
#define CALL_SUM(N, T) sum_##N();

static void round_of(int of_start, int of_log_stride, int of_size)
{
    int i, stride = 1 << of_log_stride;
    start = of_start, log_stride = of_log_stride, size = of_size;
    place = me >= start && (me - start) % stride == 0 ? (me - start) / stride : -1;
    if (place >= size)
        place = -1;
    OLD_SIZES(CALL_MOVES)
    OLD_REDUCE_BITS_TYPES(CALL_BITS)
    OLD_REDUCE_ORDER_TYPES(CALL_ORDER)
    OLD_REDUCE_SUM_TYPES(CALL_SUM)
    if (place >= 0) {
        (shmem_sync)(start, log_stride, size, pSync);
        shmem_barrier(start, log_stride, size, pSync);
        (shmem_sync)(start, log_stride, size, pSync);
    }
    for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        CHECK(pSync[i] == SHMEM_SYNC_VALUE);
}

/* What was put before is there after a barrier of the set. */
static void barrier_completes(void)
{
    long *x = shmem_calloc(1, sizeof(long));
    if (me < 2 && n > 1) {
        shmem_long_p(x, me + 1, 1 - me);
        shmem_barrier(0, 0, 2, pSync);
        CHECK(*x == 2 - me);
    }
    shmem_free(x);
}

/* The program may have no more teams of its own. */
static void all_teams(void)
{
    shmem_team_t team;
    while (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team) == 0)
        ;
}

int main(int argc, char **argv)
{
    int i;
    (void)argv;
    begin();
    if (argc > 1)
        all_teams();
    pSync = shmem_malloc(SHMEM_REDUCE_SYNC_SIZE * sizeof(long));
    for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        pSync[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    round_of(0, 0, n);
    round_of(0, 1, (n + 1) / 2);
    round_of(n - 1, 0, 1);
    if (n > 2)
        round_of(1, 0, n - 1);
    barrier_completes();
    shmem_free(pSync);
    shmem_finalize();
    return 0;
}
