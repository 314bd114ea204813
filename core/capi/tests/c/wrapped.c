/* A library that calls the library (with -DLIBRARY), and a program that is linked with the former alone: its variables
   are symmetric all the same. */
#ifdef LIBRARY
#include <shmem.h>

int enter(void)
{
    shmem_init();
    return shmem_my_pe();
}

/* What the PE to the left has put into the variable, and whether it is symmetric. */
int round_trip(long *variable, long value)
{
    int n = shmem_n_pes(), right = (shmem_my_pe() + 1) % n;
    if (!shmem_addr_accessible(variable, right))
        return 0;
    shmem_long_p(variable, value, right);
    shmem_barrier_all();
    return n;
}

void leave(void)
{
    shmem_finalize();
}
#else
int enter(void), round_trip(long *variable, long value);
void leave(void);

static long variable = -1;

int main(void)
{
    int me = enter(), n = round_trip(&variable, me + 5);
    int is_right = n > 0 && variable == (me + n - 1) % n + 5;
    leave();
    return !is_right;
}
#endif
