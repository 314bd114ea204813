/* The counterpart of src/bin/peer.rs over OpenSHMEM 1.4: the same rows, the same loops, one line
 * "ROW NANOSECONDS" for each. `peers` builds it with oshcc, runs both and compares them.
 *
 *   peers-c micro     2 PEs: puts, gets, atomics, order, ping-pong, barrier
 *   peers-c barrier   any number of PEs: barrier alone
 *   peers-c memory    each PE prints what it keeps resident with an unused heap
 *   peers-c empty     joins and leaves
 */
#define _GNU_SOURCE
#include <sched.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 512, BATCHES = 15, LARGEST = 16 << 20 };
static const double MIN_BATCH_NS = 1e6;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *row, double *ns_per_op) {
    qsort(ns_per_op, BATCHES, sizeof *ns_per_op, by_value);
    printf("%s %.4f\n", row, ns_per_op[BATCHES / 2]);
    fflush(stdout);
}

/* What the loops work on. */
static long *words;        /* symmetric, WORDS longs */
static char *block;        /* symmetric, LARGEST bytes */
static char *local;        /* private, LARGEST bytes */
static long *ping, *pong;  /* symmetric, a cache line each */
static long *agreed;       /* symmetric: repetitions that PE 0 decided */
static size_t size;        /* of the block loops */
static volatile long sink;

/* Keeps the compiler from moving or dropping what memory holds. */
#define BARRIER_FOR_COMPILER() __asm__ volatile("" ::: "memory")

static void put8(long n) {
    for (long i = 0; i < n; i++) {
        long v = i;
        shmem_long_put(&words[i & (WORDS - 1)], &v, 1, 1);
    }
    shmem_quiet();
}
static void p8(long n) {
    for (long i = 0; i < n; i++) shmem_long_p(&words[i & (WORDS - 1)], i, 1);
    shmem_quiet();
}
static void get8(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        long v;
        shmem_long_get(&v, &words[i & (WORDS - 1)], 1, 1);
        sum += v;
    }
    sink = sum;
}
static void fetch_add8(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += shmem_long_atomic_fetch_add(&words[i & (WORDS - 1)], 1, 1);
    sink = sum;
}
static void quiet_clean(long n) {
    for (long i = 0; i < n; i++) {
        shmem_quiet();
        BARRIER_FOR_COMPILER();
    }
}
static void put_quiet(long n) {
    for (long i = 0; i < n; i++) {
        long v = i;
        shmem_long_put(&words[i & (WORDS - 1)], &v, 1, 1);
        shmem_quiet();
    }
}
static void put_block(long n) {
    for (long i = 0; i < n; i++) {
        shmem_putmem(block, local, size, 1);
        BARRIER_FOR_COMPILER();
    }
    shmem_quiet();
}
static void get_block(long n) {
    for (long i = 0; i < n; i++) {
        shmem_getmem(local, block, size, 1);
        BARRIER_FOR_COMPILER();
    }
}

/* PE 0 alone, after a warm-up that also finds how many make a batch. */
static void alone(const char *row, void (*loop)(long)) {
    long n = 1;
    for (;;) {
        double t = now_ns();
        loop(n);
        if (now_ns() - t >= MIN_BATCH_NS) break;
        n *= 2;
    }
    double ns[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        double t = now_ns();
        loop(n);
        ns[b] = (now_ns() - t) / n;
    }
    report(row, ns);
}

static long round_trips; /* ping-pong's count so far, equal on both PEs */
static void ping_pong(long n) {
    int me = shmem_my_pe();
    for (long i = 0; i < n; i++) {
        round_trips++;
        if (me == 0) {
            shmem_long_p(ping, round_trips, 1);
            shmem_long_wait_until(pong, SHMEM_CMP_EQ, round_trips);
        } else {
            shmem_long_wait_until(ping, SHMEM_CMP_EQ, round_trips);
            shmem_long_p(pong, round_trips, 0);
        }
    }
}
static void barrier(long n) {
    for (long i = 0; i < n; i++) shmem_barrier_all();
}

/* All PEs together; PE 0 decides the repetitions and reports `scale` times the time of one. */
static void together(const char *row, void (*loop)(long), double scale) {
    int me = shmem_my_pe();
    long n = 8;
    for (;;) {
        shmem_barrier_all();
        double t = now_ns();
        loop(n);
        double took = now_ns() - t;
        if (me == 0)
            for (int pe = 0; pe < shmem_n_pes(); pe++)
                shmem_long_p(agreed, took >= MIN_BATCH_NS ? n : 0, pe);
        shmem_barrier_all();
        if (*(volatile long *)agreed) break;
        n *= 2;
    }
    double ns[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        shmem_barrier_all();
        double t = now_ns();
        loop(n);
        ns[b] = scale * (now_ns() - t) / n;
    }
    if (me == 0) report(row, ns);
}

/* With a processor for each PE, each keeps to its own. */
static void pin(void) {
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

static void micro(void) {
    int me = shmem_my_pe();
    words = shmem_align(4096, WORDS * sizeof *words);
    block = shmem_align(4096, LARGEST);
    ping = shmem_align(4096, 4096);
    pong = ping + 64;
    agreed = pong + 64;
    long *done = agreed + 64;
    if (posix_memalign((void **)&local, 4096, LARGEST)) abort();
    memset(local, 1, LARGEST);
    memset(block, 2, LARGEST);
    memset(words, 0, WORDS * sizeof *words);
    memset(ping, 0, 4096);
    shmem_barrier_all();
    if (me == 0) {
        alone("quiet_clean", quiet_clean);
        alone("put8", put8);
        alone("p8", p8);
        alone("get8", get8);
        alone("fetch_add8", fetch_add8);
        alone("put_quiet", put_quiet);
        for (size = 1024; size <= LARGEST; size *= 4) {
            char row[32];
            snprintf(row, sizeof row, "put_%zu", size);
            alone(row, put_block);
            snprintf(row, sizeof row, "get_%zu", size);
            alone(row, get_block);
        }
        shmem_long_p(done, 1, 1);
        shmem_quiet();
    } else {
        while (!*(volatile long *)done) usleep(1000); /* stays off the caches */
    }
    together("ping_pong", ping_pong, 0.5);
    together("barrier", barrier, 1.0);
}

static void memory(void) {
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long rss = -1, pss = -1;
    shmem_barrier_all();
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "Rss: %ld kB", &rss);
        sscanf(line, "Pss: %ld kB", &pss);
    }
    if (f) fclose(f);
    printf("memory %ld %ld\n", pss, rss);
    fflush(stdout);
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    shmem_init();
    if (!strcmp(what, "micro") && shmem_n_pes() == 2) {
        pin();
        micro();
    } else if (!strcmp(what, "barrier")) {
        pin();
        agreed = shmem_calloc(1, sizeof *agreed);
        together("barrier", barrier, 1.0);
    } else if (!strcmp(what, "memory")) {
        memory();
    } else if (strcmp(what, "empty")) {
        fprintf(stderr, "usage: peers-c micro (2 PEs) | barrier | memory | empty\n");
        shmem_finalize();
        return 2;
    }
    shmem_finalize();
    return 0;
}
