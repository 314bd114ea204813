/* Single operations between two PEs, and a PE's resident memory. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "timing.h"

enum { WINDOW = 64, LARGEST_LATENCY = 4 << 20 };

/* The memory of the loops. */
static long *words;        /* symmetric, WORDS longs */
static char *block;        /* symmetric, LARGEST bytes */
static char *local;        /* private, LARGEST bytes */
static long *ping, *pong;  /* symmetric, a cache line each */
static size_t size;        /* bytes in the block loops */
static volatile long sink;

static void put8(long n) {
    for (long i = 0; i < n; i++) {
        long v = i;
        shmem_long_put(&words[i & (WORDS - 1)], &v, 1, 1);
    }
    shmem_quiet();
}
static void put8_window(long n) {
    for (long i = 0; i < n; i++) {
        for (long w = 0; w < WINDOW; w++) {
            long v = i + w;
            shmem_long_put(&words[w], &v, 1, 1);
        }
        shmem_quiet();
    }
}
static void put_nbi8_window(long n) {
    long values[WINDOW];
    for (long w = 0; w < WINDOW; w++) values[w] = w;
    for (long i = 0; i < n; i++) {
        for (long w = 0; w < WINDOW; w++) shmem_long_put_nbi(&words[w], &values[w], 1, 1);
        shmem_quiet();
        BARRIER_FOR_COMPILER();
    }
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
static void g8(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += shmem_long_g(&words[i & (WORDS - 1)], 1);
    sink = sum;
}
static void add8(long n) {
    for (long i = 0; i < n; i++) shmem_long_atomic_add(&words[i & (WORDS - 1)], 1, 1);
    shmem_quiet();
}
static void compare_swap8(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += shmem_long_atomic_compare_swap(&words[i & (WORDS - 1)], i, i + 1, 1);
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
/* OpenSHMEM 1.4 has no put with signal: a put, a fence and the flag. */
static void tell(long *flag, int pe) {
    shmem_putmem(block, local, size, pe);
    shmem_fence();
    shmem_long_p(flag, round_trips, pe);
}
static void put_ping_pong(long n) {
    int me = shmem_my_pe();
    for (long i = 0; i < n; i++) {
        round_trips++;
        if (me == 0) {
            tell(ping, 1);
            shmem_long_wait_until(pong, SHMEM_CMP_EQ, round_trips);
        } else {
            shmem_long_wait_until(ping, SHMEM_CMP_EQ, round_trips);
            tell(pong, 0);
        }
    }
}
static void barrier(long n) {
    for (long i = 0; i < n; i++) shmem_barrier_all();
}

void barrier_alone(void) {
    char row[32];
    snprintf(row, sizeof row, "barrier_%d", shmem_n_pes());
    together(row, barrier, 1);
}

static void stream(size_t bytes) {
    char row[32];
    size = bytes;
    snprintf(row, sizeof row, "put_%zu", size);
    alone(row, put_block, 1);
    snprintf(row, sizeof row, "get_%zu", size);
    alone(row, get_block, 1);
}

void micro(void) {
    int me = shmem_my_pe();
    char row[32];
    if (shmem_n_pes() != 2) wrong("micro needs 2 PEs");
    words = shmem_align(4096, WORDS * sizeof *words);
    block = shmem_align(4096, LARGEST);
    ping = shmem_align(4096, 4096);
    pong = ping + 64;
    long *done = pong + 64;
    if (posix_memalign((void **)&local, 4096, LARGEST)) abort();
    memset(local, 1, LARGEST);
    memset(block, 2, LARGEST);
    memset(words, 0, WORDS * sizeof *words);
    memset(ping, 0, 4096);
    shmem_barrier_all();
    if (me == 0) {
        alone("quiet_clean", quiet_clean, 1);
        alone("put8", put8, 1);
        alone("p8", p8, 1);
        alone("put8_window", put8_window, WINDOW);
        alone("put_nbi8_window", put_nbi8_window, WINDOW);
        alone("get8", get8, 1);
        alone("g8", g8, 1);
        alone("fetch_add8", fetch_add8, 1);
        alone("add8", add8, 1);
        alone("compare_swap8", compare_swap8, 1);
        alone("put_quiet", put_quiet, 1);
        for (size_t bytes = 8; bytes < 1024; bytes *= 4) stream(bytes);
        for (size_t bytes = 1024; bytes <= LARGEST; bytes *= 4) stream(bytes);
        shmem_long_p(done, 1, 1);
        shmem_quiet();
    } else {
        while (!*(volatile long *)done) usleep(1000); /* keeps off the caches */
    }
    together("ping_pong", ping_pong, 2);
    for (size = 1024; size <= LARGEST_LATENCY; size *= 4) {
        snprintf(row, sizeof row, "put_latency_%zu", size);
        together(row, put_ping_pong, 2);
    }
    barrier_alone();
}

/* The same operations between two hosts. PE 1 waits in a call of the library, which makes progress. */
void tcp(void) {
    enum { LARGEST_TCP_BLOCK = 1 << 20 };
    static const size_t sizes[] = {1 << 10, 16 << 10, 128 << 10, LARGEST_TCP_BLOCK};
    int me = shmem_my_pe();
    char row[32];
    if (shmem_n_pes() != 2) wrong("tcp needs 2 PEs");
    words = shmem_align(4096, WORDS * sizeof *words);
    block = shmem_align(4096, LARGEST_TCP_BLOCK);
    ping = shmem_align(4096, 4096);
    pong = ping + 64;
    long *done = pong + 64;
    if (posix_memalign((void **)&local, 4096, LARGEST_TCP_BLOCK)) abort();
    memset(local, 1, LARGEST_TCP_BLOCK);
    memset(block, 2, LARGEST_TCP_BLOCK);
    memset(words, 0, WORDS * sizeof *words);
    memset(ping, 0, 4096);
    shmem_barrier_all();
    if (me == 0) {
        alone("put8", put8, 1);
        alone("put_nbi8_window", put_nbi8_window, WINDOW);
        alone("get8", get8, 1);
        alone("fetch_add8", fetch_add8, 1);
        alone("put_quiet", put_quiet, 1);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) stream(sizes[i]);
        shmem_long_p(done, 1, 1);
    } else {
        shmem_long_wait_until(done, SHMEM_CMP_EQ, 1);
    }
    together("ping_pong", ping_pong, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size = sizes[i];
        snprintf(row, sizeof row, "put_latency_%zu", size);
        together(row, put_ping_pong, 2);
    }
    barrier_alone();
}

void first(void) {
    int me = shmem_my_pe();
    long longs = FIRST_BLOCK / sizeof(long);
    long *given = malloc(FIRST_BLOCK);
    for (long i = 0; given && i < longs; i++) given[i] = 1;
    shmem_barrier_all();
    double took = now_ns();
    long *taken = shmem_align(4096, FIRST_BLOCK);
    if (!given || !taken) wrong("first_use: no memory");
    if (me == 0) shmem_long_put(taken, given, longs, 1);
    shmem_barrier_all();
    took = now_ns() - took;
    if (me == 1 && taken[longs - 1] != 1) wrong("first_use");
    if (me == 0) report("first_use", &took, 1);
    shmem_free(taken);
    free(given);
}

void memory(void) {
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
