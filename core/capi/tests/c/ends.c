/* How a process may end, or go on: argv[1] says how. PE 0 does it, and the others wait in a barrier. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static const char *how;
static long never;
static int numbers[20];

static int is(const char *name)
{
    return strcmp(how, name) == 0;
}

static void *read_line(void *stream)
{
    char line[10];
    return fgets(line, sizeof line, (FILE *)stream);
}

/* A thread has a stream for itself for ever. */
static void exit_while_another_reads(void)
{
    pthread_t thread;
    FILE *stream;
    int ends[2];
    CHECK(pipe(ends) == 0 && (stream = fdopen(ends[0], "r")) != NULL);
    CHECK(pthread_create(&thread, NULL, read_line, stream) == 0);
    while (ftrylockfile(stream) == 0)
        funlockfile(stream);
    printf("the last words");
    shmem_global_exit(5);
}

static void *exit_well(void *unused)
{
    (void)unused;
    exit(0);
}

/* By a thread that may not be in calls, while this one is. */
static void exit_elsewhere(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, exit_well, NULL) == 0);
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
}

/* Behind a large block; 1 for ever. */
static long *word;

static void *wait_for_ever(void *waits)
{
    *(volatile int *)waits = 1;
    shmem_long_wait_until(word, SHMEM_CMP_EQ, 0);
    _exit(7);
}

/* Contexts come and go, with something on its way. */
static void *use_contexts(void *waits)
{
    int to = (shmem_my_pe() + 1) % shmem_n_pes();
    for (;;) {
        shmem_ctx_t ctx;
        int i;
        CHECK(shmem_ctx_create(0, &ctx) == 0);
        for (i = 0; i < 20; i++)
            shmem_ctx_int_p(ctx, &numbers[i], i, to);
        *(volatile int *)waits = 1;
        shmem_ctx_destroy(ctx);
    }
    return NULL;
}

/* While other threads are in a call, and without shmem_finalize. Of serialized threads one alone may be in a call: the
   exit is all that happens beside it. */
static int exit_during_calls(int level)
{
    int provided, i, multiple = level == SHMEM_THREAD_MULTIPLE;
    char *large;
    CHECK(shmem_init_thread(level, &provided) == 0);
    large = shmem_malloc(8 << 20);
    word = shmem_malloc(sizeof *word);
    CHECK(large != NULL && word != NULL);
    *word = 1;
    for (i = 0; i < (multiple ? 5 : 1); i++) {
        static volatile int waits;
        pthread_t thread;
        waits = 0;
        CHECK(pthread_create(&thread, NULL, i < 3 ? wait_for_ever : use_contexts, (void *)&waits) == 0);
        while (!waits)
            ;
    }
    if (multiple)
        shmem_barrier_all();
    return 0;
}

static pthread_t workers[3];

static void *call_for_ever(void *unused)
{
    for (;;) {
        shmem_long_atomic_inc(&never, (shmem_my_pe() + 1) % 2);
        sched_yield();
    }
    return unused;
}

static void join_workers(void)
{
    int i;
    for (i = 0; i < 3; i++)
        pthread_join(workers[i], NULL);
    fprintf(stderr, "joined\n");
}

/* Threads that share a context end by the exit, and are joined by what is called after the library's own handler. */
static int exit_and_join(void)
{
    int provided, i;
    CHECK(atexit(join_workers) == 0);
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    for (i = 0; i < 3; i++)
        CHECK(pthread_create(&workers[i], NULL, call_for_ever, NULL) == 0);
    shmem_barrier_all();
    return 0;
}

static volatile int exits;

static void note_exit(void)
{
    exits = 1;
}

static void *fail_during_exit(void *unused)
{
    int i;
    while (!exits)
        sched_yield();
    for (i = 0; i < 1000; i++)
        sched_yield();
    shmem_long_p(&never, 1, 77);
    return unused;
}

/* A thread's call makes no sense while the main thread waits in its exit, for a PE that waits for that thread. */
static int fail_while_another_exits(void)
{
    pthread_t thread;
    int provided;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    CHECK(atexit(note_exit) == 0);
    if (shmem_my_pe() > 0)
        shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
    CHECK(pthread_create(&thread, NULL, fail_during_exit, NULL) == 0);
    return 0;
}

static void *join_and_exit(void *thread)
{
    pthread_join(*(pthread_t *)thread, NULL);
    exit(0);
}

/* By another thread, when that which began has ended, though the system still has its number. */
static int main_thread_ends(void)
{
    static pthread_t first;
    pthread_t thread;
    first = pthread_self();
    begin();
    shmem_barrier_all();
    CHECK(pthread_create(&thread, NULL, join_and_exit, &first) == 0);
    pthread_exit(NULL);
}

/* What was registered first is called last, after the library's own. */
static int finalize_at_exit(void)
{
    CHECK(atexit(shmem_finalize) == 0);
    begin();
    shmem_barrier_all();
    if (is("finalize, and at exit"))
        shmem_finalize();
    return 0;
}

static void *begin_here(void *unused)
{
    begin();
    shmem_barrier_all();
    return unused;
}

/* By a thread that has ended, and so is in no call, when another one exits. */
static int begun_by_another(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, begin_here, NULL) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}

/* Closed, and written to all the same. */
static int without_streams(void)
{
    int stream;
    for (stream = 0; stream <= 2; stream++)
        close(stream);
    begin();
    for (stream = 0; stream <= 2; stream++)
        if (write(stream, "no data of the library", 22) < 0)
            shmem_global_exit(2);
    shmem_barrier_all();
    CHECK(never == 0);
    shmem_finalize();
    return 0;
}

/* Nobody reads what is said of it. */
static void fail_unheard(void)
{
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0 && dup2(ends[1], 2) == 2);
    shmem_long_p(&never, 1, n);
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "";
    if (is("during calls"))
        return exit_during_calls(SHMEM_THREAD_MULTIPLE);
    if (is("during serialized calls"))
        return exit_during_calls(SHMEM_THREAD_SERIALIZED);
    if (is("joins"))
        return exit_and_join();
    if (is("fails meanwhile"))
        return fail_while_another_exits();
    if (is("main thread ends"))
        return main_thread_ends();
    if (is("without streams"))
        return without_streams();
    if (is("begun by another"))
        return begun_by_another();
    if (is("finalize at exit") || is("finalize, and at exit"))
        return finalize_at_exit();
    begin();
    if (me == 0) {
        if (is("another reads"))
            exit_while_another_reads();
        if (is("elsewhere"))
            exit_elsewhere();
        if (is("unheard"))
            fail_unheard();
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
