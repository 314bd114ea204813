/* Order, locks, setup, and what is asked of the library. */
#define _POSIX_C_SOURCE 199309L
#include <sched.h>
#include <shmemx.h>
#include <time.h>

#include "check.h"

static void order(void)
{
    long *x = shmem_calloc(2, sizeof(long)), i;
    int *all = malloc(n * sizeof(int)), pe;
    shmem_ctx_t ctx;
    for (pe = 0; pe < n; pe++)
        all[pe] = pe;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    for (i = 1; i <= 100; i++) {
        shmem_long_p(x, i, right);
        shmem_fence();
        shmem_long_p(x + 1, i, right);
        shmem_long_wait_until(x + 1, SHMEM_CMP_GE, i);
        CHECK(shmem_long_g(x, me) >= i);
        if (i % 3 == 0)
            shmem_quiet();
        if (i % 5 == 0)
            shmem_pe_quiet(all, n);
        shmem_pe_quiet(NULL, 0);
        shmem_ctx_fence(ctx);
        shmem_ctx_quiet(ctx);
        shmem_ctx_pe_quiet(ctx, all, n);
        shmem_sync_all();
    }
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    free(all);
    shmem_free(x);
}

/* What is on its way on a context comes though no call is on that: waits of any kind drive it. */
static void driven(void)
{
    const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE};
    long *x = shmem_calloc(3, sizeof(long)), i;
    shmem_ctx_t ctx;
    for (i = 1; i <= 9; i++) {
        CHECK(shmem_ctx_create(options[i % 3], &ctx) == 0);
        shmem_ctx_long_p(ctx, x, i, right);
        shmem_long_wait_until(x, SHMEM_CMP_GE, i);
        shmem_ctx_long_p(ctx, x + 1, i, right);
        while (!shmem_long_test(x + 1, SHMEM_CMP_GE, i))
            ;
        shmem_ctx_long_p(ctx, x + 2, i, right);
        if (me % 2 == 0)
            shmem_long_wait_until(x + 2, SHMEM_CMP_GE, i);
        shmem_sync_all();
        shmem_ctx_destroy(ctx);
        shmem_sync_all();
    }
    shmem_free(x);
}

static void locks(void)
{
    long *locks = shmem_calloc(3, sizeof(long)), *count = shmem_calloc(3, sizeof(long));
    int i, which;
    for (i = 0; i < 60; i++) {
        which = i % 3;
        if (which == 2) {
            while (shmem_test_lock(locks + which) != 0)
                ;
        } else {
            shmem_set_lock(locks + which);
        }
        shmem_long_p(count + which, shmem_long_g(count + which, 0) + 1, 0);
        shmem_clear_lock(locks + which);
    }
    shmem_barrier_all();
    if (me == 0)
        CHECK(count[0] == 20 * n && count[1] == 20 * n && count[2] == 20 * n);
    shmem_barrier_all();
    shmem_free(count);
    shmem_free(locks);
}

/* Who is the last that has asked for a lock, from 1; 0 where it is free. A program may not look at that: it is how the library
   keeps its queue. */
static unsigned last_of(const long *lock)
{
    unsigned last = 0;
    int pe;
    for (pe = 0; pe < n; pe++)
        last |= (unsigned)shmem_long_g(lock, pe);
    return last;
}

/* PEs get a lock in the order in which they asked: PE 0, which has it until all wait, then the last PE, down to PE 1. */
static void first_come_first_served(void)
{
    long *lock = shmem_calloc(1, sizeof(long)), *count = shmem_calloc(1, sizeof(long));
    const int turn = (n - me) % n, before = turn == 1 ? 0 : (me + 1) % n, last = n == 1 ? 0 : 1;
    if (me > 0)
        while (last_of(lock) != (unsigned)before + 1)
            sched_yield();
    shmem_set_lock(lock);
    if (me == 0)
        while (last_of(lock) != (unsigned)last + 1)
            sched_yield();
    CHECK(shmem_long_atomic_fetch_inc(count, 0) == turn);
    shmem_clear_lock(lock);
    shmem_barrier_all();
    shmem_free(count);
    shmem_free(lock);
}

static void information(void)
{
    int major = 0, minor = 0;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
    memset(name, 'x', sizeof name);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
    shmem_pcontrol(0);
    shmem_pcontrol(2, "anything", 3.5);
}

static double seconds(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* In seconds, and one clock for the PEs of a host. */
static void the_time(void)
{
    double *then = shmem_calloc(1, sizeof(double)), before = seconds();
    *then = shmemx_wtime();
    CHECK(before <= *then && *then <= seconds());
    shmem_barrier_all();
    if (is_here(right))
        CHECK(shmem_double_g(then, right) <= shmemx_wtime());
    shmem_barrier_all();
    shmem_free(then);
}

int main(void)
{
    int initialized = 9, provided = -1, again = -1;
    shmem_query_initialized(&initialized);
    CHECK(initialized == 0);
    CHECK(shmemx_wtime() > 0);
    CHECK(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided) == 0);
    CHECK(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE);
    shmem_query_initialized(&initialized);
    CHECK(initialized == 1);
    shmem_query_thread(&again);
    CHECK(again == provided);
    /* Nested: the inner finalize ends nothing. */
    begin();
    order();
    driven();
    shmem_finalize();
    CHECK(shmem_my_pe() == me);
    locks();
    first_come_first_served();
    information();
    the_time();
    shmem_finalize();
    shmem_query_initialized(&initialized);
    CHECK(initialized == 0);
    return 0;
}
