/* With -DOXSHMEM_INLINE: how many puts and gets of a word, and how many atomics and what orders them, are calls all the same.
   argv[1] says it of each, argv[2] the thread level. */
#include "check.h"

static long variable;
static long *block;
static int calls;

/* What is no inlined call comes here, as the library's other name for it. */
void pshmem_long_p(long *dest, long value, int pe)
{
    void (*volatile library)(long *, long, int) = shmem_long_p;
    calls++;
    library(dest, value, pe);
}

long pshmem_long_g(const long *source, int pe)
{
    long (*volatile library)(const long *, int) = shmem_long_g;
    calls++;
    return library(source, pe);
}

void pshmem_putmem(void *dest, const void *source, size_t nelems, int pe)
{
    void (*volatile library)(void *, const void *, size_t, int) = shmem_putmem;
    calls++;
    library(dest, source, nelems, pe);
}

void pshmem_int_get(int *dest, const int *source, size_t nelems, int pe)
{
    void (*volatile library)(int *, const int *, size_t, int) = shmem_int_get;
    calls++;
    library(dest, source, nelems, pe);
}

long pshmem_long_atomic_fetch_add(long *dest, long value, int pe)
{
    long (*volatile library)(long *, long, int) = shmem_long_atomic_fetch_add;
    calls++;
    return library(dest, value, pe);
}

void pshmem_uint_atomic_xor(unsigned *dest, unsigned value, int pe)
{
    void (*volatile library)(unsigned *, unsigned, int) = shmem_uint_atomic_xor;
    calls++;
    library(dest, value, pe);
}

float pshmem_float_atomic_swap(float *dest, float value, int pe)
{
    float (*volatile library)(float *, float, int) = shmem_float_atomic_swap;
    calls++;
    return library(dest, value, pe);
}

int pshmem_int_atomic_compare_swap(int *dest, int cond, int value, int pe)
{
    int (*volatile library)(int *, int, int, int) = shmem_int_atomic_compare_swap;
    calls++;
    return library(dest, cond, value, pe);
}

void pshmem_quiet(void)
{
    void (*volatile library)(void) = shmem_quiet;
    calls++;
    library();
}

void pshmem_fence(void)
{
    void (*volatile library)(void) = shmem_fence;
    calls++;
    library();
}

/* Six words. */
static void words(void)
{
    long mine = me + 30;
    int two[2];
    shmem_long_p(&variable, me + 10, right);
    shmem_long_p(block, me + 20, right);
    shmem_putmem(block + 1, &mine, sizeof mine, right);
    shmem_barrier_all();
    CHECK(variable == left + 10 && block[0] == left + 20 && block[1] == left + 30);
    CHECK(shmem_long_g(&variable, right) == me + 10);
    CHECK(shmem_long_g(block, left) == (left + n - 1) % n + 20);
    shmem_int_get(two, (int *)(block + 1), 2, right);
    CHECK(memcmp(two, &mine, sizeof two) == 0);
    shmem_barrier_all();
}

/* Six of atomics and what orders. */
static void changes(void)
{
    static long sum;
    static float real;
    unsigned bits;
    int *whole = (int *)(block + 3);
    sum = 0;
    real = 0.5f;
    *whole = 1;
    shmem_barrier_all();
    CHECK(shmem_long_atomic_fetch_add(&sum, 1L << 40, 0) >> 40 < n);
    CHECK(shmem_float_atomic_swap(&real, me + 1.5f, right) == 0.5f);
    CHECK(shmem_int_atomic_compare_swap(whole, 1, 3, right) == 1);
    shmem_fence();
    shmem_uint_atomic_xor((unsigned *)whole, 5, right);
    shmem_quiet();
    shmem_barrier_all();
    memcpy(&bits, whole, sizeof bits);
    CHECK(real == left + 1.5f && bits == (3 ^ 5));
    CHECK(me != 0 || sum == (long)n << 40);
    shmem_barrier_all();
}

/* Six that are no words, or not where words are. */
static void others(void)
{
    long mine[2] = {me + 40, me + 50}, got;
    int three[3], middle[3] = {0, 0, 0};
    volatile size_t eight = 8;
    char *odd = (char *)(block + 2) + 3;
    shmem_putmem(odd, mine, sizeof mine[0], right);
    shmem_putmem(block + 4, (char *)mine + 4, sizeof mine[0], right);
    shmem_putmem(block + 5, mine, sizeof mine, right);
    shmem_putmem(block + 7, mine, eight, right);
    shmem_barrier_all();
    memcpy(&got, odd, sizeof got);
    CHECK(got == left + 40 && block[5] == left + 40 && block[6] == left + 50 && block[7] == left + 40);
    memcpy(three, block + 4, sizeof(long));
    CHECK(three[1] == left + 50);
    shmem_int_get(middle, (int *)block + 1, 2, right);
    CHECK(middle[1] == me + 30);
    shmem_int_get(three, (int *)(block + 5), 3, right);
    CHECK(three[0] == me + 40 && three[2] == me + 50);
    shmem_barrier_all();
}

int main(int argc, char **argv)
{
    int round, provided;
    CHECK(argc == 3);
    for (round = 0; round < 2; round++) {
        CHECK(shmem_init_thread(atoi(argv[2]), &provided) == 0);
        begin();
        block = shmem_calloc(8, sizeof(long));
        calls = 0;
        words();
        CHECK(calls == atoi(argv[1]));
        calls = 0;
        changes();
        CHECK(calls == atoi(argv[1]));
        calls = 0;
        others();
        CHECK(calls == 6);
        shmem_free(block);
        shmem_finalize();
        shmem_finalize();
    }
    return 0;
}
