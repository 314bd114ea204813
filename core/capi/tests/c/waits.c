/* Waiting and testing: every function, of every type. */
#include "check.h"

enum { LEN = 5 };

/* The left neighbour sets this PE's words in turn; the second one is never looked at. */
#define STANDARD(N, T)                                                                        \
    static void standard_##N(void)                                                            \
    {                                                                                         \
        T *x = shmem_calloc(LEN, sizeof(T)), values[LEN];                                     \
        const int status[LEN] = {0, 1, 0, 0, 0}, none[LEN] = {1, 1, 1, 1, 1};                 \
        size_t indices[LEN], found;                                                           \
        int i, seen[LEN] = {0};                                                               \
        for (i = 0; i < LEN; i++)                                                             \
            values[i] = (T)(i + 1);                                                           \
        /* No words. */                                                                       \
        shmem_##N##_wait_until_all(x, LEN, none, SHMEM_CMP_EQ, (T)1);                         \
        shmem_##N##_wait_until_all(NULL, 0, NULL, SHMEM_CMP_EQ, (T)1);                        \
        shmem_##N##_wait_until_all_vector(x, LEN, none, SHMEM_CMP_EQ, values);                \
        CHECK(shmem_##N##_wait_until_any(x, LEN, none, SHMEM_CMP_EQ, (T)1) == SIZE_MAX);      \
        CHECK(shmem_##N##_wait_until_any_vector(x, 0, NULL, SHMEM_CMP_EQ, NULL) == SIZE_MAX); \
        CHECK(shmem_##N##_wait_until_some(x, LEN, indices, none, SHMEM_CMP_EQ, (T)1) == 0);   \
        CHECK(shmem_##N##_wait_until_some_vector(x, LEN, indices, none, SHMEM_CMP_EQ, values) == 0); \
        CHECK(shmem_##N##_test_all(x, LEN, none, SHMEM_CMP_EQ, (T)1) == 1);                   \
        CHECK(shmem_##N##_test_all(NULL, 0, NULL, SHMEM_CMP_EQ, (T)1) == 1);                  \
        CHECK(shmem_##N##_test_any(x, LEN, none, SHMEM_CMP_EQ, (T)0) == SIZE_MAX);            \
        CHECK(shmem_##N##_test_some(x, LEN, indices, none, SHMEM_CMP_EQ, (T)0) == 0);         \
        CHECK(shmem_##N##_test_all_vector(x, LEN, none, SHMEM_CMP_EQ, values) == 1);          \
        CHECK(shmem_##N##_test_all_vector(NULL, 0, NULL, SHMEM_CMP_EQ, NULL) == 1);           \
        CHECK(shmem_##N##_test_any_vector(x, LEN, none, SHMEM_CMP_NE, values) == SIZE_MAX);   \
        CHECK(shmem_##N##_test_any_vector(NULL, 0, NULL, SHMEM_CMP_EQ, NULL) == SIZE_MAX);    \
        CHECK(shmem_##N##_test_some_vector(x, LEN, indices, none, SHMEM_CMP_NE, values) == 0); \
        CHECK(shmem_##N##_test_some_vector(NULL, 0, indices, NULL, SHMEM_CMP_EQ, NULL) == 0); \
        CHECK(shmem_##N##_test_any(NULL, 0, NULL, SHMEM_CMP_EQ, (T)0) == SIZE_MAX);           \
        CHECK(shmem_##N##_test_some(NULL, 0, indices, NULL, SHMEM_CMP_EQ, (T)0) == 0);        \
        /* Nothing has come. */                                                               \
        CHECK(!shmem_##N##_test(x, SHMEM_CMP_EQ, (T)1) && shmem_##N##_test(x, SHMEM_CMP_LT, (T)1)); \
        CHECK(!shmem_##N##_test_all(x, LEN, NULL, SHMEM_CMP_NE, (T)0));                       \
        CHECK(!shmem_##N##_test_all_vector(x, LEN, status, SHMEM_CMP_EQ, values));            \
        CHECK(shmem_##N##_test_any(x, LEN, status, SHMEM_CMP_GT, (T)0) == SIZE_MAX);          \
        CHECK(shmem_##N##_test_any_vector(x, LEN, status, SHMEM_CMP_EQ, values) == SIZE_MAX); \
        CHECK(shmem_##N##_test_some(x, LEN, indices, NULL, SHMEM_CMP_NE, (T)0) == 0);         \
        CHECK(shmem_##N##_test_some_vector(x, LEN, indices, NULL, SHMEM_CMP_EQ, values) == 0); \
        shmem_barrier_all();                                                                  \
        shmem_##N##_atomic_set(x + 3, (T)4, right);                                           \
        CHECK(shmem_##N##_wait_until_any(x, LEN, NULL, SHMEM_CMP_NE, (T)0) == 3);             \
        CHECK(shmem_##N##_wait_until_any_vector(x, LEN, status, SHMEM_CMP_EQ, values) == 3);  \
        CHECK(shmem_##N##_test_any(x, LEN, NULL, SHMEM_CMP_GE, (T)1) == 3);                   \
        CHECK(shmem_##N##_test_any_vector(x, LEN, NULL, SHMEM_CMP_EQ, values) == 3);          \
        CHECK(shmem_##N##_wait_until_some(x, LEN, indices, status, SHMEM_CMP_GT, (T)0) == 1); \
        CHECK(indices[0] == 3);                                                               \
        CHECK(shmem_##N##_wait_until_some_vector(x, LEN, indices, NULL, SHMEM_CMP_EQ, values) == 1); \
        CHECK(indices[0] == 3);                                                               \
        shmem_barrier_all();                                                                  \
        for (i = 0; i < LEN; i++)                                                             \
            shmem_##N##_p(x + i, (T)(i + 1), right);                                          \
        shmem_##N##_wait_until(x + 4, SHMEM_CMP_EQ, (T)5);                                    \
        shmem_##N##_wait_until_all(x, LEN, status, SHMEM_CMP_GT, (T)0);                       \
        shmem_##N##_wait_until_all_vector(x, LEN, NULL, SHMEM_CMP_EQ, values);                \
        CHECK(shmem_##N##_test(x + 1, SHMEM_CMP_LE, (T)2));                                   \
        CHECK(shmem_##N##_test_all(x, LEN, NULL, SHMEM_CMP_LE, (T)5));                        \
        CHECK(shmem_##N##_test_all_vector(x, LEN, NULL, SHMEM_CMP_EQ, values));               \
        found = shmem_##N##_test_some(x, LEN, indices, status, SHMEM_CMP_GE, (T)3);           \
        CHECK(found == 3 && indices[0] + indices[1] + indices[2] == 9);                       \
        found = shmem_##N##_test_some_vector(x, LEN, indices, status, SHMEM_CMP_GE, values);  \
        CHECK(found == 4);                                                                    \
        /* None starves. */                                                                   \
        for (i = 0; i < 200; i++)                                                             \
            seen[shmem_##N##_test_any(x, LEN, status, SHMEM_CMP_NE, (T)0)] = 1;               \
        CHECK(seen[0] && !seen[1] && seen[2] && seen[3] && seen[4]);                          \
        /* Nor does one while other words are looked at between. */                           \
        seen[0] = seen[2] = seen[3] = 0;                                                      \
        for (i = 0; i < 200; i++) {                                                           \
            seen[shmem_##N##_test_any(x, 4, NULL, SHMEM_CMP_NE, (T)0)] = 1;                   \
            CHECK(shmem_##N##_wait_until_any(x, 2, NULL, SHMEM_CMP_NE, (T)0) < 2);            \
        }                                                                                     \
        CHECK(seen[0] && seen[1] && seen[2] && seen[3]);                                      \
        shmem_barrier_all();                                                                  \
        /* Comparisons have the type's sign. */                                               \
        shmem_##N##_p(x, (T)-1, right);                                                       \
        shmem_##N##_wait_until(x, SHMEM_CMP_NE, (T)1);                                        \
        CHECK(shmem_##N##_test(x, SHMEM_CMP_LT, (T)0) == ((T)-1 < (T)0));                     \
        CHECK(shmem_##N##_test(x, SHMEM_CMP_GT, (T)0) == ((T)-1 > (T)0));                     \
        shmem_barrier_all();                                                                  \
        shmem_free(x);                                                                        \
    }
STANDARD_TYPES(STANDARD)

#define OLD_WAITS(N, T)                                                                               \
    static void old_waits_##N(void)                                                                   \
    {                                                                                                 \
        T *x = shmem_calloc(2, sizeof(T)), values[2] = {(T)-3, (T)left};                              \
        int status[2] = {0, 1};                                                                       \
        size_t at[2];                                                                                 \
        CHECK(!shmem_##N##_test_all(x, 2, status, SHMEM_CMP_EQ, (T)-3));                              \
        CHECK(shmem_##N##_test_any(x, 2, status, SHMEM_CMP_EQ, (T)-3) == SIZE_MAX);                   \
        shmem_barrier_all();                                                                          \
        shmem_##N##_p(x + 1, (T)me, right);                                                           \
        shmem_fence();                                                                                \
        shmem_##N##_p(x, (T)-3, right);                                                               \
        shmem_##N##_wait_until(x, SHMEM_CMP_EQ, (T)-3);                                               \
        CHECK(shmem_##N##_test(x, SHMEM_CMP_LT, (T)0) == ((T)-3 < 0));                                \
        shmem_##N##_wait_until_all(x, 2, status, SHMEM_CMP_EQ, (T)-3);                                \
        shmem_##N##_wait_until_all_vector(x, 2, NULL, SHMEM_CMP_EQ, values);                          \
        CHECK(shmem_##N##_wait_until_any(x, 2, status, SHMEM_CMP_EQ, (T)-3) == 0);                    \
        CHECK(shmem_##N##_wait_until_any_vector(x, 2, status, SHMEM_CMP_EQ, values) == 0);            \
        CHECK(shmem_##N##_wait_until_some(x, 2, at, status, SHMEM_CMP_EQ, (T)-3) == 1 && at[0] == 0); \
        CHECK(shmem_##N##_wait_until_some_vector(x, 2, at, NULL, SHMEM_CMP_EQ, values) == 2);         \
        CHECK(shmem_##N##_test_all(x, 2, status, SHMEM_CMP_EQ, (T)-3));                               \
        CHECK(shmem_##N##_test_all_vector(x, 2, NULL, SHMEM_CMP_EQ, values));                         \
        CHECK(shmem_##N##_test_any(x, 2, status, SHMEM_CMP_EQ, (T)-3) == 0);                          \
        CHECK(shmem_##N##_test_any_vector(x, 2, status, SHMEM_CMP_EQ, values) == 0);                  \
        CHECK(shmem_##N##_test_some(x, 2, at, status, SHMEM_CMP_EQ, (T)-3) == 1 && at[0] == 0);       \
        CHECK(shmem_##N##_test_some_vector(x, 2, at, NULL, SHMEM_CMP_EQ, values) == 2);               \
        shmem_barrier_all();                                                                          \
        shmem_free(x);                                                                                \
    }
OLD_WAITS_TYPES(OLD_WAITS)

#define OLD_WAIT(N, T)                     \
    static void old_wait_##N(void)         \
    {                                      \
        T *x = shmem_calloc(1, sizeof(T)); \
        shmem_##N##_p(x, (T)(me + 1), right); \
        shmem_##N##_wait(x, (T)0);         \
        CHECK(*x == (T)(left + 1));        \
        shmem_barrier_all();               \
        shmem_free(x);                     \
    }
OLD_WAIT_TYPES(OLD_WAIT)

static void of_long(void)
{
    long *x = shmem_calloc(2, sizeof(long));
    shmem_long_p(x, 8, right);
    (shmem_wait_until)(x, SHMEM_CMP_GE, 8);
    shmem_long_p(x + 1, 9, right);
    shmem_wait(x + 1, 0);
    CHECK(x[0] == 8 && x[1] == 9);
    shmem_barrier_all();
    shmem_free(x);
}

#define CALL_STANDARD(N, T) standard_##N();
#define CALL_OLD_WAITS(N, T) old_waits_##N();
#define CALL_OLD_WAIT(N, T) old_wait_##N();

/* Words that are not aligned, as programs have them that were written for processors to which it is all one. */
static void anywhere(void)
{
    char *x = shmem_calloc(32, 1);
    long value = 0x0102030405060708;
    shmem_putmem(x + 3, &value, sizeof value, right);
    shmem_long_wait_until((long *)(x + 3), SHMEM_CMP_EQ, value);
    shmem_barrier_all();
    /* Between PEs of a host one that changes in two bytes at once is not seen half changed. Others may put it by pieces. */
    int near = !getenv("OXSHMEM_TRANSPORT");
    for (int pe = 0; pe < n; pe++) near = near && shmem_ptr(x, pe);
    for (long i = 1; near && i <= 100; i++) {
        const long base = i << 16, low[] = {255, 256};
        for (int at = 0; at < 20; at++) {
            value = base + low[at % 2];
            shmem_putmem(x + 19, &value, sizeof value, right);
            shmem_fence();
        }
        value = base + 300;
        shmem_putmem(x + 19, &value, sizeof value, right);
        if (i % 2) shmem_long_wait_until((long *)(x + 19), SHMEM_CMP_GE, value);
        else while (!shmem_long_test((long *)(x + 19), SHMEM_CMP_GE, value)) {}
        memcpy(&value, x + 19, sizeof value);
        CHECK(value == base + 300);
        shmem_barrier_all();
    }
    shmem_free(x);
}

int main(void)
{
    begin();
    STANDARD_TYPES(CALL_STANDARD)
    OLD_WAITS_TYPES(CALL_OLD_WAITS)
    OLD_WAIT_TYPES(CALL_OLD_WAIT)
    of_long();
    if (!getenv("OXSHMEM_CHECK")) anywhere(); /* M38 */
    shmem_finalize();
    return 0;
}
