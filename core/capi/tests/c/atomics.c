/* Atomics: every function, of every type, without and with a context, and the old names. */
#include "check.h"

static shmem_ctx_t ctx;

#define QUIET                 \
    do {                      \
        shmem_quiet();        \
        shmem_ctx_quiet(ctx); \
    } while (0)
#define DONE                  \
    do {                      \
        shmem_ctx_quiet(ctx); \
        shmem_barrier_all();  \
    } while (0)

/* Of this PE's word at its right neighbour, which nobody else uses. What fetches nothing may be on its way until a fence. */
#define FENCE                 \
    do {                      \
        shmem_fence();        \
        shmem_ctx_fence(ctx); \
    } while (0)

#define EXTENDED_BODY(T, F, C)                               \
    T *x = shmem_calloc(2, sizeof(T)), old = (T)99;          \
    F##_atomic_set(C x, (T)(me + 5), right);                 \
    FENCE;                                                   \
    CHECK(F##_atomic_fetch(C x, right) == (T)(me + 5));      \
    CHECK(F##_atomic_swap(C x, (T)7, right) == (T)(me + 5)); \
    F##_atomic_fetch_nbi(C &old, x, right);                  \
    QUIET;                                                   \
    CHECK(old == (T)7);                                      \
    F##_atomic_swap_nbi(C &old, x, (T)(me + 1), right);      \
    QUIET;                                                   \
    CHECK(old == (T)7);                                      \
    DONE;                                                    \
    CHECK(*x == (T)(left + 1));                              \
    shmem_barrier_all();                                     \
    shmem_free(x)

/* Of one word at PE 0 that all use, and of words of their own. */
#define STANDARD_BODY(T, F, C)                                      \
    T *x = shmem_calloc(4, sizeof(T)), old;                         \
    T *all = shmem_calloc(1, sizeof(T));                            \
    int i;                                                          \
    CHECK(F##_atomic_compare_swap(C x, (T)0, (T)9, right) == (T)0); \
    CHECK(F##_atomic_compare_swap(C x, (T)0, (T)8, right) == (T)9); \
    F##_atomic_compare_swap_nbi(C &old, x, (T)9, (T)4, right);      \
    QUIET;                                                          \
    CHECK(old == (T)9 && F##_atomic_fetch(C x, right) == (T)4);     \
    CHECK(F##_atomic_fetch_inc(C x, right) == (T)4);                \
    F##_atomic_inc(C x, right);                                     \
    FENCE;                                                          \
    CHECK(F##_atomic_fetch_add(C x, (T)10, right) == (T)6);         \
    F##_atomic_add(C x, (T)100, right);                             \
    FENCE;                                                          \
    F##_atomic_fetch_inc_nbi(C &old, x, right);                     \
    QUIET;                                                          \
    CHECK(old == (T)116);                                           \
    F##_atomic_fetch_add_nbi(C &old, x, (T)-17, right);             \
    QUIET;                                                          \
    CHECK(old == (T)117 && F##_atomic_fetch(C x, right) == (T)100); \
    for (i = 0; i < 100; i++) {                                     \
        F##_atomic_add(C all, (T)2, 0);                             \
        F##_atomic_fetch_inc(C all, 0);                             \
    }                                                               \
    DONE;                                                           \
    CHECK(F##_atomic_fetch(C all, 0) == (T)(300 * n));              \
    shmem_barrier_all();                                            \
    shmem_free(all);                                                \
    shmem_free(x)

#define BITWISE_BODY(T, F, C)                                    \
    T *x = shmem_calloc(1, sizeof(T)), old;                      \
    F##_atomic_or(C x, (T)0x0f, right);                          \
    FENCE;                                                       \
    CHECK(F##_atomic_fetch_or(C x, (T)0x30, right) == (T)0x0f);  \
    F##_atomic_and(C x, (T)0x3c, right);                         \
    FENCE;                                                       \
    CHECK(F##_atomic_fetch_and(C x, (T)0x1f, right) == (T)0x3c); \
    F##_atomic_xor(C x, (T)0x11, right);                         \
    FENCE;                                                       \
    CHECK(F##_atomic_fetch_xor(C x, (T)0x01, right) == (T)0x0d); \
    F##_atomic_fetch_or_nbi(C &old, x, (T)0x40, right);          \
    QUIET;                                                       \
    CHECK(old == (T)0x0c);                                       \
    F##_atomic_fetch_and_nbi(C &old, x, (T)0x44, right);         \
    QUIET;                                                       \
    CHECK(old == (T)0x4c);                                       \
    F##_atomic_fetch_xor_nbi(C &old, x, (T)0xff, right);         \
    QUIET;                                                       \
    CHECK(old == (T)0x44);                                       \
    DONE;                                                        \
    CHECK(*x == (T)0xbb);                                        \
    shmem_barrier_all();                                         \
    shmem_free(x)

#define BOTH(KIND, BODY, N, T)       \
    static void KIND##_##N(void)     \
    {                                \
        BODY(T, shmem_##N, NO_CTX);  \
    }                                \
    static void KIND##_ctx_##N(void) \
    {                                \
        BODY(T, shmem_ctx_##N, CTX); \
    }
#define EXTENDED(N, T) BOTH(extended, EXTENDED_BODY, N, T)
#define STANDARD(N, T) BOTH(standard, STANDARD_BODY, N, T)
#define BITWISE(N, T) BOTH(bitwise, BITWISE_BODY, N, T)
EXTENDED_TYPES(EXTENDED)
STANDARD_TYPES(STANDARD)
BITWISE_TYPES(BITWISE)

#define OLD_EXTENDED(N, T)                                      \
    static void old_extended_##N(void)                          \
    {                                                           \
        T *x = shmem_calloc(1, sizeof(T));                      \
        shmem_##N##_set(x, (T)3, right);                        \
        FENCE;                                                  \
        CHECK(shmem_##N##_fetch(x, right) == (T)3);             \
        CHECK(shmem_##N##_swap(x, (T)(me + 4), right) == (T)3); \
        shmem_barrier_all();                                    \
        CHECK(*x == (T)(left + 4));                             \
        shmem_free(x);                                          \
    }
#define OLD_STANDARD(N, T)                                      \
    static void old_standard_##N(void)                          \
    {                                                           \
        T *x = shmem_calloc(1, sizeof(T));                      \
        CHECK(shmem_##N##_cswap(x, (T)0, (T)2, right) == (T)0); \
        CHECK(shmem_##N##_finc(x, right) == (T)2);              \
        shmem_##N##_inc(x, right);                              \
        FENCE;                                                  \
        CHECK(shmem_##N##_fadd(x, (T)6, right) == (T)4);        \
        shmem_##N##_add(x, (T)me, right);                       \
        shmem_barrier_all();                                    \
        CHECK(*x == (T)(10 + left));                            \
        shmem_free(x);                                          \
    }
OLD_EXTENDED_TYPES(OLD_EXTENDED)
OLD_STANDARD_TYPES(OLD_STANDARD)

#define CALL(KIND, N) \
    KIND##_##N();     \
    KIND##_ctx_##N();
#define CALL_EXTENDED(N, T) CALL(extended, N)
#define CALL_STANDARD(N, T) CALL(standard, N)
#define CALL_BITWISE(N, T) CALL(bitwise, N)
#define CALL_OLD_EXTENDED(N, T) old_extended_##N();
#define CALL_OLD_STANDARD(N, T) old_standard_##N();

int main(void)
{
    begin();
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
    EXTENDED_TYPES(CALL_EXTENDED)
    STANDARD_TYPES(CALL_STANDARD)
    BITWISE_TYPES(CALL_BITWISE)
    OLD_EXTENDED_TYPES(CALL_OLD_EXTENDED)
    OLD_STANDARD_TYPES(CALL_OLD_STANDARD)
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
