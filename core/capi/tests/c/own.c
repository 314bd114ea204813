/* The library's own variables are not symmetric, in a program that is linked with the archive neither: with an argument PE 0
   puts to one of them. */
#include "check.h"

/* Of the library: where another of its variables lies. */
extern const void *const oxshmem_inline;

static long variable;

int main(int argc, char **argv)
{
    (void)argv;
    begin();
    CHECK(shmem_addr_accessible(&variable, right) && !shmem_addr_accessible(oxshmem_inline, right));
    CHECK(shmem_ptr(oxshmem_inline, right) == NULL && shmem_ptr(oxshmem_inline, me) == NULL);
    if (argc > 1 && me == 0)
        shmem_long_put((long *)oxshmem_inline, &variable, 1, right);
    shmem_finalize();
    return 0;
}
