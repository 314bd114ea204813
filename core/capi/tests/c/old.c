/* As programs of OpenSHMEM 1.0 are: start_pes, and no finalize. */
#include <mpp/shmem.h>
#include <stdio.h>

int main(void)
{
    long *x;
    start_pes(0);
    start_pes(0);
    x = (long *)shmalloc(sizeof(long));
    *x = -1;
    shmem_barrier_all();
    shmem_long_p(x, _my_pe(), (_my_pe() + 1) % _num_pes());
    shmem_wait(x, -1);
    printf("PE %d of %d: %ld\n", _my_pe(), _num_pes(), *x);
    return 0;
}
