/* Values that need all of their type: long double beyond a double's digits and range, signs of zero, what is no number,
   and products of complex numbers, whose parts meet. By every way that a value goes. */
#include "check.h"
#include <complex.h>
#include <float.h>
#include <math.h>

typedef long double real;

enum { LEN = 8 };

static const real values[LEN] = {1 + LDBL_EPSILON, -(1 + LDBL_EPSILON), LDBL_MAX, -LDBL_MIN, 9007199254740993.0L, -0.0L, INFINITY, NAN};

/* To the last bit, but for what an unused byte has. */
static int is_same(real a, real b)
{
    return isnan(b) ? isnan(a) : a == b && signbit(a) == signbit(b);
}

static int are_values(const real *x, int step)
{
    int i;
    for (i = 0; i < LEN; i++)
        if (!is_same(x[i * step], values[i]))
            return 0;
    return 1;
}

static real *x;

/* What came is the values, and nothing is left of them. */
#define CAME(STEP)                           \
    do {                                     \
        shmem_barrier_all();                 \
        CHECK(are_values(x, STEP));          \
        shmem_barrier_all();                 \
        memset(x, 0, 4 * LEN * sizeof *x);   \
        shmem_barrier_all();                 \
    } while (0)

static void moved(shmem_ctx_t ctx)
{
    real got[2 * LEN], spread[2 * LEN];
    uint64_t *word = shmem_calloc(1, sizeof *word);
    int i;
    for (i = 0; i < 2 * LEN; i++)
        spread[i] = values[i / 2];
    for (i = 0; i < LEN; i++)
        shmem_longdouble_p(x + i, values[i], right);
    shmem_barrier_all();
    for (i = 0; i < LEN; i++)
        CHECK(is_same(shmem_longdouble_g(x + i, right), values[i]) && is_same(shmem_ctx_longdouble_g(ctx, x + i, left), values[i]));
    shmem_longdouble_get(got, x, LEN, right);
    CHECK(are_values(got, 1));
    shmem_longdouble_get_nbi(got + LEN, x, LEN, right);
    shmem_quiet();
    CHECK(are_values(got + LEN, 1));
    shmem_longdouble_iget(got, x, 2, 1, LEN, right);
    CHECK(are_values(got, 2));
    shmem_longdouble_ibget(got, x, 4, 4, 4, 2, right);
    CHECK(are_values(got, 1));
    CAME(1);
    for (i = 0; i < LEN; i++)
        shmem_ctx_longdouble_p(ctx, x + i, values[i], right);
    shmem_ctx_quiet(ctx);
    CAME(1);
    shmem_longdouble_put(x, values, LEN, right);
    CAME(1);
    shmem_longdouble_put_nbi(x, values, LEN, right);
    CAME(1);
    shmem_longdouble_iput(x, spread, 3, 2, LEN, right);
    CAME(3);
    shmem_longdouble_ibput(x, values, 4, 4, 4, 2, right);
    CAME(1);
    shmem_longdouble_put_signal(x, values, LEN, word, 1, SHMEM_SIGNAL_ADD, right);
    CAME(1);
    shmem_longdouble_put_signal_nbi(x, values, LEN, word, 1, SHMEM_SIGNAL_ADD, right);
    CAME(1);
    shmem_free(word);
}

/* What PE `pe` gives to be folded: what a double would round, what it has no room for, what is no number. In any order the
   same comes of it, to the last bit. */
enum { KINDS = 7 };
static real given(int pe, int kind)
{
    const real first[KINDS] = {1, -1, 1 + LDBL_EPSILON, -1 - LDBL_EPSILON, LDBL_MAX, -INFINITY, NAN};
    const real others[KINDS] = {LDBL_EPSILON, -LDBL_EPSILON, -1, 1, 1, 1, 1};
    return pe == 0 ? first[kind] : others[kind];
}

static real sum(real a, real b) { return a + b; }
static real prod(real a, real b) { return a * b; }
/* A number where there is one. */
static real max(real a, real b) { return isnan(a) || b > a ? b : a; }
static real min(real a, real b) { return isnan(a) || b < a ? b : a; }

/* Of so many PEs; of none it is 0. */
static int are_folded(const real *z, real (*fold)(real, real), int pes)
{
    int kind, pe;
    for (kind = 0; kind < KINDS; kind++) {
        real all = pes == 0 ? 0 : given(0, kind);
        for (pe = 1; pe < pes; pe++)
            all = fold(all, given(pe, kind));
        if (!is_same(z[kind], all))
            return 0;
    }
    return 1;
}

#define FOLDS(X) X(sum) X(prod) X(max) X(min)

static void collective(void)
{
    real *y = shmem_malloc(4 * LEN * n * sizeof *y), *z = shmem_malloc(4 * LEN * n * sizeof *z);
    real *pWrk = shmem_malloc((LEN + SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof *pWrk);
    long *pSync = shmem_malloc(SHMEM_REDUCE_SYNC_SIZE * sizeof *pSync);
    int i;
    for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        pSync[i] = SHMEM_SYNC_VALUE;
    for (i = 0; i < LEN * n; i++)
        y[i] = values[i % LEN];
    shmem_barrier_all();
    CHECK(shmem_longdouble_broadcast(SHMEM_TEAM_WORLD, z, y, LEN, n - 1) == 0 && are_values(z, 1));
    CHECK(shmem_longdouble_fcollect(SHMEM_TEAM_WORLD, z, y, LEN) == 0 && are_values(z + (n - 1) * LEN, 1));
    CHECK(shmem_longdouble_collect(SHMEM_TEAM_WORLD, z, y, LEN) == 0 && are_values(z + (n - 1) * LEN, 1));
    CHECK(shmem_longdouble_alltoall(SHMEM_TEAM_WORLD, z, y, LEN) == 0 && are_values(z + (n - 1) * LEN, 1));
    CHECK(shmem_longdouble_alltoalls(SHMEM_TEAM_WORLD, z, y, 2, 1, LEN) == 0 && are_values(z + 2 * (n - 1) * LEN, 2));
    for (i = 0; i < KINDS; i++)
        y[i] = given(me, i);
#define REDUCED(OP)                                                                                                \
    CHECK(shmem_longdouble_##OP##_reduce(SHMEM_TEAM_WORLD, z, y, KINDS) == 0 && are_folded(z, OP, n));             \
    memset(z, 0, KINDS * sizeof *z);                                                                               \
    shmem_barrier_all();                                                                                           \
    shmem_longdouble_##OP##_to_all(z, y, KINDS, 0, 0, n, pWrk, pSync);                                             \
    CHECK(are_folded(z, OP, n));                                                                                   \
    shmem_barrier_all();
    FOLDS(REDUCED)
    CHECK(shmem_longdouble_sum_exscan(SHMEM_TEAM_WORLD, z, y, KINDS) == 0 && are_folded(z, sum, me));
    CHECK(shmem_longdouble_sum_inscan(SHMEM_TEAM_WORLD, z, y, KINDS) == 0 && are_folded(z, sum, me + 1));
    shmem_barrier_all();
    shmem_free(pSync);
    shmem_free(pWrk);
    shmem_free(z);
    shmem_free(y);
}

/* Of float and double every bit goes and comes by atomics too: signs of zero, and of what is no number which. */
#define ATOMICS(N, T, NOT_A_NUMBER)                                                                   \
    static void atomics_##N(void)                                                                     \
    {                                                                                                 \
        const T bits[] = {(T)-0.0, NOT_A_NUMBER, (T)-INFINITY, (T)5e-324L, (T)0};                     \
        T *word = shmem_calloc(1, sizeof *word), got;                                                 \
        size_t i;                                                                                     \
        for (i = 0; i < sizeof bits / sizeof *bits; i++) {                                            \
            T next = -bits[i];                                                                        \
            shmem_##N##_atomic_set(word, bits[i], right);                                             \
            shmem_fence();                                                                            \
            got = shmem_##N##_atomic_fetch(word, right);                                              \
            CHECK(memcmp(&got, &bits[i], sizeof got) == 0);                                           \
            got = shmem_##N##_atomic_swap(word, next, right);                                         \
            CHECK(memcmp(&got, &bits[i], sizeof got) == 0);                                           \
            shmem_barrier_all();                                                                      \
            CHECK(memcmp(word, &next, sizeof next) == 0);                                             \
            shmem_barrier_all();                                                                      \
        }                                                                                             \
        shmem_free(word);                                                                             \
    }
ATOMICS(float, float, __builtin_nanf("77"))
ATOMICS(double, double, __builtin_nan("77"))

/* What PE `pe` gives: small whole numbers, so that all results are exact. */
#define PART(pe) ((pe) % 3 == 0 ? 1 + 1 * I : (pe) % 3 == 1 ? 2 - 1 * I : -1 * I)

#define COMPLEX(N, T)                                                                                       \
    static void complex_##N(void)                                                                           \
    {                                                                                                       \
        T *y = shmem_malloc(sizeof *y), *z = shmem_malloc(sizeof *z), sum = 0, product = 1, before = 0;     \
        T *pWrk = shmem_malloc(SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof *pWrk);                               \
        long *pSync = shmem_malloc(SHMEM_REDUCE_SYNC_SIZE * sizeof *pSync);                                 \
        int i;                                                                                              \
        for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)                                                        \
            pSync[i] = SHMEM_SYNC_VALUE;                                                                    \
        for (i = 0; i < n; i++) {                                                                           \
            if (i == me)                                                                                    \
                before = sum;                                                                               \
            sum += PART(i);                                                                                 \
            product *= PART(i);                                                                             \
        }                                                                                                   \
        *y = PART(me);                                                                                      \
        CHECK(shmem_##N##_sum_reduce(SHMEM_TEAM_WORLD, z, y, 1) == 0 && *z == sum);                         \
        CHECK(shmem_##N##_prod_reduce(SHMEM_TEAM_WORLD, z, y, 1) == 0 && *z == product);                    \
        CHECK(shmem_##N##_sum_exscan(SHMEM_TEAM_WORLD, z, y, 1) == 0 && *z == before);                      \
        CHECK(shmem_##N##_sum_inscan(SHMEM_TEAM_WORLD, z, y, 1) == 0 && *z == before + *y);                 \
        shmem_barrier_all();                                                                                \
        shmem_##N##_sum_to_all(z, y, 1, 0, 0, n, pWrk, pSync);                                              \
        CHECK(*z == sum);                                                                                   \
        shmem_barrier_all();                                                                                \
        shmem_##N##_prod_to_all(z, y, 1, 0, 0, n, pWrk, pSync);                                             \
        CHECK(*z == product);                                                                               \
        shmem_barrier_all();                                                                                \
        shmem_free(pSync);                                                                                  \
        shmem_free(pWrk);                                                                                   \
        shmem_free(z);                                                                                      \
        shmem_free(y);                                                                                      \
    }
COMPLEX(complexd, double complex)
COMPLEX(complexf, float complex)

int main(void)
{
    shmem_ctx_t ctx;
    begin();
    x = shmem_calloc(4 * LEN, sizeof *x);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    moved(SHMEM_CTX_DEFAULT);
    moved(ctx);
    collective();
    atomics_float();
    atomics_double();
    complex_complexd();
    complex_complexf();
    shmem_ctx_destroy(ctx);
    shmem_free(x);
    shmem_finalize();
    return 0;
}
