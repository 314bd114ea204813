/* One name for all types: C11's macros, and as generics.cpp C++'s overloads. */
#include "check.h"

#ifdef __cplusplus
#define NEW(T, COUNT) static_cast<T *>(shmem_calloc(COUNT, sizeof(T)))
#else
#define NEW(T, COUNT) ((T *)shmem_calloc(COUNT, sizeof(T)))
#endif

static shmem_ctx_t ctx;

/* What fetches nothing may be on its way until a fence, what is nonblocking until a quiet. */
#define QUIET                 \
    do {                      \
        shmem_quiet();        \
        shmem_ctx_quiet(ctx); \
    } while (0)
#define FENCE                 \
    do {                      \
        shmem_fence();        \
        shmem_ctx_fence(ctx); \
    } while (0)

#define RMA_BODY(T, C)                                                          \
    do {                                                                        \
        T *x = NEW(T, 8), source[4] = {(T)1, (T)2, (T)3, (T)4}, got[4];         \
        uint64_t *word = NEW(uint64_t, 1);                                      \
        shmem_put(C x, source, 4, right);                                       \
        shmem_put_nbi(C x + 4, source, 4, right);                               \
        shmem_ctx_quiet(ctx);                                                   \
        shmem_barrier_all();                                                    \
        CHECK(x[3] == (T)4 && x[7] == (T)4);                                    \
        shmem_get(C got, x, 4, right);                                          \
        CHECK(got[1] == (T)2);                                                  \
        shmem_get_nbi(C got, x + 4, 4, right);                                  \
        shmem_quiet();                                                          \
        shmem_ctx_quiet(ctx);                                                   \
        CHECK(got[2] == (T)3);                                                  \
        shmem_barrier_all();                                                    \
        shmem_p(C x, (T)9, right);                                              \
        shmem_quiet();                                                          \
        shmem_ctx_quiet(ctx);                                                   \
        CHECK(shmem_g(C x, right) == (T)9);                                     \
        shmem_iput(C x, source, 2, 1, 4, right);                                \
        shmem_ctx_quiet(ctx);                                                   \
        shmem_barrier_all();                                                    \
        CHECK(x[6] == (T)4);                                                    \
        shmem_iget(C got, x, 1, 2, 4, right);                                   \
        CHECK(got[3] == (T)4);                                                  \
        shmem_ibput(C x, source, 2, 2, 2, 2, right);                            \
        shmem_ibget(C got, x, 2, 2, 2, 2, right);                               \
        CHECK(got[3] == (T)4);                                                  \
        shmem_put_signal(C x, source, 4, word, 1, SHMEM_SIGNAL_ADD, right);     \
        shmem_put_signal_nbi(C x, source, 4, word, 1, SHMEM_SIGNAL_ADD, right); \
        shmem_signal_wait_until(word, SHMEM_CMP_EQ, 2);                         \
        shmem_barrier_all();                                                    \
        shmem_signal_set(C word, 1, right);                                     \
        FENCE;                                                                  \
        shmem_signal_add(C word, 5, right);                                     \
        shmem_ctx_quiet(ctx);                                                   \
        shmem_barrier_all();                                                    \
        CHECK(shmem_signal_fetch(word) == 6);                                   \
        shmem_barrier_all();                                                    \
        shmem_free(word);                                                       \
        shmem_free(x);                                                          \
    } while (0)
#define EXTENDED_BODY(T, C)                                 \
    do {                                                    \
        T *x = NEW(T, 1), old;                              \
        shmem_atomic_set(C x, (T)3, right);                 \
        FENCE;                                              \
        CHECK(shmem_atomic_fetch(C x, right) == (T)3);      \
        CHECK(shmem_atomic_swap(C x, (T)5, right) == (T)3); \
        shmem_atomic_fetch_nbi(C &old, x, right);           \
        QUIET;                                              \
        shmem_atomic_swap_nbi(C &old, x, (T)6, right);      \
        shmem_quiet();                                      \
        shmem_ctx_quiet(ctx);                               \
        CHECK(old == (T)5);                                 \
        shmem_barrier_all();                                \
        shmem_free(x);                                      \
    } while (0)
#define STANDARD_BODY(T, C)                                               \
    do {                                                                  \
        T *x = NEW(T, 1), old;                                            \
        CHECK(shmem_atomic_compare_swap(C x, (T)0, (T)1, right) == (T)0); \
        CHECK(shmem_atomic_fetch_inc(C x, right) == (T)1);                \
        shmem_atomic_inc(C x, right);                                     \
        FENCE;                                                            \
        CHECK(shmem_atomic_fetch_add(C x, (T)2, right) == (T)3);          \
        shmem_atomic_add(C x, (T)2, right);                               \
        FENCE;                                                            \
        shmem_atomic_compare_swap_nbi(C &old, x, (T)7, (T)1, right);      \
        QUIET;                                                            \
        shmem_atomic_fetch_inc_nbi(C &old, x, right);                     \
        QUIET;                                                            \
        shmem_atomic_fetch_add_nbi(C &old, x, (T)1, right);               \
        shmem_quiet();                                                    \
        shmem_ctx_quiet(ctx);                                             \
        CHECK(shmem_atomic_fetch(C x, right) == (T)3);                    \
        shmem_barrier_all();                                              \
        shmem_free(x);                                                    \
    } while (0)
#define BITWISE_BODY(T, C)                                       \
    do {                                                         \
        T *x = NEW(T, 1), old;                                   \
        shmem_atomic_or(C x, (T)6, right);                       \
        FENCE;                                                   \
        shmem_atomic_and(C x, (T)3, right);                      \
        FENCE;                                                   \
        shmem_atomic_xor(C x, (T)1, right);                      \
        FENCE;                                                   \
        CHECK(shmem_atomic_fetch_or(C x, (T)4, right) == (T)3);  \
        CHECK(shmem_atomic_fetch_and(C x, (T)5, right) == (T)7); \
        CHECK(shmem_atomic_fetch_xor(C x, (T)1, right) == (T)5); \
        shmem_atomic_fetch_or_nbi(C &old, x, (T)1, right);       \
        QUIET;                                                   \
        shmem_atomic_fetch_and_nbi(C &old, x, (T)1, right);      \
        QUIET;                                                   \
        shmem_atomic_fetch_xor_nbi(C &old, x, (T)1, right);      \
        shmem_quiet();                                           \
        shmem_ctx_quiet(ctx);                                    \
        shmem_barrier_all();                                     \
        CHECK(*x == (T)0);                                       \
        shmem_free(x);                                           \
    } while (0)
#define COLLECTIVE_BODY(T)                                                         \
    do {                                                                           \
        T *x = NEW(T, 2 * n), *y = NEW(T, 2 * n);                                  \
        x[0] = (T)1;                                                               \
        CHECK(shmem_alltoall(SHMEM_TEAM_WORLD, y, x, 1) == 0);                     \
        CHECK(shmem_alltoalls(SHMEM_TEAM_WORLD, y, x, 1, 2, 1) == 0);              \
        CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, y, x, 1, 0) == 0 && y[0] == (T)1); \
        CHECK(shmem_collect(SHMEM_TEAM_WORLD, y, x, 1) == 0);                      \
        CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, y, x, 1) == 0 && y[n - 1] == (T)1); \
        CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0);                   \
        CHECK(shmem_min_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0 && y[0] == (T)1);   \
        shmem_free(y);                                                             \
        shmem_free(x);                                                             \
    } while (0)
#define SUM_BODY(T)                                                                   \
    do {                                                                              \
        T *x = NEW(T, 1), *y = NEW(T, 1);                                             \
        x[0] = (T)1;                                                                  \
        CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0 && *y == (T)1);       \
        CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0 && *y == (T)n);        \
        CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, y, x, 1) == 0 && *y == (T)(me + 1)); \
        CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, y, x, 1) == 0 && *y == (T)me);       \
        shmem_free(y);                                                                \
        shmem_free(x);                                                                \
    } while (0)
#define REDUCE_BITS_BODY(T)                                                    \
    do {                                                                       \
        T *x = NEW(T, 1), *y = NEW(T, 1);                                      \
        x[0] = (T)3;                                                           \
        CHECK(shmem_and_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0 && *y == (T)3); \
        CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0 && *y == (T)3);  \
        CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0);               \
        shmem_free(y);                                                         \
        shmem_free(x);                                                         \
    } while (0)
#define WAITS_BODY(T)                                                                   \
    do {                                                                                \
        T *x = NEW(T, 2), values[2] = {(T)1, (T)1};                                     \
        size_t at[2];                                                                   \
        shmem_p(x, (T)1, right);                                                        \
        shmem_p(x + 1, (T)1, right);                                                    \
        shmem_wait_until(x, SHMEM_CMP_EQ, (T)1);                                        \
        shmem_wait_until_all(x, 2, NULL, SHMEM_CMP_EQ, (T)1);                           \
        shmem_wait_until_all_vector(x, 2, NULL, SHMEM_CMP_EQ, values);                  \
        CHECK(shmem_wait_until_any(x, 2, NULL, SHMEM_CMP_EQ, (T)1) < 2);                \
        CHECK(shmem_wait_until_any_vector(x, 2, NULL, SHMEM_CMP_EQ, values) < 2);       \
        CHECK(shmem_wait_until_some(x, 2, at, NULL, SHMEM_CMP_EQ, (T)1) == 2);          \
        CHECK(shmem_wait_until_some_vector(x, 2, at, NULL, SHMEM_CMP_EQ, values) == 2); \
        CHECK(shmem_test(x, SHMEM_CMP_EQ, (T)1));                                       \
        CHECK(shmem_test_all(x, 2, NULL, SHMEM_CMP_EQ, (T)1));                          \
        CHECK(shmem_test_all_vector(x, 2, NULL, SHMEM_CMP_EQ, values));                 \
        CHECK(shmem_test_any(x, 2, NULL, SHMEM_CMP_EQ, (T)1) < 2);                      \
        CHECK(shmem_test_any_vector(x, 2, NULL, SHMEM_CMP_EQ, values) < 2);             \
        CHECK(shmem_test_some(x, 2, at, NULL, SHMEM_CMP_EQ, (T)1) == 2);                \
        CHECK(shmem_test_some_vector(x, 2, at, NULL, SHMEM_CMP_EQ, values) == 2);       \
        shmem_barrier_all();                                                            \
        shmem_free(x);                                                                  \
    } while (0)
#define OLD_EXTENDED_BODY(T)                       \
    do {                                           \
        T *x = NEW(T, 1);                          \
        shmem_set(x, (T)3, right);                 \
        FENCE;                                     \
        CHECK(shmem_fetch(x, right) == (T)3);      \
        CHECK(shmem_swap(x, (T)4, right) == (T)3); \
        shmem_barrier_all();                       \
        shmem_free(x);                             \
    } while (0)
#define OLD_STANDARD_BODY(T)                              \
    do {                                                  \
        T *x = NEW(T, 1);                                 \
        CHECK(shmem_cswap(x, (T)0, (T)2, right) == (T)0); \
        CHECK(shmem_finc(x, right) == (T)2);              \
        shmem_inc(x, right);                              \
        FENCE;                                            \
        CHECK(shmem_fadd(x, (T)6, right) == (T)4);        \
        shmem_add(x, (T)1, right);                        \
        shmem_barrier_all();                              \
        CHECK(*x == (T)11);                               \
        shmem_barrier_all();                              \
        shmem_free(x);                                    \
    } while (0)

#define RMA(N, T) RMA_BODY(T, NO_CTX); RMA_BODY(T, CTX); COLLECTIVE_BODY(T);
#define EXTENDED(N, T) EXTENDED_BODY(T, NO_CTX); EXTENDED_BODY(T, CTX);
#define STANDARD(N, T) STANDARD_BODY(T, NO_CTX); STANDARD_BODY(T, CTX); WAITS_BODY(T);
#define BITWISE(N, T) BITWISE_BODY(T, NO_CTX); BITWISE_BODY(T, CTX);
#define SUM(N, T) SUM_BODY(T);
#define REDUCE_BITS(N, T) REDUCE_BITS_BODY(T);
#define OLD_EXTENDED(N, T) OLD_EXTENDED_BODY(T);
#define OLD_STANDARD(N, T) OLD_STANDARD_BODY(T);
#define OLD_WAITS(N, T) WAITS_BODY(T);

static void rma(void) { DISTINCT_RMA_TYPES(RMA) }
static void extended(void) { DISTINCT_EXTENDED_TYPES(EXTENDED) }
static void standard(void) { DISTINCT_STANDARD_TYPES(STANDARD) }
static void bitwise(void) { DISTINCT_BITWISE_TYPES(BITWISE) }
static void sums(void) { DISTINCT_RMA_TYPES(SUM) }
static void waits(void) { DISTINCT_OLD_WAITS_TYPES(OLD_WAITS) }
static void reduce_bits(void) { DISTINCT_REDUCE_BITS_TYPES(REDUCE_BITS) DISTINCT_OLD_REDUCE_BITS_TYPES(REDUCE_BITS) }
static void old(void) { DISTINCT_OLD_EXTENDED_TYPES(OLD_EXTENDED) DISTINCT_OLD_STANDARD_TYPES(OLD_STANDARD) }

/* All give 1+2i, then i: powers of that have one part alone. */
#define COMPLEX_OF(T, PART)                                                                                \
    do {                                                                                                   \
        T *x = NEW(T, 1), *y = NEW(T, 1);                                                                  \
        PART *from = (PART *)x, *to = (PART *)y, turns[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};         \
        from[0] = 1, from[1] = 2;                                                                          \
        CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0 && to[0] == (PART)n && to[1] == (PART)(2 * n)); \
        CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, y, x, 1) == 0);                                           \
        CHECK(to[0] == (PART)(me + 1) && to[1] == (PART)(2 * (me + 1)));                                   \
        CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, y, x, 1) == 0 && to[0] == (PART)me && to[1] == (PART)(2 * me)); \
        shmem_barrier_all();                                                                               \
        from[0] = 0, from[1] = 1;                                                                          \
        CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, y, x, 1) == 0);                                          \
        CHECK(to[0] == turns[n % 4][0] && to[1] == turns[n % 4][1]);                                       \
        shmem_free(y);                                                                                     \
        shmem_free(x);                                                                                     \
    } while (0)
#ifdef __cplusplus
template <typename T, typename PART> static void complex_of() { COMPLEX_OF(T, PART); }
#endif

static void complex_numbers(void)
{
#ifdef __cplusplus
    complex_of<std::complex<double>, double>();
    complex_of<std::complex<float>, float>();
#else
    COMPLEX_OF(double _Complex, double);
    COMPLEX_OF(float _Complex, float);
#endif
}

/* Flags are volatile in many programs, and what is read may be const. */
static void volatile_objects(void)
{
    static volatile long flags[2];
    static volatile uint64_t signal;
    const volatile long *flag = flags;
    volatile int *x = NEW(int, 4);
    const int *y = NEW(int, 4), values[4] = {1, 2, 3, 4};
    volatile int got[4];
    size_t at[4];
    int old;
    shmem_put(x, values, 4, right);
    shmem_put(ctx, x, got, 0, right);
    shmem_put_signal(x, values, 4, &signal, 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_add(ctx, &signal, 1, right);
    shmem_wait_until_all(x, 4, NULL, SHMEM_CMP_GT, 0);
    CHECK(shmem_test_any(x, 4, NULL, SHMEM_CMP_EQ, 3) == 2);
    CHECK(shmem_wait_until_some_vector(x, 4, at, NULL, SHMEM_CMP_EQ, values) == 4);
    shmem_get(got, x, 4, me);
    shmem_get(ctx, got, y, 0, me);
    CHECK(got[3] == 4 && shmem_g(x + 1, me) == 2 && shmem_g(y, me) == 0);
    shmem_barrier_all();
    shmem_p(flags, 1, right);
    shmem_wait_until(flags, SHMEM_CMP_EQ, 1);
    CHECK(shmem_test(flags, SHMEM_CMP_NE, 0) && shmem_g(ctx, flag, me) == 1);
    shmem_atomic_add(ctx, flags + 1, 2, right);
    shmem_wait_until(flags + 1, SHMEM_CMP_EQ, 2);
    CHECK(shmem_atomic_fetch(flag + 1, me) == 2 && shmem_atomic_fetch(y, me) == 0);
    shmem_atomic_fetch_add_nbi(&old, x, 1, me);
    shmem_barrier_all();
    CHECK(old == 1 && signal == 2);
    shmem_free((void *)y);
    shmem_free((void *)x);
}

int main(void)
{
    static long pSync[SHMEM_SYNC_SIZE];
    begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    rma();
    extended();
    standard();
    bitwise();
    sums();
    waits();
    reduce_bits();
    old();
    complex_numbers();
    volatile_objects();
    CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
    shmem_sync(0, 0, n, pSync);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
