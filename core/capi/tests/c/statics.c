/* Global and static variables of the program are symmetric. */
#include "check.h"
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
    if (is_mapped()) {
        *theirs = 1000 + me;
        shmem_barrier_all();
        CHECK(target == 1000 + left);
    }
    shmem_barrier_all();
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

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    begin();
    put_and_get();
    atomics_and_locks();
    collectives();
    addresses();
    children();
    printf("done\n");
    shmem_finalize();
    return 0;
}
