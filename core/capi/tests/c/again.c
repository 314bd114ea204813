/* Initializes, finalizes, and does so again. */
#include "check.h"

int main(void)
{
    int round;
    for (round = 0; round < 3; round++) {
        long *x;
        begin();
        x = shmem_malloc(sizeof(long));
        *x = 0;
        shmem_barrier_all();
        shmem_long_atomic_add(x, me + round, right);
        shmem_barrier_all();
        CHECK(*x == left + round);
        shmem_free(x);
        shmem_finalize();
    }
    return 0;
}
