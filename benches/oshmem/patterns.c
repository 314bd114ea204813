/* Calls as other benchmarks time them, with effects that loops of one call do not show: windows of puts over
 * memory that both PEs have just written, and a broadcast timed alone after a barrier. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

#include "timing.h"

enum { WINDOW_PUTS = 50, LARGEST_WINDOW = 512 << 10, BROADCASTS = 2000, LARGEST_BROADCAST = 256 };

/* Each put goes to the next place of a block, from the same place of the own one, as in osu_oshm_put_mr. */
static void windows(void) {
    char *block = shmem_align(4096, (size_t)WINDOW_PUTS * LARGEST_WINDOW);
    int me = shmem_my_pe();
    if (!block) wrong("window: no memory");
    for (size_t size = 16 << 10; size <= LARGEST_WINDOW; size *= 2) {
        char row[32];
        double ns[BATCHES];
        snprintf(row, sizeof row, "window_%zu", size);
        for (int b = 0; b < BATCHES; b++) {
            memset(block, me + b, (size_t)WINDOW_PUTS * LARGEST_WINDOW);
            shmem_barrier_all();
            if (me == 0) {
                double start = now_ns();
                for (int i = 0; i < WINDOW_PUTS; i++)
                    shmem_putmem(block + i * size, block + i * size, size, 1);
                shmem_quiet();
                ns[b] = (now_ns() - start) / WINDOW_PUTS;
            }
            shmem_barrier_all();
            if (block[WINDOW_PUTS * size - 1] != (char)b) wrong(row);
            shmem_barrier_all();
        }
        if (me == 0) report(row, ns, BATCHES);
    }
    shmem_free(block);
}

/* The mean over the PEs of the time within the call. */
static void broadcasts(void) {
    static long sync[2][SHMEM_BCAST_SYNC_SIZE];
    int me = shmem_my_pe(), pes = shmem_n_pes();
    char *src = shmem_align(4096, LARGEST_BROADCAST), *dst = shmem_align(4096, LARGEST_BROADCAST);
    double *mean = shmem_calloc(pes, sizeof *mean);
    if (!src || !dst || !mean) wrong("broadcast_alone: no memory");
    for (int i = 0; i < 2; i++)
        for (int word = 0; word < SHMEM_BCAST_SYNC_SIZE; word++) sync[i][word] = SHMEM_SYNC_VALUE;
    memset(src, me + 1, LARGEST_BROADCAST);
    shmem_barrier_all();
    for (size_t size = 8; size <= LARGEST_BROADCAST; size *= LARGEST_BROADCAST / 8) {
        char row[48];
        double ns[BATCHES];
        snprintf(row, sizeof row, "broadcast_alone_%zu_%d", size, pes);
        for (int b = 0; b < BATCHES; b++) {
            double within = 0;
            for (int i = 0; i < BROADCASTS; i++) {
                shmem_barrier_all();
                double start = now_ns();
                shmem_broadcast64(dst, src, size / 8, 0, 0, 0, pes, sync[i % 2]);
                within += now_ns() - start;
            }
            shmem_double_p(&mean[me], within / BROADCASTS, 0);
            shmem_barrier_all();
            ns[b] = 0;
            for (int pe = 0; pe < pes; pe++) ns[b] += mean[pe] / pes;
            shmem_barrier_all();
        }
        if (me != 0 && dst[size - 1] != 1) wrong(row);
        if (me == 0) report(row, ns, BATCHES);
        shmem_barrier_all();
    }
    shmem_free(mean);
    shmem_free(dst);
    shmem_free(src);
}

void patterns(void) {
    if (shmem_n_pes() == 2) windows();
    broadcasts();
}
