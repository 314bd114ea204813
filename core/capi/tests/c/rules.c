/* Rules of the specification that no other program here shows. */
#include "check.h"

static long flag, fixed[4];
static uint64_t signals;

/* What a put takes may lie anywhere, and one call may be of several pieces of memory. */
static void any_source(void)
{
    static const long constant[2] = {11, 12};
    long stack[2] = {21, 22}, *x = shmem_calloc(8, sizeof(long)), *own = malloc(2 * sizeof(long));
    own[0] = 31, own[1] = 32;
    shmem_long_put(x, constant, 2, right);
    shmem_long_put(x + 2, stack, 2, right);
    shmem_long_put(x + 4, own, 2, right);
    stack[0] = own[0] = 0; /* A put that has returned is done with it. */
    shmem_putmem_signal(x + 6, "symmetric", 10, &signals, 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&signals, SHMEM_CMP_EQ, 1);
    CHECK(strcmp((char *)(x + 6), "symmetric") == 0);
    shmem_barrier_all();
    CHECK(x[0] == 11 && x[1] == 12 && x[2] == 21 && x[3] == 22 && x[4] == 31 && x[5] == 32);
    /* Nothing is nothing, wherever it is. */
    shmem_putmem(stack, own, 0, right);
    shmem_getmem(x, stack, 0, right);
    shmem_long_iput(stack, own, 1, 1, 0, right);
    CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, stack, own, 0, 0) == 0);
    shmem_barrier_all();
    free(own);
    shmem_free(x);
}

/* PE 0 is in no call while the others reach its memory. */
static void without_its_help(void)
{
    long *x = shmem_calloc(3, sizeof(long));
    volatile long *seen = x;
    if (me == 0) {
        while (seen[0] != n - 1 || seen[1] == 0 || (n > 2 && seen[2] == 0)) {
            if (n == 1) break;
        }
    } else {
        shmem_long_atomic_add(x, 1, 0);
        CHECK(shmem_long_g(x, 0) >= 1);
        if (me == 1) shmem_long_put(x + 1, &(long){5}, 1, 0);
        if (me == 2) CHECK(shmem_long_atomic_compare_swap(x + 2, 0, 7, 0) == 0);
        shmem_quiet();
    }
    shmem_barrier_all();
    shmem_free(x);
}

/* What a quiet has completed everybody sees, of whomever they hear of it; and the same PE's get. */
static void quiet_is_for_all(void)
{
    long *x = shmem_calloc(2, sizeof(long)), i;
    const int third = (me + 2) % n;
    for (i = 1; i <= 20; i++) {
        shmem_long_put_nbi(x, &i, 1, right);
        shmem_quiet();
        CHECK(shmem_long_g(x, right) == i);
        shmem_long_p(x + 1, i, third);
        /* The one two places before has put to the one before. */
        shmem_long_wait_until(x + 1, SHMEM_CMP_EQ, i);
        CHECK(shmem_long_g(x, left) == i);
        shmem_barrier_all();
    }
    shmem_free(x);
}

/* Each context is for itself, and one that ends completes what is its. */
static void contexts(void)
{
    long *x = shmem_calloc(4, sizeof(long));
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(SHMEM_CTX_NOSTORE, &ctx) == 0);
    shmem_ctx_long_p(ctx, x, 1, right);
    shmem_ctx_fence(ctx);
    shmem_ctx_long_p(ctx, x + 1, 2, right);
    shmem_long_p(x + 2, 3, right);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3);
    shmem_barrier_all();
    shmem_free(x);
}

/* Who allocates or frees waits for all, and what was put is there; where there is nothing to do nobody waits. */
static void barriers_of_the_heap(void)
{
    void *y;
    int i;
    flag = 0;
    for (i = 0; i < 4; i++) fixed[i] = 0;
    shmem_barrier_all();
    shmem_long_p(fixed, me + 1, right);
    y = shmem_malloc(64);
    CHECK(fixed[0] == left + 1);
    shmem_long_p(fixed + 1, me + 2, right);
    shmem_free(y);
    CHECK(fixed[1] == left + 2);
    shmem_long_p(fixed + 2, me + 3, right);
    CHECK(shmem_malloc((size_t)1 << 60) == NULL);
    CHECK(fixed[2] == left + 3);
    /* One after the other: with a barrier in them they would wait forever. */
    if (me > 0) shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    CHECK(shmem_malloc(0) == NULL && shmem_align(64, 0) == NULL && shmem_calloc(0, 8) == NULL && shmem_realloc(NULL, 0) == NULL);
    shmem_free(NULL);
    if (me < n - 1) shmem_long_p(&flag, 1, me + 1);
    shmem_barrier_all();
}

/* In place, from one PE that gives nothing, and several teams in turn. */
static void collectives(void)
{
    long *x = shmem_calloc(16, sizeof(long)), *all = shmem_calloc(4 * (size_t)n, sizeof(long)), i;
    static long pSync[SHMEM_SYNC_SIZE];
    shmem_team_t front, back;
    const int most = n > 1 ? n - 1 : 1;
    for (i = 0; i < SHMEM_SYNC_SIZE; i++) pSync[i] = SHMEM_SYNC_VALUE;
    for (i = 0; i < 16; i++) x[i] = 100 * me + i;
    shmem_barrier_all();
    CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, x, x, 16, n - 1) == 0 && x[3] == 100 * (n - 1) + 3);
    shmem_barrier_all();
    x[3] = me;
    shmem_barrier_all();
    shmem_broadcast64(x, x, 16, 0, 0, 0, n, pSync);
    CHECK(x[3] == 0);
    shmem_barrier_all();
    x[0] = me;
    CHECK(shmem_long_collect(SHMEM_TEAM_WORLD, all, x, me % 2) == 0);
    for (i = 0; i < n / 2; i++) CHECK(all[i] == 2 * i + 1);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, most, NULL, 0, &front) == 0);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - most, 1, most, NULL, 0, &back) == 0);
    for (i = 0; i < 10; i++) {
        x[1] = i, x[3] = 2 * i;
        if (front != SHMEM_TEAM_INVALID) CHECK(shmem_long_sum_reduce(front, x + 2, x + 1, 1) == 0 && x[2] == i * most);
        if (back != SHMEM_TEAM_INVALID) CHECK(shmem_long_sum_reduce(back, x + 4, x + 3, 1) == 0 && x[4] == 2 * i * most);
    }
    shmem_barrier_all();
    shmem_free(all);
    shmem_free(x);
    /* The teams, and this context, end with the library. */
}

/* A lock that is had is not given to another. */
static void one_has_the_lock(void)
{
    static long lock;
    if (me == 0) shmem_set_lock(&lock);
    shmem_barrier_all();
    if (me != 0) CHECK(shmem_test_lock(&lock) == 1);
    shmem_barrier_all();
    if (me == 0) shmem_clear_lock(&lock);
    shmem_barrier_all();
    if (me == n - 1) {
        CHECK(shmem_test_lock(&lock) == 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
}

int main(void)
{
    shmem_ctx_t left_over;
    begin();
    any_source();
    without_its_help();
    quiet_is_for_all();
    contexts();
    barriers_of_the_heap();
    collectives();
    one_has_the_lock();
    CHECK(shmem_ctx_create(0, &left_over) == 0);
    shmem_ctx_long_p(left_over, fixed, 77, right);
    shmem_finalize();
    return fixed[0] != 77;
}
