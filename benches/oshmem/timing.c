#define _GNU_SOURCE
#include "timing.h"

#include <sched.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double MIN_BATCH_NS = 1e6, ROW_NS = 3e8;

static long *agreed; /* symmetric: repetitions and batches that PE 0 decided */

double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void report(const char *row, double *ns_per_op, int batches) {
    qsort(ns_per_op, batches, sizeof *ns_per_op, by_value);
    double median = (ns_per_op[(batches - 1) / 2] + ns_per_op[batches / 2]) / 2;
    printf("%s %.4f\n", row, median);
    fflush(stdout);
}

void wrong(const char *row) {
    fprintf(stderr, "peers-c: PE %d: %s: a wrong result\n", shmem_my_pe(), row);
    shmem_global_exit(1);
}

void pin(void) {
    cpu_set_t allowed, mine;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    if (shmem_n_pes() > CPU_COUNT(&allowed)) return;
    int skip = shmem_my_pe();
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
            CPU_ZERO(&mine);
            CPU_SET(cpu, &mine);
            sched_setaffinity(0, sizeof mine, &mine);
            return;
        }
}

void timing_init(void) {
    agreed = shmem_calloc(2, sizeof *agreed);
    if (!agreed) wrong("no memory");
}

static double time_of(void (*loop)(long), long n) {
    double t = now_ns();
    loop(n);
    return now_ns() - t;
}

void alone(const char *row, void (*loop)(long), double each) {
    long n = 1;
    while (time_of(loop, n) < MIN_BATCH_NS) n *= 2;
    double ns[BATCHES];
    for (int b = 0; b < BATCHES; b++) ns[b] = time_of(loop, n) / (n * each);
    report(row, ns, BATCHES);
}

void together(const char *row, void (*loop)(long), double each) {
    int me = shmem_my_pe(), pes = shmem_n_pes();
    for (long n = 1; ; n *= 2) {
        /* Of two runs, since the first may set something up. */
        double took = 0;
        for (int again = 0; again < 2; again++) {
            shmem_barrier_all();
            double t = time_of(loop, n);
            took = again && took < t ? took : t;
        }
        if (me == 0) {
            double fit = ROW_NS / took;
            long batches = fit > BATCHES ? BATCHES : fit < FEWEST_BATCHES ? FEWEST_BATCHES : fit;
            int enough = took >= MIN_BATCH_NS * pes / 2;
            for (int pe = 0; pe < pes; pe++) {
                shmem_long_p(&agreed[0], enough ? n : 0, pe);
                shmem_long_p(&agreed[1], batches, pe);
            }
        }
        shmem_barrier_all();
        if (*(volatile long *)agreed) break;
    }
    long n = agreed[0], batches = agreed[1];
    double ns[BATCHES];
    for (int b = 0; b < batches; b++) {
        shmem_barrier_all();
        ns[b] = time_of(loop, n) / (n * each);
    }
    if (me == 0) report(row, ns, batches);
}
