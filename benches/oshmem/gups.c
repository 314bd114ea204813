/* Updates of random words of a table on all PEs, and their check: ../../examples/src/gups.rs, in C. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

/* ../src/sizes.rs has the same: 64 MiB a PE, and updates of each PE in a pass. PASSES is odd, as the
 * check requires. */
enum { SHIFT = 23, LOOK_AHEAD = 1024, PASSES = 3 };
#define UPDATES (1UL << 19)
#define BEGIN 0x0123456789abcdefUL

typedef unsigned long u64;

static u64 *table;      /* symmetric, 2^SHIFT words */
static u64 *difference; /* symmetric, on PE 0: the sum over all PEs */
static u64 total;

static u64 times_x(u64 number) { return (number << 1) ^ (-(number >> 63) & 7); }
static u64 product(u64 a, u64 b) {
    u64 sum = 0;
    for (int bit = 63; bit >= 0; bit--) sum = times_x(sum) ^ (a * ((b >> bit) & 1));
    return sum;
}
static u64 stream_from(u64 place) {
    u64 power = 1, square = 2;
    for (; place > 0; place >>= 1) {
        if (place & 1) power = product(power, square);
        square = product(square, square);
    }
    return power;
}
static u64 begin_of_mine(void) { return stream_from(BEGIN + shmem_my_pe() * UPDATES); }

static u64 *place(u64 number, int *pe) {
    u64 word = ((unsigned __int128)number * total) >> 64;
    *pe = word >> SHIFT;
    return &table[word & ((1UL << SHIFT) - 1)];
}

static void update_by_xor(void) {
    u64 number = begin_of_mine();
    for (u64 i = 0; i < UPDATES; i++, number = times_x(number)) {
        int pe;
        u64 *word = place(number, &pe);
        shmem_ulong_atomic_xor(word, number, pe);
    }
    shmem_barrier_all();
}

static void update_by_get_and_put(void) {
    static u64 ahead[LOOK_AHEAD], values[LOOK_AHEAD];
    u64 number = begin_of_mine();
    for (u64 done = 0; done < UPDATES; done += LOOK_AHEAD) {
        int pe;
        for (int i = 0; i < LOOK_AHEAD; i++, number = times_x(number)) ahead[i] = number;
        for (int i = 0; i < LOOK_AHEAD; i++) {
            u64 *word = place(ahead[i], &pe);
            shmem_ulong_get_nbi(&values[i], word, 1, pe);
        }
        shmem_quiet();
        for (int i = 0; i < LOOK_AHEAD; i++) values[i] ^= ahead[i];
        for (int i = 0; i < LOOK_AHEAD; i++) {
            u64 *word = place(ahead[i], &pe);
            shmem_ulong_put_nbi(word, &values[i], 1, pe);
        }
        shmem_quiet();
    }
    shmem_barrier_all();
}

/* The number of all PEs' words that differ from their index after an even number of passes, on PE 0. */
static u64 words_wrong(void) {
    u64 first = (u64)shmem_my_pe() << SHIFT, mine = 0;
    for (u64 i = 0; i < 1UL << SHIFT; i++) mine += table[i] != first + i;
    *difference = 0;
    shmem_barrier_all();
    shmem_ulong_atomic_add(difference, mine, 0);
    shmem_barrier_all();
    return *difference;
}

static void measured(const char *row, void (*update)(void), u64 may_be_wrong) {
    double ns[PASSES];
    for (u64 i = 0; i < 1UL << SHIFT; i++) table[i] = ((u64)shmem_my_pe() << SHIFT) + i;
    shmem_barrier_all();
    for (int pass = 0; pass < PASSES; pass++) {
        double t = now_ns();
        update();
        ns[pass] = (now_ns() - t) / (UPDATES * shmem_n_pes());
    }
    update_by_xor();
    u64 wrongs = words_wrong();
    if (shmem_my_pe() == 0) {
        if (wrongs > may_be_wrong) wrong(row);
        report(row, ns, PASSES);
    }
    shmem_barrier_all();
}

void gups(void) {
    char row[32];
    total = (u64)shmem_n_pes() << SHIFT;
    table = shmem_align(4096, sizeof *table << SHIFT);
    difference = shmem_calloc(1, sizeof *difference);
    if (!table || !difference) wrong("gups: no memory");
    snprintf(row, sizeof row, "gups_xor_%d", shmem_n_pes());
    measured(row, update_by_xor, 0);
    snprintf(row, sizeof row, "gups_get_put_%d", shmem_n_pes());
    measured(row, update_by_get_and_put, total / 100);
}
