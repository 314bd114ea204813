/* A tool of its own, which counts calls of a program that knows nothing of it: a shared library. */
#include <pshmem.h>
#include <shmem.h>
#include <stdio.h>

static int puts_, gets_, barriers;

void shmem_long_p(long *dest, long value, int pe)
{
    puts_++;
    pshmem_long_p(dest, value, pe);
}

long shmem_long_g(const long *source, int pe)
{
    gets_++;
    return pshmem_long_g(source, pe);
}

void shmem_barrier_all(void)
{
    barriers++;
    pshmem_barrier_all();
}

void shmem_finalize(void)
{
    printf("PE %d: %d puts, %d gets, %d barriers\n", pshmem_my_pe(), puts_, gets_, barriers);
    fflush(stdout);
    pshmem_finalize();
}
