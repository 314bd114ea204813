/* What the conformance programs share. */
#ifndef OXSHMEM_TESTS_CHECK_H
#define OXSHMEM_TESTS_CHECK_H

#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "expect.h"
#include "types.h"

/* This PE, their number, and its neighbours. */
static int me, n, right, left;

/* Whether another PE runs on this one's host. All ask at once. */
static int is_here(int pe)
{
    struct utsname *here = (struct utsname *)shmem_malloc(sizeof *here), there;
    int same;
    CHECK(here != NULL && uname(here) == 0);
    shmem_barrier_all();
    shmem_getmem(&there, here, sizeof there, pe);
    same = strcmp(here->nodename, there.nodename) == 0;
    shmem_free(here);
    return same;
}

/* Whether this one loads and stores its memory: not where the test has PEs of one host use lanes. All ask at once. */
static int is_mapped(int pe)
{
    return is_here(pe) && getenv("OXSHMEM_CHECK") == NULL && getenv("OXSHMEM_TRANSPORT") == NULL;
}

static void begin(void)
{
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    (void)is_mapped;
}

/* Calls without and with a context: the first argument of the latter. */
#define NO_CTX
#define CTX ctx,

/* What a PE gives to a sum or a product, of any type: a complex number has another part, too. Wants <complex.h>. */
#define GIVEN(T, i) ((T)((i) + (2 - (i)) * _Complex_I))

#define SIZES(X) X(8) X(16) X(32) X(64) X(128)
#define OLD_SIZES(X) X(32) X(64)

#endif
