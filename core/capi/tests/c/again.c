/* Initializes, finalizes, and does so again, many times, and leaves teams behind; in the end some PEs just end. */
#include "check.h"
#include <unistd.h>

static long pSync[SHMEM_REDUCE_SYNC_SIZE];

/* Teams, of which finalize ends those that are left. */
static void teams(void)
{
    shmem_team_t team;
    int i;
    for (i = 0; i < 3; i++) {
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team) == 0);
        shmem_team_sync(team);
    }
    if (me == n - 1)
        shmem_barrier(n - 1, 0, 1, pSync);
    shmem_barrier(0, 0, n, pSync);
}

int main(void)
{
    int round, rounds = 1;
    for (round = 0; round < rounds; round++) {
        long *x;
        begin();
        /* More teams than there is room for. */
        rounds = n == 2 && is_mapped(right) ? 100 : 10;
        x = shmem_malloc(sizeof(long));
        *x = 0;
        shmem_barrier_all();
        shmem_long_atomic_add(x, me + round, right);
        shmem_barrier_all();
        CHECK(*x == left + round);
        teams();
        if (round % 2 == 0)
            shmem_free(x);
        if (round % 3 == 0) {
            shmem_init();
            shmem_finalize();
        }
        shmem_finalize();
    }
    /* One too many ends nothing. */
    shmem_finalize();
    if (me % 2 == 1)
        _exit(0);
    return 0;
}
