/* The symmetric heap; of argv[1] bytes, if given, all of which can be had. */
#include "check.h"

static void sizes_of_nothing(void)
{
    CHECK(shmem_malloc(0) == NULL && shmem_align(64, 0) == NULL);
    CHECK(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
    CHECK(shmem_malloc_with_hints(0, 0) == NULL);
    shmem_free(NULL);
    CHECK(shmem_realloc(NULL, 0) == NULL);
}

static void alignment(void)
{
    size_t align;
    for (align = sizeof(void *); align <= 4096; align *= 2) {
        char *x = shmem_align(align, 10);
        CHECK(x != NULL && (uintptr_t)x % align == 0);
        shmem_free(x);
    }
    CHECK(shmem_align(24, 8) == NULL && shmem_align(2, 8) == NULL);
}

static void zeroed(void)
{
    size_t i;
    char *dirty = shmem_malloc(1000), *x;
    memset(dirty, 255, 1000);
    shmem_free(dirty);
    x = shmem_calloc(10, 100);
    for (i = 0; i < 1000; i++)
        CHECK(x[i] == 0);
    shmem_free(x);
}

/* More than there is gives null on all, and changes nothing. */
static void too_much(void)
{
    long *x = shmem_malloc(sizeof(long)), *again;
    *x = me;
    CHECK(shmem_malloc((size_t)1 << 60) == NULL);
    CHECK(shmem_calloc(SIZE_MAX / 2, 4) == NULL);
    CHECK(shmem_realloc(x, (size_t)1 << 60) == NULL);
    shmem_long_p(x, left, left);
    shmem_barrier_all();
    CHECK(*x == me);
    again = shmem_malloc(sizeof(long));
    CHECK(again != NULL);
    shmem_free(again);
    shmem_free(x);
}

static void change(void)
{
    int i, *x = shmem_realloc(NULL, 10 * sizeof(int));
    CHECK(x != NULL);
    for (i = 0; i < 10; i++)
        x[i] = me + i;
    x = shmem_realloc(x, 100000 * sizeof(int));
    for (i = 0; i < 10; i++)
        CHECK(x[i] == me + i);
    shmem_int_p(x + 99999, me, right);
    shmem_barrier_all();
    CHECK(x[99999] == left);
    x = shmem_realloc(x, 4 * sizeof(int));
    for (i = 0; i < 4; i++)
        CHECK(x[i] == me + i);
    CHECK(shmem_realloc(x, 0) == NULL);
}

static void hints(void)
{
    long *x = shmem_malloc_with_hints(sizeof(long), SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
    *x = 0;
    shmem_barrier_all();
    shmem_long_atomic_inc(x, right);
    shmem_barrier_all();
    CHECK(shmem_long_atomic_fetch(x, me) == 1);
    /* Grown, it is as good for atomics. */
    x = shmem_realloc(x, 40000 * sizeof(long));
    CHECK(x != NULL && shmem_long_atomic_fetch_add(x, 5, right) == 1);
    shmem_barrier_all();
    CHECK(shmem_long_atomic_fetch(x, me) == 6);
    shmem_free(x);
}

static void old_names(void)
{
    long *x = shmalloc(sizeof(long)), *y = shmemalign(256, sizeof(long));
    CHECK(x != NULL && (uintptr_t)y % 256 == 0 && _my_pe() == me && _num_pes() == n);
    x = shrealloc(x, 2 * sizeof(long));
    CHECK(x != NULL);
    shfree(y);
    shfree(x);
}

static void addresses(void)
{
    long mine = 0, *x = shmem_malloc(4 * sizeof(long)), *theirs;
    int pe;
    for (pe = 0; pe < n; pe++) {
        CHECK(shmem_pe_accessible(pe) == 1);
        CHECK(shmem_addr_accessible(x + 3, pe) == 1 && shmem_addr_accessible(&mine, pe) == 0);
        CHECK(shmem_ptr(&mine, pe) == NULL && shmem_ptr(NULL, pe) == NULL);
    }
    CHECK(shmem_pe_accessible(-1) == 0 && shmem_pe_accessible(n) == 0);
    CHECK(shmem_addr_accessible(x, n) == 0 && shmem_addr_accessible(x, -1) == 0);
    CHECK(shmem_ptr(x, me) == x && shmem_ptr(x, n) == NULL && shmem_ptr(x, -1) == NULL);
    CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, x, 0) == NULL);
    /* What is on one host is loaded and stored. */
    theirs = shmem_ptr(x + 1, right);
    CHECK(theirs == shmem_team_ptr(SHMEM_TEAM_WORLD, x + 1, right));
    CHECK((theirs != NULL) >= is_mapped(right) && (theirs != NULL) <= is_here(right));
    x[1] = left + 50;
    shmem_barrier_all();
    if (theirs != NULL)
        *theirs = me + 50;
    shmem_barrier_all();
    CHECK(x[1] == left + 50);
    shmem_barrier_all();
    shmem_free(x);
}

/* What was asked for is the program's. */
static void all_of_it(size_t size)
{
    char *x = shmem_malloc(size);
    CHECK(x != NULL);
    shmem_char_p(x + size - 1, 'a' + me, right);
    shmem_barrier_all();
    CHECK(x[size - 1] == 'a' + left);
    shmem_free(x);
}

int main(int argc, char **argv)
{
    begin();
    if (argc > 1)
        all_of_it(strtoul(argv[1], NULL, 10));
    sizes_of_nothing();
    alignment();
    zeroed();
    too_much();
    change();
    hints();
    old_names();
    addresses();
    shmem_finalize();
    return 0;
}
