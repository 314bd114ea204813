/* What a program says that finds something wrong. */
#ifndef OXSHMEM_TESTS_EXPECT_H
#define OXSHMEM_TESTS_EXPECT_H

#include <shmem.h>
#include <stdio.h>

/* Ends the job with a message unless it holds. */
#define CHECK(...)                                                                                 \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, shmem_my_pe(), #__VA_ARGS__); \
            shmem_global_exit(1);                                                                  \
        }                                                                                          \
    } while (0)

#endif
