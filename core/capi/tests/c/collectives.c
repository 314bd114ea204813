/* Collective calls of teams: every function, of every type, of the world, of half of it and of the shared team. */
#include "check.h"
#include <complex.h>

enum { LEN = 6 };

/* The team of a round: who is in it, and this PE's place there. */
static shmem_team_t team;
static int size, place, first, step;

/* The world's number of the team's PE i. */
#define PE(i) (first + step * (i))

#define MOVES_BODY(T, P, S)                                                                   \
    T *x = shmem_malloc(2 * LEN * n * sizeof(T)), *y = shmem_malloc(2 * LEN * n * sizeof(T)); \
    int i, j, at;                                                                             \
    if (place >= 0) {                                                                         \
        for (i = 0; i < LEN * size; i++)                                                      \
            x[i] = (T)(me + i), y[i] = (T)0;                                                  \
        CHECK(P##alltoall##S(team, y, x, LEN) == 0);                                          \
        for (i = 0; i < size; i++)                                                            \
            for (j = 0; j < LEN; j++)                                                         \
                CHECK(y[i * LEN + j] == (T)(PE(i) + place * LEN + j));                        \
        for (i = 0; i < 2 * LEN * size; i++)                                                  \
            y[i] = (T)0;                                                                      \
        CHECK(P##alltoalls##S(team, y, x, 2, 1, LEN) == 0);                                   \
        for (i = 0; i < size; i++)                                                            \
            for (j = 0; j < LEN; j++) {                                                       \
                CHECK(y[2 * (i * LEN + j)] == (T)(PE(i) + place * LEN + j));                  \
                CHECK(y[2 * (i * LEN + j) + 1] == (T)0);                                      \
            }                                                                                 \
        CHECK(P##broadcast##S(team, y, x, LEN, size - 1) == 0);                               \
        for (i = 0; i < LEN; i++)                                                             \
            CHECK(y[i] == (T)(PE(size - 1) + i));                                             \
        CHECK(P##broadcast##S(team, y, y, LEN, 0) == 0);                                      \
        CHECK(P##fcollect##S(team, y, x, LEN) == 0);                                          \
        for (i = 0; i < size; i++)                                                            \
            for (j = 0; j < LEN; j++)                                                         \
                CHECK(y[i * LEN + j] == (T)(PE(i) + j));                                      \
        /* PE i gives i elements. */                                                          \
        CHECK(P##collect##S(team, y, x, place) == 0);                                         \
        for (i = 0, at = 0; i < size; at += i++)                                              \
            for (j = 0; j < i; j++)                                                           \
                CHECK(y[at + j] == (T)(PE(i) + j));                                           \
        /* Nothing. */                                                                        \
        CHECK(P##alltoall##S(team, NULL, NULL, 0) == 0);                                      \
        CHECK(P##alltoalls##S(team, NULL, NULL, 1, 1, 0) == 0);                               \
        CHECK(P##broadcast##S(team, NULL, NULL, 0, 0) == 0);                                  \
        CHECK(P##fcollect##S(team, NULL, NULL, 0) == 0);                                      \
        CHECK(P##collect##S(team, NULL, NULL, 0) == 0);                                       \
    }                                                                                         \
    shmem_free(y);                                                                            \
    shmem_free(x)

#define MOVES(N, T)                 \
    static void moves_##N(void)     \
    {                               \
        MOVES_BODY(T, shmem_##N##_, ); \
    }
RMA_TYPES(MOVES)

static void moves_mem(void)
{
    MOVES_BODY(unsigned char, shmem_, mem);
}

/* Over LEN values, to another place and in place. Values are small, so that every type has all results. */
#define EACH(T, CALL, FOLD, START)                                       \
    do {                                                                 \
        T *x = shmem_malloc(LEN * sizeof(T)), *y = shmem_malloc(LEN * sizeof(T)); \
        int i, j;                                                        \
        for (i = 0; i < LEN; i++)                                        \
            x[i] = GIVEN(T, place + i % 3 + 1), y[i] = (T)0;             \
        if (place >= 0) {                                                \
            CHECK(CALL(team, y, x, LEN) == 0);                           \
            CHECK(CALL(team, x, x, LEN) == 0);                           \
            CHECK(CALL(team, NULL, NULL, 0) == 0);                       \
            for (i = 0; i < LEN; i++) {                                  \
                T a = START;                                             \
                for (j = 0; j < UPTO; j++) {                             \
                    T b = GIVEN(T, j + i % 3 + 1);                       \
                    a = (T)(FOLD);                                       \
                }                                                        \
                CHECK(y[i] == a && x[i] == a);                           \
            }                                                            \
        }                                                                \
        shmem_free(y);                                                   \
        shmem_free(x);                                                   \
    } while (0)

#define BITS(N, T)                                                        \
    static void bits_##N(void)                                            \
    {                                                                     \
        EACH(T, shmem_##N##_and_reduce, a & b, (T)~(T)0);        \
        EACH(T, shmem_##N##_or_reduce, a | b, (T)0);                      \
        EACH(T, shmem_##N##_xor_reduce, a ^ b, (T)0);                     \
    }
#define ORDER(N, T)                                                       \
    static void order_##N(void)                                           \
    {                                                                     \
        EACH(T, shmem_##N##_max_reduce, b > a ? b : a, (T)0);             \
        EACH(T, shmem_##N##_min_reduce, b < a ? b : a, (T)100);           \
    }
#define SUM(N, T)                                                         \
    static void sum_##N(void)                                             \
    {                                                                     \
        EACH(T, shmem_##N##_sum_reduce, a + b, (T)0);                     \
        EACH(T, shmem_##N##_prod_reduce, a * b, (T)1);                    \
    }
#define UPTO size
REDUCE_BITS_TYPES(BITS)
OLD_REDUCE_BITS_TYPES(BITS)
RMA_TYPES(ORDER)
REDUCE_SUM_TYPES(SUM)
#undef UPTO
#define UPTO (place + 1)
#define INSCAN(N, T)                                      \
    static void inscan_##N(void)                          \
    {                                                     \
        SCAN(T, shmem_##N##_sum_inscan);                  \
    }
/* A scan in place, or to another. */
#define SCAN(T, CALL) EACH(T, CALL, a + b, (T)0)
REDUCE_SUM_TYPES(INSCAN)
#undef UPTO
#define UPTO place
#define EXSCAN(N, T)                                      \
    static void exscan_##N(void)                          \
    {                                                     \
        SCAN(T, shmem_##N##_sum_exscan);                  \
    }
REDUCE_SUM_TYPES(EXSCAN)

/* Many of one team after each other, of large objects and of small ones. */
static void back_to_back(void)
{
    size_t many = 50000, i;
    long *x = shmem_malloc(many * sizeof(long)), *y = shmem_malloc(many * sizeof(long));
    long *one = shmem_malloc(sizeof(long)), *sum = shmem_malloc(sizeof(long));
    int round;
    for (i = 0; i < many; i++)
        x[i] = me + (long)i;
    for (round = 0; place >= 0 && round < 20; round++) {
        *one = round + place;
        CHECK(shmem_long_sum_reduce(team, sum, one, 1) == 0);
        CHECK(*sum == (long)size * round + size * (size - 1) / 2);
        CHECK(shmem_long_broadcast(team, one, sum, 1, round % size) == 0);
        CHECK(*one == *sum);
        CHECK(shmem_team_sync(team) == 0);
    }
    if (place >= 0) {
        CHECK(shmem_long_max_reduce(team, y, x, many) == 0);
        for (i = 0; i < many; i += 999)
            CHECK(y[i] == (PE(size - 1) > PE(0) ? PE(size - 1) : PE(0)) + (long)i);
    }
    shmem_free(sum);
    shmem_free(one);
    shmem_free(y);
    shmem_free(x);
}

#define CALL_MOVES(N, T) moves_##N();
#define CALL_BITS(N, T) bits_##N();
#define CALL_ORDER(N, T) order_##N();
#define CALL_SUM(N, T) sum_##N(); inscan_##N(); exscan_##N();

static void round_of(shmem_team_t of, int first_pe, int stride)
{
    team = of;
    first = first_pe;
    step = stride;
    size = of == SHMEM_TEAM_INVALID ? 0 : shmem_team_n_pes(of);
    place = of == SHMEM_TEAM_INVALID ? -1 : shmem_team_my_pe(of);
    RMA_TYPES(CALL_MOVES)
    moves_mem();
    REDUCE_BITS_TYPES(CALL_BITS)
    OLD_REDUCE_BITS_TYPES(CALL_BITS)
    RMA_TYPES(CALL_ORDER)
    REDUCE_SUM_TYPES(CALL_SUM)
    back_to_back();
}

/* What one member cannot do fails on all, and the team goes on. */
static void refused(void)
{
    long mine = 0, *x = shmem_calloc(n, sizeof(long)), *y = shmem_calloc(n, sizeof(long));
    shmem_team_t team, other;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &team) == 0);
    CHECK(shmem_long_sum_reduce(team, me == 0 ? &mine : y, x, 1) != 0);
    CHECK(shmem_long_fcollect(team, y, me == n - 1 ? &mine : x, 1) != 0);
    CHECK(shmem_long_alltoalls(team, y, x, 1, me == 0 ? 0 : 1, 1) != 0);
    CHECK(shmem_team_split_strided(team, me == 0 ? -1 : 0, 1, 1, NULL, 0, &other) != 0);
    CHECK(other == SHMEM_TEAM_INVALID);
    *x = 1;
    CHECK(shmem_long_sum_reduce(team, y, x, 1) == 0 && *y == n);
    shmem_team_destroy(team);
    shmem_free(y);
    shmem_free(x);
}

int main(void)
{
    shmem_team_t odd;
    begin();
    round_of(SHMEM_TEAM_WORLD, 0, 1);
    round_of(SHMEM_TEAM_SHARED, shmem_team_translate_pe(SHMEM_TEAM_SHARED, 0, SHMEM_TEAM_WORLD), 1);
    /* Every second PE, from the last one down. */
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -2, (n + 1) / 2, NULL, 0, &odd) == 0);
    round_of(odd, n - 1, -2);
    shmem_sync_all();
    shmem_barrier_all();
    shmem_team_destroy(odd);
    refused();
    shmem_finalize();
    return 0;
}
