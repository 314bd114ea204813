/* Global and static variables of the program are symmetric; not so where another thread runs already, or the program has
   changed what is mapped there (argv[1] is "threads", "protected" or "mapped"). */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

long target = 7;
static long zero;
static int array[5000];
static double large[300000];
static uint64_t word;
static long pSync[SHMEM_REDUCE_SYNC_SIZE], pWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long lock, count;
static char text[] = "as it was";
const long constant = 5;
#ifndef SPARSE
#define SPARSE (1 << 30)
#endif
/* Hardly any of it is ever touched. */
static char sparse[SPARSE];
#ifdef RWX
/* Makes all data executable. */
__attribute__((section(".rwx,\"awx\",@progbits#"))) unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
#endif

static void put_and_get(void)
{
    static int local = 11;
    int i;
    CHECK(target == 7 && zero == 0 && local == 11 && strcmp(text, "as it was") == 0);
    shmem_barrier_all();
    shmem_long_p(&target, me + 100, right);
    shmem_int_p(&local, me, right);
    for (i = 0; i < 5000; i++)
        array[i] = me + i;
    shmem_barrier_all();
    CHECK(target == left + 100 && local == left);
    CHECK(shmem_int_g(&array[4321], right) == right + 4321);
    shmem_double_put(large + 200000, (double[]){1.5, 2.5 + me}, 2, right);
    shmem_barrier_all();
    CHECK(large[200001] == 2.5 + left);
    shmem_put_signal(&target, &zero, 1, &word, 3, SHMEM_SIGNAL_SET, right);
    CHECK(shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 3) == 3 && target == 0);
    shmem_barrier_all();
}

static void atomics_and_locks(void)
{
    shmem_long_atomic_add(&zero, me + 1, 0);
    shmem_set_lock(&lock);
    shmem_long_p(&count, shmem_long_g(&count, 0) + 1, 0);
    shmem_clear_lock(&lock);
    shmem_barrier_all();
    if (me == 0)
        CHECK(zero == n * (n + 1) / 2 && count == n);
    shmem_barrier_all();
}

static void collectives(void)
{
    static long source, sum, all[64];
    source = me + 1;
    shmem_long_sum_to_all(&sum, &source, 1, 0, 0, n, pWrk, pSync);
    CHECK(sum == n * (n + 1) / 2);
    CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, all, &source, 1) == 0 && all[n - 1] == n);
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, all, &source, 1) == 0 && all[0] == 1);
}

static void addresses(void)
{
    long stack, *theirs = shmem_ptr(&target, right);
    CHECK(shmem_addr_accessible(&target, right) && !shmem_addr_accessible(&stack, right));
    CHECK(!shmem_addr_accessible(&constant, right));
    CHECK((theirs != NULL) >= is_mapped(right) && (theirs != NULL) <= is_here(right));
    target = 1000 + left;
    shmem_barrier_all();
    if (theirs != NULL)
        *theirs = 1000 + me;
    shmem_barrier_all();
    CHECK(target == 1000 + left);
    shmem_barrier_all();
}

/* Pages of `sparse` that take memory. */
static size_t resident(void)
{
    size_t pages = sizeof sparse / 4096 - 1, count = 0, i;
    unsigned char *are = malloc(pages);
    char *first = (char *)(((uintptr_t)sparse + 4095) / 4096 * 4096);
    CHECK(mincore(first, pages * 4096, are) == 0);
    for (i = 0; i < pages; i++)
        count += are[i] & 1;
    free(are);
    return count;
}

/* What is untouched takes no memory; but for NICs, which wait for no page, all of it is there. */
static int is_untouched(void)
{
    int pe, other_hosts = 0;
    for (pe = 0; pe < n; pe++)
        other_hosts |= !is_here(pe);
    return other_hosts || resident() < 10;
}

static void untouched_memory(void)
{
    size_t middle = sizeof sparse / 2;
    CHECK(is_untouched());
    shmem_barrier_all();
    shmem_char_p(sparse + middle, 'a' + me, right);
    shmem_barrier_all();
    CHECK(sparse[middle] == 'a' + left && sparse[middle + 4096] == 0);
}

static void protection(void)
{
#ifdef RWX
    CHECK(((int (*)(void))code)() == 42);
#endif
}

/* An allocator whose locks are held while this thread forks: its handlers are called around those of the library. */
static __thread int forking;
void *__libc_malloc(size_t size);
void __libc_free(void *block);

void *malloc(size_t size)
{
    if (forking)
        abort();
    return __libc_malloc(size);
}

void free(void *block)
{
    if (forking)
        abort();
    __libc_free(block);
}

static void lock_allocator(void)
{
    forking = 1;
}

static void unlock_allocator(void)
{
    forking = 0;
}

/* A page of data that the program has made something else of. */
static _Alignas(4096) char page[2 * 4096];

/* What is stored after a fork is not the child's, however late that begins to run. */
static void late_children(void)
{
    int i, status;
    for (i = 0; i < 20; i++) {
        pid_t child;
        target = i;
        child = fork();
        if (child == 0)
            _exit(target == i && sparse[sizeof sparse / 2] == 'a' + left ? 9 : 1);
        target = -1;
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
    }
    CHECK(is_untouched());
    /* A child's own children have its variables. */
    if (fork() == 0) {
        pid_t child;
        target = 20;
        child = fork();
        if (child == 0)
            _exit(target == 20 ? 9 : 1);
        CHECK(waitpid(child, &status, 0) == child);
        _exit(WEXITSTATUS(status));
    }
    CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 9 && target == -1);
}

/* A child has variables of its own. */
static void children(void)
{
    int status;
    FILE *pipe;
    pid_t child;
    target = 5;
    child = fork();
    if (child == 0) {
        target = 6;
        _exit(text[0] == 'a' ? 9 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9 && target == 5);
    /* A child that ends as any program does is no PE, and says nothing in its parent's name. */
    child = fork();
    if (child == 0) exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(system("true") == 0);
    pipe = popen("echo heard", "r");
    CHECK(pipe != NULL && fgets(text, sizeof text, pipe) != NULL && strcmp(text, "heard\n") == 0);
    pclose(pipe);
    shmem_barrier_all();
    shmem_long_p(&target, 12, right);
    shmem_barrier_all();
    CHECK(target == 12);
}

/* What the program has made of its pages since does not matter to a fork. */
static void child_of_protected_memory(void)
{
    int status;
    pid_t child;
    page[0] = 1;
    CHECK(mprotect(page, 4096, PROT_NONE) == 0);
    child = fork();
    if (child == 0)
        _exit(page[0] == 1 ? 9 : 1);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0 && page[0] == 1);
}

static pthread_mutex_t started = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *unused)
{
    pthread_mutex_lock(&started);
    pthread_mutex_unlock(&started);
    return unused;
}

static void heap_alone(void)
{
    long *x;
    begin();
    CHECK(!shmem_addr_accessible(&target, me) && target == 7 && shmem_ptr(&target, me) == NULL);
    x = shmem_calloc(1, sizeof(long));
    shmem_long_p(x, me, right);
    shmem_barrier_all();
    CHECK(*x == left);
    shmem_free(x);
    shmem_finalize();
}

static void beside_a_thread(void)
{
    pthread_t thread;
    pthread_mutex_lock(&started);
    CHECK(pthread_create(&thread, NULL, wait_for_it, NULL) == 0);
    heap_alone();
    pthread_mutex_unlock(&started);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void with_a_page_changed(int is_mapped)
{
    const int shared = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
    if (is_mapped)
        CHECK(mmap(page, 4096, PROT_READ | PROT_WRITE, shared, -1, 0) == page);
    else
        CHECK(mprotect(page, 4096, PROT_READ) == 0);
    heap_alone();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        beside_a_thread();
        return 0;
    }
    if (argc > 1) {
        with_a_page_changed(strcmp(argv[1], "mapped") == 0);
        return 0;
    }
    begin();
    CHECK(pthread_atfork(lock_allocator, unlock_allocator, unlock_allocator) == 0);
    put_and_get();
    atomics_and_locks();
    collectives();
    addresses();
    untouched_memory();
    protection();
    late_children();
    children();
    child_of_protected_memory();
    printf("done\n");
    shmem_finalize();
    return 0;
}
