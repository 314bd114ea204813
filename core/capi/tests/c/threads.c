/* Several threads of each PE in calls at once. */
#include "check.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 24 };

struct part {
    void (*body)(int);
    int i;
};

static void *start(void *given)
{
    struct part *part = given;
    part->body(part->i);
    return NULL;
}

/* Runs a function with every thread, by its number; this one is among them. */
static void run(void (*body)(int))
{
    pthread_t threads[THREADS];
    struct part given[THREADS];
    int i;
    for (i = 0; i < THREADS; i++) {
        given[i].body = body;
        given[i].i = i;
        CHECK(i == 0 || pthread_create(&threads[i], NULL, start, &given[i]) == 0);
    }
    start(&given[0]);
    for (i = 1; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    shmem_barrier_all();
}

static void others_run(void)
{
    int i;
    for (i = 0; i < 20; i++)
        sched_yield();
}

static long *words, *count, *block;
static long pSync[SHMEM_SYNC_SIZE];
static shmem_ctx_t common;
static shmem_team_t teams[THREADS];

static void on_the_default_context(int i)
{
    long r, given[8], *mine = block + 8 * i;
    for (r = 1; r <= ROUNDS; r++) {
        int k;
        for (k = 0; k < 8; k++)
            given[k] = r + k;
        shmem_long_put(mine, given, 8, right);
        shmem_long_p(words + i, r, right);
        shmem_long_atomic_inc(count, right);
        shmem_fence();
        shmem_long_put_nbi(mine, given, 8, right);
        shmem_quiet();
        CHECK(shmem_long_g(words + i, right) == r);
        shmem_long_get(given, mine, 8, right);
        CHECK(given[7] == r + 7);
        CHECK(shmem_long_atomic_fetch_add(count, 1, right) >= r);
        CHECK(shmem_long_atomic_fetch_add(count, -1, right) >= r + 1);
    }
}

static void on_contexts(int i)
{
    const long options[THREADS] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE};
    shmem_ctx_t own, team;
    long r;
    for (r = 1; r <= ROUNDS; r++) {
        CHECK(shmem_ctx_create(options[i], &own) == 0);
        CHECK(shmem_team_create_ctx(teams[i], options[(i + r) % THREADS], &team) == 0);
        shmem_ctx_long_p(own, words + i, r, right);
        shmem_ctx_long_atomic_inc(own, count, right);
        shmem_ctx_long_atomic_inc(team, count, right);
        shmem_ctx_long_atomic_inc(common, count, right);
        shmem_ctx_quiet(own);
        CHECK(shmem_ctx_long_g(common, words + i, right) == r);
        shmem_ctx_fence(common);
        shmem_ctx_destroy(team);
        shmem_ctx_destroy(own);
    }
    shmem_ctx_quiet(common);
}

/* A word goes round all threads of all PEs: all but one wait. */
static void in_turns(int i)
{
    long r;
    int pe = i == THREADS - 1 ? right : me;
    for (r = 1; r <= ROUNDS; r++) {
        if (i > 0 || me > 0 || r > 1)
            shmem_long_wait_until(words + i, SHMEM_CMP_EQ, r - (i == 0 && me == 0));
        shmem_long_p(words + (i + 1) % THREADS, r, pe);
    }
}

static void with_locks(int i)
{
    long *locks = words, r;
    for (r = 0; r < ROUNDS; r++) {
        int which = (int)(r + i) % 2;
        if (r % 5 == 4)
            while (shmem_test_lock(locks + which) != 0)
                sched_yield();
        else
            shmem_set_lock(locks + which);
        shmem_long_p(count + which, shmem_long_g(count + which, 0) + 1, 0);
        shmem_clear_lock(locks + which);
    }
}

/* Each thread has a team; the first one has the world, too. */
static void collective(int i)
{
    long r, *x = block + 8 * i, *y = x + 4;
    for (r = 1; r <= ROUNDS; r++) {
        shmem_team_t part;
        *x = me + r;
        CHECK(shmem_long_sum_reduce(teams[i], y, x, 1) == 0);
        CHECK(*y == n * r + n * (n - 1) / 2);
        CHECK(shmem_long_broadcast(teams[i], y, x, 1, (int)r % n) == 0);
        CHECK(*y == r % n + r);
        CHECK(shmem_team_sync(teams[i]) == 0);
        if (i == 0) {
            shmem_barrier_all();
            shmem_sync_all();
        }
        if (r % 8 == 0) {
            CHECK(shmem_team_split_strided(teams[i], n - 1, -1, n, NULL, 0, &part) == 0);
            CHECK(shmem_team_my_pe(part) == n - 1 - me);
            CHECK(shmem_long_max_reduce(part, y, x, 1) == 0 && *y == n - 1 + r);
            shmem_team_destroy(part);
        }
        if (i == 1) {
            shmem_barrier(0, 0, n, pSync);
        }
    }
}

/* A thread of PE 0 waits for the others, who wait for another thread of PE 0. */
static void while_one_waits(int i)
{
    long r, *lock = words + 4, *held = words + 5;
    for (r = 1; r <= ROUNDS; r++) {
        if (i == 0) {
            long *more;
            if (me > 0)
                shmem_long_wait_until(words, SHMEM_CMP_GE, 3 * r - 2);
            shmem_barrier_all();
            if (me > 0)
                shmem_long_wait_until(words, SHMEM_CMP_GE, 3 * r - 1);
            more = shmem_malloc(8);
            shmem_free(more);
            /* PE 1 has a lock that PE 0 wants. */
            if (me == 1) {
                shmem_set_lock(lock);
                shmem_long_p(held, r, 0);
                shmem_long_wait_until(words, SHMEM_CMP_GE, 3 * r);
                shmem_clear_lock(lock);
            }
            if (me == 0 && n > 1) {
                shmem_long_wait_until(held, SHMEM_CMP_GE, r);
                shmem_set_lock(lock);
                shmem_clear_lock(lock);
            }
        } else if (i == 1 && me == 0) {
            int step, pe;
            for (step = 2; step >= 0; step--) {
                others_run();
                /* To 3 * r - step, in any order. */
                for (pe = 1; pe < n; pe++)
                    shmem_long_atomic_inc(words, pe);
            }
        }
    }
}

/* Two threads have a set each, of which PEs have two in common. The first call of one waits there until the other has
   begun, which is another on each. With three PEs one set is that of all, which has been called before. */
static void sets_in_any_order(int i)
{
    static volatile int begun;
    int first = me % 2, r;
    if (i > 1 || n < 3 || me > 2 - i)
        return;
    if (i == first)
        begun = 1;
    else {
        while (!begun)
            sched_yield();
        others_run();
    }
    for (r = 0; r < ROUNDS; r++)
        shmem_barrier(0, 0, i == 0 ? 3 : 2, pSync);
}

/* A thread waits for what another one has issued on a context that is that one's alone, and gathered. */
static void what_is_anothers_own(int i)
{
    static volatile int done;
    if (i == 0) {
        shmem_ctx_t own;
        CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) == 0);
        shmem_ctx_session_start(own, SHMEM_CTX_SESSION_BATCH, NULL, 0);
        shmem_ctx_long_atomic_inc(own, words, right);
        while (!done)
            sched_yield();
        shmem_ctx_destroy(own);
    } else if (i == 1) {
        shmem_long_wait_until(words, SHMEM_CMP_EQ, 1);
        done = 1;
    }
}

/* Each calls a set of its own, for which there is room for one call at a time, and for all together for fewer calls than
   there are threads. A call takes long enough for others to come meanwhile. */
enum { LONG = 1 << 20 };
static int64_t *from, *to;

static void *call_a_set(void *log_stride)
{
    int r;
    for (r = 0; r < 20; r++)
        shmem_fcollect64(to, from, LONG, me, (int)(size_t)log_stride, 1, pSync);
    return NULL;
}

static int more_calls_than_room(void)
{
    enum { SETS = 24 };
    pthread_t threads[SETS];
    int provided, i;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    me = shmem_my_pe();
    from = shmem_calloc(LONG, sizeof *from);
    to = shmem_malloc(LONG * sizeof *to);
    from[LONG - 1] = 1;
    for (i = 0; i < SETS; i++)
        CHECK(pthread_create(&threads[i], NULL, call_a_set, (void *)(size_t)i) == 0);
    for (i = 0; i < SETS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(to[LONG - 1] == 1);
    shmem_finalize();
    return 0;
}

static void clear(void)
{
    memset(words, 0, 8 * sizeof(long));
    memset(count, 0, 2 * sizeof(long));
    shmem_barrier_all();
}

int main(int argc, char **argv)
{
    int level, mine, provided, i;
    (void)argv;
    if (argc > 1)
        return more_calls_than_room();
    for (level = SHMEM_THREAD_SINGLE, me = 0; level <= SHMEM_THREAD_MULTIPLE; level++) {
        /* Another on each PE, but for the last. */
        mine = level < SHMEM_THREAD_MULTIPLE ? (level + me) % (SHMEM_THREAD_MULTIPLE + 1) : level;
        provided = -1;
        CHECK(shmem_init_thread(mine, &provided) == 0 && provided == mine);
        provided = -1;
        shmem_query_thread(&provided);
        CHECK(provided == mine);
        me = shmem_my_pe();
        shmem_barrier(0, 0, shmem_n_pes(), pSync);
        if (level < SHMEM_THREAD_MULTIPLE)
            shmem_finalize();
    }
    begin();
    words = shmem_calloc(8, sizeof(long));
    count = shmem_calloc(2, sizeof(long));
    block = shmem_calloc(8 * THREADS, sizeof(long));
    CHECK(shmem_ctx_create(0, &common) == 0);
    for (i = 0; i < THREADS; i++)
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &teams[i]) == 0);
    run(on_the_default_context);
    CHECK(*count == THREADS * ROUNDS);
    clear();
    run(on_contexts);
    CHECK(*count == 3 * THREADS * ROUNDS);
    clear();
    run(in_turns);
    clear();
    run(with_locks);
    CHECK(me != 0 || (count[0] + count[1] == (long)THREADS * ROUNDS * n));
    clear();
    run(collective);
    clear();
    run(while_one_waits);
    clear();
    run(sets_in_any_order);
    run(what_is_anothers_own);
    shmem_ctx_destroy(common);
    for (i = 0; i < THREADS; i++)
        shmem_team_destroy(teams[i]);
    shmem_finalize();
    shmem_finalize();
    return 0;
}
