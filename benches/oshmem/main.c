/* The counterpart of src/bin/peer over OpenSHMEM 1.4: the same rows, the same loops, one line
 * "ROW NANOSECONDS" for each. `peers` builds it with both sides' oshcc, and compares Open MPI's with `peer`
 * or with oxshmem's.
 *
 *   peers-c micro        2 PEs: puts, gets, atomics, order, message rate, latency
 *   peers-c barrier      barrier alone
 *   peers-c collectives  all-reduce, broadcast, fcollect, alltoall
 *   peers-c gups         updates of random words
 *   peers-c sort         a parallel integer sort
 *   peers-c patterns     windows of puts (2 PEs), a broadcast timed alone after a barrier
 *   peers-c tcp          2 PEs on two hosts: the same operations by a network
 *   peers-c first        2 PEs: a block is allocated, and PE 0 puts into all of it
 *   peers-c memory       each PE prints what it keeps resident with an unused heap
 *   peers-c empty        joins and leaves
 */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

#include "timing.h"

static const struct {
    const char *name;
    void (*run)(void);
} MODES[] = {
    {"micro", micro}, {"barrier", barrier_alone}, {"collectives", collectives},
    {"gups", gups},   {"sort", sort},           {"first", first},
    {"patterns", patterns}, {"tcp", tcp},
};

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int status = 2;
    shmem_init();
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
        if (!strcmp(what, MODES[i].name)) {
            pin();
            timing_init();
            MODES[i].run();
            status = 0;
        }
    if (!strcmp(what, "memory")) {
        memory();
        status = 0;
    }
    if (!strcmp(what, "empty")) status = 0;
    if (status)
        fprintf(stderr, "usage: peers-c micro | barrier | collectives | gups | sort | patterns | tcp | first | memory | empty\n");
    shmem_finalize();
    return status;
}
