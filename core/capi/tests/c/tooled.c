/* A program for a tool to look at. */
#include <shmem.h>

int main(void)
{
    static long x;
    int i, right, wrong = 0;
    shmem_init();
    right = (shmem_my_pe() + 1) % shmem_n_pes();
    for (i = 0; i < 3; i++)
        shmem_long_p(&x, i, right);
    shmem_barrier_all();
    wrong = shmem_long_g(&x, right) != 2;
    shmem_barrier_all();
    shmem_finalize();
    return wrong;
}
