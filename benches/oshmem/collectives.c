/* Collective calls of all PEs, at several sizes, each result checked. A size is that of one block: each
 * PE's data of an all-reduce or a broadcast, its contribution to an fcollect, and its data for each PE
 * in an alltoall.
 *
 * OpenSHMEM 1.4 wants a pSync array that no PE still uses. If a call ends only after all have begun
 * it, two alternating arrays are enough. A broadcast's root may run ahead, so broadcasts cycle through RING
 * arrays, with a barrier in each cycle: one barrier for a thousand calls. With Open MPI's three longs
 * each the arrays take 24 KiB. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

enum { LARGEST_BLOCK = 4 << 20, RING = 1024 };
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define SYNC_SIZE                                                                 \
    MOST(MOST(SHMEM_REDUCE_SYNC_SIZE, SHMEM_BCAST_SYNC_SIZE),                     \
         MOST(SHMEM_COLLECT_SYNC_SIZE, SHMEM_ALLTOALL_SYNC_SIZE))

static long *src, *dst;   /* symmetric: a block for each PE */
static long *work[2];     /* symmetric: the work array of a reduction of the largest block */
static long *sync[RING];  /* symmetric */
static size_t count;      /* longs in a block */
static unsigned long at;  /* calls so far, equal on all PEs */
static int pes;

/* The loops begin with a barrier, so that no PE works before PE 0, which may share its processor, has read the
 * clock. They end with one, so that the slowest PE's work counts. */
static void allreduce(long n) {
    shmem_barrier_all();
    for (long i = 0; i < n; i++, at++)
        shmem_long_sum_to_all(dst, src, count, 0, 0, pes, work[at % 2], sync[at % 2]);
    shmem_barrier_all();
}
static void broadcast(long n) {
    shmem_barrier_all();
    for (long i = 0; i < n; i++) {
        shmem_broadcast64(dst, src, count, 0, 0, 0, pes, sync[at++ % RING]);
        if (at % RING == 0) shmem_barrier_all();
    }
    shmem_barrier_all();
}
static void fcollect(long n) {
    shmem_barrier_all();
    for (long i = 0; i < n; i++, at++)
        shmem_fcollect64(dst, src, count, 0, 0, pes, sync[at % 2]);
    shmem_barrier_all();
}
static void alltoall(long n) {
    shmem_barrier_all();
    for (long i = 0; i < n; i++, at++)
        shmem_alltoall64(dst, src, count, 0, 0, pes, sync[at % 2]);
    shmem_barrier_all();
}

/* The value that PE `pe` contributes at an index of its source. */
static long given(int pe, size_t i) { return 1000 * pe + (long)i; }

static int allreduced(void) {
    for (size_t i = 0; i < count; i++)
        if (dst[i] != pes * (long)i + 500L * pes * (pes - 1)) return 0;
    return 1;
}
/* OpenSHMEM 1.4 leaves the root's destination unchanged. */
static int broadcasted(void) {
    for (size_t i = 0; i < count && shmem_my_pe() != 0; i++)
        if (dst[i] != given(0, i)) return 0;
    return 1;
}
static int fcollected(void) {
    for (int pe = 0; pe < pes; pe++)
        for (size_t i = 0; i < count; i++)
            if (dst[pe * count + i] != given(pe, i)) return 0;
    return 1;
}
static int exchanged(void) {
    for (int pe = 0; pe < pes; pe++)
        for (size_t i = 0; i < count; i++)
            if (dst[pe * count + i] != given(pe, shmem_my_pe() * count + i)) return 0;
    return 1;
}

static const struct {
    const char *name;
    void (*loop)(long);
    int (*right)(void);
} CALLS[] = {
    {"allreduce", allreduce, allreduced},
    {"broadcast", broadcast, broadcasted},
    {"fcollect", fcollect, fcollected},
    {"alltoall", alltoall, exchanged},
};

void collectives(void) {
    static const size_t SIZES[] = {8, 1 << 10, 64 << 10, 1 << 20, LARGEST_BLOCK};
    pes = shmem_n_pes();
    src = shmem_align(4096, (size_t)pes * LARGEST_BLOCK);
    dst = shmem_align(4096, (size_t)pes * LARGEST_BLOCK);
    for (int i = 0; i < 2; i++)
        work[i] = shmem_align(4096, LARGEST_BLOCK / 2 + 8 * MOST(1, SHMEM_REDUCE_MIN_WRKDATA_SIZE));
    for (int i = 0; i < RING; i++) {
        sync[i] = shmem_malloc(SYNC_SIZE * sizeof(long));
        for (int word = 0; sync[i] && word < SYNC_SIZE; word++) sync[i][word] = SHMEM_SYNC_VALUE;
    }
    if (!src || !dst || !work[0] || !work[1] || !sync[RING - 1]) wrong("collectives: no memory");
    for (size_t i = 0; i < (size_t)pes * LARGEST_BLOCK / 8; i++) {
        src[i] = given(shmem_my_pe(), i);
        dst[i] = -1;
    }
    shmem_barrier_all();
    for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++)
        for (size_t c = 0; c < sizeof CALLS / sizeof *CALLS; c++) {
            char row[48];
            snprintf(row, sizeof row, "%s_%zu_%d", CALLS[c].name, SIZES[s], pes);
            count = SIZES[s] / 8;
            together(row, CALLS[c].loop, 1);
            if (!CALLS[c].right()) wrong(row);
            shmem_barrier_all();
        }
}
