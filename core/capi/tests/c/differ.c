/* Collective calls in which PEs differ, or one gives what makes no sense, in jobs of several: each PE hears of it, by a status
   or by the job's end with a message, none waits for ever, and calls go on well after a status. argv[1] says what ends the
   job; without it nothing does. */
#include "check.h"

#include <stdint.h>

enum { ROOM = 256 };

static shmem_team_t team;
static int size, place;
static long *x, *y;

/* Of one PE alone, or of all. */
static int odd;

/* The next call goes well. */
static void goes_on(void)
{
    int i;
    for (i = 0; i < 3; i++) x[i] = place + i;
    CHECK(shmem_long_sum_reduce(team, y, x, 3) == 0);
    for (i = 0; i < 3; i++) CHECK(y[i] == size * (size - 1) / 2 + i * size);
}

/* On every PE. */
#define FAILS(...)                 \
    do {                           \
        CHECK((__VA_ARGS__) != 0); \
        goes_on();                 \
    } while (0)

/* The same of a broadcast, whose root may hear by its next call. */
#define FAILS_BY_NEXT(...)                                       \
    do {                                                         \
        CHECK((__VA_ARGS__) != 0 || shmem_team_sync(team) != 0); \
        goes_on();                                               \
    } while (0)

/* More than there can be, of a small number where this PE is none of those that differ. */
#define HUGE(usual) (odd ? SIZE_MAX : (size_t)(usual))

static void too_many(void)
{
    FAILS(shmem_long_alltoall(team, y, x, HUGE(1)));
    FAILS(shmem_long_alltoalls(team, y, x, 1, 1, HUGE(1)));
    FAILS(shmem_long_alltoalls(team, y, x, odd ? PTRDIFF_MAX : 1, 1, 2));
    FAILS(shmem_long_fcollect(team, y, x, HUGE(1)));
    FAILS(shmem_long_collect(team, y, x, HUGE(1)));
    FAILS(shmem_long_sum_reduce(team, y, x, HUGE(1)));
    FAILS(shmem_long_max_reduce(team, x, x, HUGE(1)));
    FAILS(shmem_long_sum_inscan(team, y, x, HUGE(1)));
    FAILS(shmem_alltoallmem(team, y, x, HUGE(8)));
    FAILS(shmem_fcollectmem(team, y, x, HUGE(8)));
    FAILS(shmem_collectmem(team, y, x, HUGE(8)));
    /* Which times their size is a small number again. */
    FAILS(shmem_long_sum_reduce(team, y, x, odd ? SIZE_MAX / 8 + 2 : 1));
    FAILS(shmem_long_fcollect(team, y, x, odd ? SIZE_MAX / 8 + 2 : 1));
    /* Which times as many as there are PEs is. */
    FAILS(shmem_long_alltoall(team, y, x, odd ? SIZE_MAX / (size_t)size + 1 : 1));
}

/* What is right on each by itself. */
static void differing(void)
{
    const size_t count = odd ? 3 : 2;
    FAILS(shmem_long_alltoall(team, y, x, count));
    FAILS(shmem_long_alltoalls(team, y, x, 1, 1, count));
    FAILS(shmem_long_alltoalls(team, y, x, (ptrdiff_t)count, 1, 1));
    FAILS(shmem_long_fcollect(team, y, x, count));
    FAILS(shmem_long_sum_reduce(team, y, x, count));
    FAILS(shmem_long_sum_exscan(team, y, x, count));
    FAILS(shmem_long_sum_reduce(team, odd ? y + 1 : y, x, 2));
    FAILS(odd ? shmem_long_sum_reduce(team, y, x, 2) : shmem_long_max_reduce(team, y, x, 2));
    FAILS(odd ? shmem_long_sum_reduce(team, y, x, 2) : shmem_int_sum_reduce(team, (int *)y, (int *)x, 2));
    FAILS(odd ? shmem_team_sync(team) : shmem_long_fcollect(team, y, x, 2));
    FAILS_BY_NEXT(shmem_long_broadcast(team, y, x, count, 0));
    FAILS_BY_NEXT(shmem_long_broadcast(team, y, x, count, size - 1));
    FAILS_BY_NEXT(shmem_long_broadcast(team, y, x, 2, odd));
    FAILS_BY_NEXT(shmem_long_broadcast(team, y, x, 2, odd ? size : 0));
    /* How many each gives may differ. */
    CHECK(shmem_long_collect(team, y, x, count) == 0);
    /* What one gives lies where something comes. */
    FAILS(shmem_long_collect(team, y, odd ? y + 1 : x, 2));
    FAILS(shmem_long_collect(team, y, odd ? y + 1 : x, 40));
}

static void splits(void)
{
    shmem_team_t made = SHMEM_TEAM_WORLD, other = SHMEM_TEAM_WORLD;
#define NONE_IS_MADE(...)                                                            \
    do {                                   \
        FAILS(__VA_ARGS__);                \
        CHECK(made == SHMEM_TEAM_INVALID); \
        made = SHMEM_TEAM_WORLD;           \
    } while (0)
    NONE_IS_MADE(shmem_team_split_strided(team, 0, 1, odd ? 1 : 2, NULL, 0, &made));
    NONE_IS_MADE(shmem_team_split_strided(team, odd, 1, 1, NULL, 0, &made));
    NONE_IS_MADE(shmem_team_split_strided(team, 0, odd ? 2 : 1, 1, NULL, 0, &made));
    NONE_IS_MADE(shmem_team_split_strided(team, 0, 1, odd ? 0 : 1, NULL, 0, &made));
    NONE_IS_MADE(shmem_team_split_strided(team, odd ? -1 : 0, 1, 1, NULL, 0, &made));
    NONE_IS_MADE(shmem_team_split_2d(team, odd ? 1 : 2, NULL, 0, &made, NULL, 0, &other));
    CHECK(other == SHMEM_TEAM_INVALID);
    other = SHMEM_TEAM_WORLD;
    NONE_IS_MADE(shmem_team_split_2d(team, odd ? 0 : 2, NULL, 0, &made, NULL, 0, &other));
    CHECK(other == SHMEM_TEAM_INVALID);
    if (odd)
        FAILS(shmem_team_sync(team));
    else
        NONE_IS_MADE(shmem_team_split_strided(team, 0, 1, 1, NULL, 0, &made));
}

/* PE 0 has a team that is none where the others have one, does not look at the status, and finalizes. */
static void without_a_team(shmem_team_t of_all, shmem_team_t none)
{
    shmem_team_sync(of_all);
    if (me == 0)
        CHECK(shmem_long_sum_reduce(none, y, x, 1) != 0);
    else
        CHECK(shmem_long_sum_reduce(of_all, y, x, 1) != 0);
}

static int is(const char *what, const char *name)
{
    return strcmp(what, name) == 0;
}

int main(int argc, char **argv)
{
    static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE], sync[SHMEM_SYNC_SIZE];
    const char *what = argc > 1 ? argv[1] : "";
    shmem_team_t back, ended, of_all;
    int i;
    begin();
    for (i = 0; i < SHMEM_SYNC_SIZE; i++) sync[i] = SHMEM_SYNC_VALUE;
    x = shmem_calloc(ROOM, sizeof(long));
    y = shmem_calloc(ROOM, sizeof(long));
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &ended) == 0);
    shmem_team_destroy(ended);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &back) == 0);
    odd = me == n - 1;
    of_all = strstr(what, "shared") ? SHMEM_TEAM_SHARED : strstr(what, "world") ? SHMEM_TEAM_WORLD : back;
    if (strstr(what, "no team"))
        without_a_team(of_all, SHMEM_TEAM_INVALID);
    if (strstr(what, "ended team"))
        without_a_team(of_all, ended);
    if (strstr(what, "twice")) {
        /* And the library is as it was made. */
        shmem_finalize();
        begin();
        CHECK(shmem_team_sync(SHMEM_TEAM_SHARED) == 0);
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &back) == 0);
        CHECK(shmem_team_sync(back) == 0);
    }
    if (is(what, "broadcast of too many")) shmem_long_broadcast(SHMEM_TEAM_WORLD, y, x, HUGE(1), 0);
    if (is(what, "active set of too many")) shmem_fcollect64(y, x, HUGE(1), 0, 0, n, sync);
    if (is(what, "active set of differing numbers")) shmem_long_sum_to_all(y, x, odd ? 3 : 2, 0, 0, n, work, sync);
    if (is(what, "allocation of differing sizes")) shmem_malloc(odd ? 64 : 128);
    if (is(what, "") && n > 1) {
        for (i = 0; i < 3; i++) {
            team = i ? back : SHMEM_TEAM_WORLD;
            place = shmem_team_my_pe(team), size = n;
            /* PE n - 1 is the first of `back`. */
            odd = i < 2 ? me == n - 1 : place == n - 1;
            too_many();
            differing();
            splits();
            odd = 1;
            too_many();
        }
    }
    shmem_finalize();
    return 0;
}
