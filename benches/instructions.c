/* A loop of calls for words of 8 bytes, and nothing else. benches/instructions counts its instructions:
   instructions p|g|putmem|fetch_add|quiet|barrier|broadcast COUNT. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    long *words, count, i, sum = 0, given = 1;
    if (argc != 3)
        return 2;
    count = atol(argv[2]);
    shmem_init();
    words = shmem_calloc(64, sizeof *words);
    if (strcmp(argv[1], "p") == 0)
        for (i = 0; i < count; i++)
            shmem_long_p(words + i % 64, i, 0);
    else if (strcmp(argv[1], "g") == 0)
        for (i = 0; i < count; i++)
            sum += shmem_long_g(words + i % 64, 0);
    else if (strcmp(argv[1], "putmem") == 0)
        for (i = 0; i < count; i++)
            shmem_putmem(words + i % 64, &given, sizeof given, 0);
    else if (strcmp(argv[1], "fetch_add") == 0)
        for (i = 0; i < count; i++)
            sum += shmem_long_atomic_fetch_add(words + i % 64, 1, 0);
    else if (strcmp(argv[1], "barrier") == 0)
        for (i = 0; i < count; i++)
            shmem_barrier_all();
    else if (strcmp(argv[1], "broadcast") == 0)
        for (i = 0; i < count; i++)
            shmem_broadcastmem(SHMEM_TEAM_WORLD, words, words + 32, sizeof *words, 0);
    else
        for (i = 0; i < count; i++)
            shmem_quiet();
    shmem_free(words);
    shmem_finalize();
    return sum == -1;
}
