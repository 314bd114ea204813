/* A program, or a tool that it is linked with, which defines a function of the API itself. */
#include "check.h"
#include <pshmem.h>

static int calls;

void shmem_long_p(long *dest, long value, int pe)
{
    calls++;
    pshmem_long_p(dest, value + 1, pe);
}

int main(void)
{
    long *x;
    begin();
    x = shmem_calloc(1, sizeof(long));
    shmem_long_p(x, me, right);
    shmem_barrier_all();
    CHECK(calls == 1 && *x == left + 1);
    shmem_finalize();
    return 0;
}
