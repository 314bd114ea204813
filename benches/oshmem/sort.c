/* A sort of integers that are spread over all PEs, and its check: ../../examples/src/isort.rs and
 * exchange.rs, in C. */
#include <math.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

enum { KEY_BITS = 28, DIGIT_BITS = 11, SORTS = 5, BUCKET = 256 };

static int me, pes;
static uint32_t *inbox; /* symmetric */
static long *cursor;    /* symmetric: keys in the inbox */
static unsigned long *sums; /* symmetric, on PE 0: misplaced; keys and checksum, before minus now */
static uint32_t *scratch, *sorted;
static size_t came;

static uint64_t mix(uint64_t number) {
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    return number ^ (number >> 31);
}
static uint64_t random_at(uint64_t seed, uint64_t place) {
    return mix(seed + (place + 1) * 0x9e3779b97f4a7c15);
}

static uint32_t bound(int pe) { return (((uint64_t)pe << KEY_BITS) + pes - 1) / pes; }
static int pe_of(uint32_t key) { return ((uint64_t)key * pes) >> KEY_BITS; }

/* Keys on their way to one PE. */
struct bucket {
    uint32_t keys[BUCKET];
    size_t filled;
    uint32_t *rest; /* what is still to be put of this PE's stretch of the inbox */
};

static void send_bucket(struct bucket *bucket, int pe) {
    shmem_putmem(bucket->rest, bucket->keys, bucket->filled * sizeof *bucket->keys, pe);
    bucket->rest += bucket->filled;
    bucket->filled = 0;
}

static void send_keys(const uint32_t *keys, size_t count, const size_t *counts, struct bucket *buckets) {
    for (int pe = 0; pe < pes; pe++) {
        buckets[pe].filled = 0;
        if (counts[pe])
            buckets[pe].rest = inbox + shmem_long_atomic_fetch_add(cursor, counts[pe], pe);
    }
    for (size_t i = 0; i < count; i++) {
        int pe = pe_of(keys[i]);
        struct bucket *bucket = &buckets[pe];
        bucket->keys[bucket->filled++] = keys[i];
        if (bucket->filled == BUCKET) send_bucket(bucket, pe);
    }
    for (int pe = 0; pe < pes; pe++)
        if (buckets[pe].filled) send_bucket(&buckets[pe], pe);
}

static void radix_sort(void) {
    uint32_t start = bound(me), last = bound(me + 1) - start - 1;
    int bits = last ? 32 - __builtin_clz(last) : 0;
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    if (passes == 0) passes = 1;
    int width = (bits + passes - 1) / passes;
    uint32_t mask = (1u << width) - 1;
    for (int pass = 0; pass < passes; pass++) {
        int shift = pass * width;
        uint32_t places[1 << DIGIT_BITS] = {0}, next = 0;
        for (size_t i = 0; i < came; i++) places[((sorted[i] - start) >> shift) & mask]++;
        for (int digit = 0; digit < 1 << DIGIT_BITS; digit++) {
            uint32_t length = places[digit];
            places[digit] = next;
            next += length;
        }
        for (size_t i = 0; i < came; i++)
            scratch[places[((sorted[i] - start) >> shift) & mask]++] = sorted[i];
        uint32_t *swapped = sorted;
        sorted = scratch;
        scratch = swapped;
    }
}

/* Gives the nanoseconds that the exchange took. */
static double sort_once(const uint32_t *keys, size_t count) {
    size_t counts[pes];
    static struct bucket *buckets;
    if (!buckets) buckets = malloc(pes * sizeof *buckets);
    if (!buckets) wrong("sort: no memory");
    shmem_barrier_all(); /* All inboxes are empty. */
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < count; i++) counts[pe_of(keys[i])]++;
    double counted = now_ns();
    send_keys(keys, count, counts, buckets);
    shmem_barrier_all();
    came = shmem_long_atomic_swap(cursor, 0, me);
    memcpy(sorted, inbox, came * sizeof *inbox);
    double exchanged = now_ns();
    radix_sort();
    return exchanged - counted;
}

static uint64_t checksum(const uint32_t *keys, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += mix((uint64_t)keys[i] + 1);
    return sum;
}

static int right(const uint32_t *keys, size_t count) {
    uint64_t misplaced = 0;
    for (size_t i = 0; i < came; i++) {
        misplaced += sorted[i] < bound(me) || sorted[i] >= bound(me + 1);
        misplaced += i > 0 && sorted[i - 1] > sorted[i];
    }
    uint64_t mine[] = {misplaced, count - came, checksum(keys, count) - checksum(sorted, came)};
    memset(sums, 0, sizeof mine);
    shmem_barrier_all();
    for (int i = 0; i < 3; i++) shmem_ulong_atomic_add(&sums[i], mine[i], 0);
    shmem_barrier_all();
    return me != 0 || !(sums[0] | sums[1] | sums[2]);
}

/* Of 2^shift keys of all PEs. */
static void sorts(int shift) {
    size_t count = ((size_t)1 << shift) / pes, room = count + 8 * (size_t)sqrt(count) + 64;
    uint32_t *keys = malloc(count * sizeof *keys);
    inbox = shmem_malloc(room * sizeof *inbox);
    scratch = malloc(room * sizeof *scratch);
    sorted = malloc(room * sizeof *sorted);
    if (!keys || !inbox || !scratch || !sorted) wrong("sort: no memory");
    double whole[SORTS], exchange[SORTS];
    /* The first is not counted: its memory is new. */
    for (int round = -1; round < SORTS; round++) {
        for (size_t i = 0; i < count; i++)
            keys[i] = random_at(random_at(round + 1, me), i) >> (64 - KEY_BITS);
        shmem_barrier_all();
        double begin = now_ns();
        double part = sort_once(keys, count);
        shmem_barrier_all();
        if (round >= 0) {
            whole[round] = (now_ns() - begin) / (count * pes);
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
    shmem_free(inbox);
    free(keys);
    free(scratch);
    free(sorted);
}

void sort(void) {
    me = shmem_my_pe();
    pes = shmem_n_pes();
    cursor = shmem_calloc(1, sizeof *cursor);
    sums = shmem_calloc(3, sizeof *sums);
    if (!cursor || !sums) wrong("sort: no memory");
    sorts(22);
    sorts(24);
}
