/* What the conformance programs share. */
#ifndef OXSHMEM_TESTS_CHECK_H
#define OXSHMEM_TESTS_CHECK_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "types.h"

/* Ends the job with a message unless it holds. */
#define CHECK(...)                                                                                 \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, shmem_my_pe(), #__VA_ARGS__); \
            shmem_global_exit(1);                                                                  \
        }                                                                                          \
    } while (0)

/* This PE, their number, and its neighbours. */
static int me, n, right, left;

/* Whether PEs of one host load and store each other's memory: not where the test has them use lanes. */
static int is_mapped(void)
{
    return getenv("OXSHMEM_CHECK") == NULL && getenv("OXSHMEM_TRANSPORT") == NULL;
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

#define SIZES(X) X(8) X(16) X(32) X(64) X(128)
#define OLD_SIZES(X) X(32) X(64)

#endif
