/* Each PE writes its number to the next one and waits for that of the one before. */
#include <shmem.h>
#include <stdio.h>

static long inbox = -1, sum, one;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), before = (me + n - 1) % n;
    shmem_long_p(&inbox, me, (me + 1) % n);
    shmem_long_wait_until(&inbox, SHMEM_CMP_EQ, before);
    one = inbox == before;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1);
    if (me == 0)
        printf(sum == n ? "%d PEs are right\n" : "wrong among %d PEs\n", n);
    shmem_finalize();
    return sum != n;
}
