/* A sort of integers that are spread over all PEs, and its check: ../../examples/src/isort.rs, in C. */
#include <math.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

enum { KEY_BITS = 28, SORTS = 5, FEWEST_KEYS = 4096, MOST_BUCKETS = 512, BUFFER = 128 };
enum { DIGIT_BITS = KEY_BITS / 2, DIGITS = 1 << DIGIT_BITS };

static int me, pes;
static int bits;        /* the number of a PE's buckets (each), as a power of two */
static size_t each, all; /* buckets of a PE and of all */
static uint32_t *inbox; /* symmetric */
static uint64_t *told, *counts, *places; /* symmetric, a row for each PE */
static unsigned long *sums; /* symmetric, on PE 0: misplaced; keys and checksum, before minus now */
static long *sync[2];
/* Keys to be sent to one bucket. */
static struct buffer {
    _Alignas(64) uint32_t keys[BUFFER];
} *buffers;
static uint32_t *scratch, *sorted;
static size_t room, came;

static uint64_t mix(uint64_t number) {
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    return number ^ (number >> 31);
}
static uint64_t random_at(uint64_t seed, uint64_t place) {
    return mix(seed + (place + 1) * 0x9e3779b97f4a7c15);
}

static uint32_t bound(size_t bucket) { return (((uint64_t)bucket << KEY_BITS) + all - 1) / all; }
static size_t bucket_of(uint32_t key) { return ((uint64_t)key * all) >> KEY_BITS; }

/* The division for so many keys on each PE. */
static void choose_buckets(size_t keys) {
    bits = 0;
    while (keys >> (bits + 1) >= FEWEST_KEYS && (size_t)pes << (bits + 1) <= MOST_BUCKETS) bits++;
    each = (size_t)1 << bits;
    all = (size_t)pes << bits;
}

static void *symmetric(size_t bytes) {
    void *memory = shmem_align(64, bytes);
    if (!memory) wrong("sort: no memory");
    return memory;
}
static void *local(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) wrong("sort: no memory");
    return memory;
}

/* Computes, from each PE's number of keys for each bucket, where this PE's keys of each bucket go, and where
 * this PE's buckets end in its inbox. */
static void agree(const uint64_t *mine, uint64_t *first, uint64_t *ends) {
    memcpy(told, mine, all * sizeof *told);
    shmem_alltoall64(counts, told, each, 0, 0, pes, sync[0]);
    uint64_t next = 0;
    for (size_t bucket = 0; bucket < each; bucket++) {
        for (int pe = 0; pe < pes; pe++) {
            told[pe * (each + 1) + bucket] = next;
            next += counts[pe * each + bucket];
        }
        ends[bucket] = next;
    }
    for (int pe = 0; pe < pes; pe++) told[pe * (each + 1) + each] = next;
    shmem_alltoall64(places, told, each + 1, 0, 0, pes, sync[1]);
    for (int pe = 0; pe < pes; pe++) {
        if (places[pe * (each + 1) + each] > room) wrong("sort: a full inbox");
        memcpy(first + pe * each, places + pe * (each + 1), each * sizeof *first);
    }
}

static inline void put(size_t bucket, uint64_t begin, uint64_t end) {
    const uint32_t *keys = buffers[bucket].keys + begin % BUFFER;
    shmem_putmem(inbox + begin, keys, (end - begin) * sizeof *keys, bucket >> bits);
}
static inline uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void send_keys(const uint32_t *keys, size_t count, const uint64_t *first, uint64_t *next) {
    memcpy(next, first, all * sizeof *next);
    for (size_t i = 0; i < count; i++) {
        size_t bucket = bucket_of(keys[i]);
        buffers[bucket].keys[next[bucket] % BUFFER] = keys[i];
        uint64_t end = ++next[bucket];
        if (end % BUFFER == 0) put(bucket, later(first[bucket], end - BUFFER), end);
    }
    for (size_t bucket = 0; bucket < all; bucket++) {
        uint64_t end = next[bucket], begin = later(first[bucket], end - end % BUFFER);
        if (begin < end) put(bucket, begin, end);
    }
}

/* Copies keys in the order of a digit; `counters` holds the number of keys for each digit. */
static inline void scatter(const uint32_t *from, uint32_t *to, size_t count, uint32_t *counters, uint32_t start,
                           int shift, uint32_t mask) {
    uint32_t next = 0;
    for (uint32_t digit = 0; digit <= mask; digit++) {
        uint32_t length = counters[digit];
        counters[digit] = next;
        next += length;
    }
    for (size_t i = 0; i < count; i++) to[counters[((from[i] - start) >> shift) & mask]++] = from[i];
}

/* Sorts keys of a bucket by two digits, the lower one first. */
static void radix_sort(uint32_t *keys, size_t count, size_t bucket) {
    static uint32_t lowers[DIGITS], uppers[DIGITS];
    uint32_t start = bound(bucket), last = bound(bucket + 1) - start - 1;
    int width = last ? (32 - __builtin_clz(last) + 1) / 2 : 0;
    uint32_t mask = (1u << width) - 1;
    memset(lowers, 0, (mask + 1) * sizeof *lowers);
    memset(uppers, 0, (mask + 1) * sizeof *uppers);
    for (size_t i = 0; i < count; i++) {
        lowers[(keys[i] - start) & mask]++;
        uppers[((keys[i] - start) >> width) & mask]++;
    }
    scatter(keys, scratch, count, lowers, start, 0, mask);
    scatter(scratch, keys, count, uppers, start, width, mask);
}

/* Returns the nanoseconds of the exchange. */
static double sort_once(const uint32_t *keys, size_t count) {
    uint64_t first[all], next[all], ends[each];
    shmem_barrier_all(); /* All begin together. */
    memset(next, 0, sizeof next);
    for (size_t i = 0; i < count; i++) next[bucket_of(keys[i])]++;
    double counted = now_ns();
    agree(next, first, ends);
    send_keys(keys, count, first, next);
    shmem_barrier_all();
    double exchanged = now_ns();
    came = 0;
    for (size_t bucket = 0; bucket < each; came = ends[bucket++]) {
        size_t length = ends[bucket] - came;
        memcpy(sorted + came, inbox + came, length * sizeof *sorted);
        radix_sort(sorted + came, length, me * each + bucket);
    }
    return exchanged - counted;
}

static uint64_t checksum(const uint32_t *keys, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += mix((uint64_t)keys[i] + 1);
    return sum;
}

static int right(const uint32_t *keys, size_t count) {
    uint64_t misplaced = 0;
    uint32_t start = bound(me * each), end = bound((me + 1) * each);
    for (size_t i = 0; i < came; i++) {
        misplaced += sorted[i] < start || sorted[i] >= end;
        misplaced += i > 0 && sorted[i - 1] > sorted[i];
    }
    uint64_t mine[] = {misplaced, count - came, checksum(keys, count) - checksum(sorted, came)};
    memset(sums, 0, sizeof mine);
    shmem_barrier_all();
    for (int i = 0; i < 3; i++) shmem_ulong_atomic_add(&sums[i], mine[i], 0);
    shmem_barrier_all();
    return me != 0 || !(sums[0] | sums[1] | sums[2]);
}

/* Sorts 2^shift keys of all PEs. */
static void sorts(int shift) {
    size_t count = ((size_t)1 << shift) / pes;
    choose_buckets(count);
    room = count + 8 * (size_t)sqrt(count) + 64;
    inbox = symmetric(room * sizeof *inbox);
    told = symmetric((all + pes) * sizeof *told);
    counts = symmetric(all * sizeof *counts);
    places = symmetric((all + pes) * sizeof *places);
    buffers = local(all * sizeof *buffers);
    uint32_t *keys = local(count * sizeof *keys);
    scratch = local(room * sizeof *scratch);
    sorted = local(room * sizeof *sorted);
    double whole[SORTS], exchange[SORTS];
    /* The first sort is not counted: its memory is new. */
    for (int round = -1; round < SORTS; round++) {
        for (size_t i = 0; i < count; i++)
            keys[i] = random_at(random_at(round + 1, me), i) >> (64 - KEY_BITS);
        shmem_barrier_all();
        double begin = now_ns();
        double part = sort_once(keys, count);
        shmem_barrier_all();
        double took = now_ns() - begin;
        shmem_barrier_all(); /* No PE checks before PE 0, which may share its processor, has read the clock. */
        if (round >= 0) {
            whole[round] = took / (count * pes);
            exchange[round] = part / (count * pes);
        }
        if (!right(keys, count)) wrong("sort");
    }
    if (me == 0) {
        char row[48];
        snprintf(row, sizeof row, "sort_%d_%d", shift, pes);
        report(row, whole, SORTS);
        snprintf(row, sizeof row, "sort_exchange_%d_%d", shift, pes);
        report(row, exchange, SORTS);
    }
    shmem_free(places);
    shmem_free(counts);
    shmem_free(told);
    shmem_free(inbox);
    free(buffers);
    free(keys);
    free(scratch);
    free(sorted);
}

void sort(void) {
    me = shmem_my_pe();
    pes = shmem_n_pes();
    sums = symmetric(3 * sizeof *sums);
    for (int i = 0; i < 2; i++) {
        sync[i] = symmetric(SHMEM_ALLTOALL_SYNC_SIZE * sizeof **sync);
        for (int j = 0; j < SHMEM_ALLTOALL_SYNC_SIZE; j++) sync[i][j] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all(); /* All may be used. */
    sorts(22);
    sorts(24);
}
