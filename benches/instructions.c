/* A loop of puts or gets of 8 bytes, and nothing else, for benches/instructions to count the instructions of:
   instructions p|g COUNT. */
#include <shmem.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long *words, count, i, sum = 0;
    if (argc != 3)
        return 2;
    count = atol(argv[2]);
    shmem_init();
    words = shmem_calloc(64, sizeof *words);
    if (argv[1][0] == 'p')
        for (i = 0; i < count; i++)
            shmem_long_p(words + i % 64, i, 0);
    else
        for (i = 0; i < count; i++)
            sum += shmem_long_g(words + i % 64, 0);
    shmem_free(words);
    shmem_finalize();
    return sum != 0;
}
