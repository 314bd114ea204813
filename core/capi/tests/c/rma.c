/* Put and get: every function, of every type, without and with a context. */
#include "check.h"

enum { LEN = 24 };

static shmem_ctx_t ctx;

/* What PE `pe` puts as element i. */
#define VALUE(T, pe, i) ((T)((pe) * 25 + (i) + 1))

#define BODY(T, F, C)                                                                       \
    T *x = shmem_malloc(LEN * sizeof(T));                                                   \
    T source[LEN], got[LEN];                                                                \
    int i;                                                                                  \
    for (i = 0; i < LEN; i++) {                                                             \
        source[i] = VALUE(T, me, i);                                                        \
        x[i] = (T)0;                                                                        \
    }                                                                                       \
    shmem_barrier_all();                                                                    \
    F##_put(C x, source, LEN, right);                                                       \
    DONE;                                                                                   \
    for (i = 0; i < LEN; i++)                                                               \
        CHECK(x[i] == VALUE(T, left, i));                                                   \
    memset(got, 0, sizeof got);                                                             \
    F##_get(C got, x, LEN, right);                                                          \
    for (i = 0; i < LEN; i++)                                                               \
        CHECK(got[i] == VALUE(T, me, i));                                                   \
    shmem_barrier_all();                                                                    \
    /* One element. */                                                                      \
    F##_p(C x + 3, (T)(me + 60), right);                                                    \
    DONE;                                                                                   \
    CHECK(x[3] == (T)(left + 60) && x[2] == VALUE(T, left, 2));                             \
    CHECK(F##_g(C x + 3, right) == (T)(me + 60));                                           \
    shmem_barrier_all();                                                                    \
    /* Every third to every second. */                                                      \
    for (i = 0; i < LEN; i++)                                                               \
        x[i] = (T)0;                                                                        \
    shmem_barrier_all();                                                                    \
    F##_iput(C x, source, 2, 3, 8, right);                                                  \
    DONE;                                                                                   \
    for (i = 0; i < LEN; i++)                                                               \
        CHECK(x[i] == (i < 16 && i % 2 == 0 ? VALUE(T, left, i / 2 * 3) : (T)0));           \
    memset(got, 0, sizeof got);                                                             \
    F##_iget(C got, x, 3, 2, 8, right);                                                     \
    for (i = 0; i < LEN; i++)                                                               \
        CHECK(got[i] == (i % 3 == 0 ? VALUE(T, me, i) : (T)0));                             \
    shmem_barrier_all();                                                                    \
    /* Blocks of 2 of 3 to blocks of 2 of 4. */                                             \
    for (i = 0; i < LEN; i++)                                                               \
        x[i] = (T)0;                                                                        \
    shmem_barrier_all();                                                                    \
    F##_ibput(C x, source, 4, 3, 2, 6, right);                                              \
    DONE;                                                                                   \
    for (i = 0; i < LEN; i++)                                                               \
        CHECK(x[i] == (i % 4 < 2 ? VALUE(T, left, i / 4 * 3 + i % 4) : (T)0));              \
    memset(got, 0, sizeof got);                                                             \
    F##_ibget(C got, x, 3, 4, 2, 6, right);                                                 \
    for (i = 0; i < 18; i++)                                                                \
        CHECK(got[i] == (i % 3 < 2 ? VALUE(T, me, i) : (T)0));                              \
    shmem_barrier_all();                                                                    \
    F##_put_nbi(C x, source, LEN, right);                                                   \
    DONE;                                                                                   \
    for (i = 0; i < LEN; i++)                                                               \
        CHECK(x[i] == VALUE(T, left, i));                                                   \
    memset(got, 0, sizeof got);                                                             \
    F##_get_nbi(C got, x, LEN, right);                                                      \
    QUIET;                                                                                  \
    for (i = 0; i < LEN; i++)                                                               \
        CHECK(got[i] == VALUE(T, me, i));                                                   \
    /* Nothing, from nowhere. */                                                            \
    F##_put(C NULL, NULL, 0, right);                                                        \
    F##_get(C NULL, NULL, 0, right);                                                        \
    F##_iput(C NULL, NULL, 1, 1, 0, right);                                                 \
    F##_iget(C NULL, NULL, 1, 1, 0, right);                                                 \
    F##_ibput(C NULL, NULL, 1, 1, 1, 0, right);                                             \
    F##_ibget(C NULL, NULL, 1, 1, 1, 0, right);                                             \
    F##_ibput(C NULL, NULL, 1, 1, 0, 3, right);                                             \
    F##_ibget(C NULL, NULL, 1, 1, 0, 3, right);                                             \
    F##_put_nbi(C NULL, NULL, 0, right);                                                    \
    F##_get_nbi(C x, NULL, 0, right);                                                       \
    shmem_free(x)

#define TYPED(N, T)             \
    static void typed_##N(void) \
    {                           \
        BODY(T, shmem_##N, NO_CTX); \
    }                           \
    static void typed_ctx_##N(void) \
    {                           \
        BODY(T, shmem_ctx_##N, CTX); \
    }

/* The default context is quieted by the barrier; of another one that would not do. */
#define QUIET          \
    do {               \
        shmem_quiet(); \
        shmem_ctx_quiet(ctx); \
    } while (0)
#define DONE                   \
    do {                       \
        shmem_ctx_quiet(ctx);  \
        shmem_barrier_all();   \
    } while (0)

RMA_TYPES(TYPED)

/* Elements without a type: of BYTES bytes. */
#define SIZED_BODY(BYTES, P, S, C)                                                          \
    unsigned char *x = shmem_align(16, LEN * BYTES);                                        \
    unsigned char source[LEN * BYTES], got[LEN * BYTES];                                    \
    int i, bytes = LEN * BYTES;                                                             \
    for (i = 0; i < bytes; i++)                                                             \
        source[i] = (unsigned char)(me * 31 + i);                                           \
    memset(x, 255, bytes);                                                                  \
    shmem_barrier_all();                                                                    \
    P##put##S(C x, source, LEN, right);                                                     \
    DONE;                                                                                   \
    for (i = 0; i < bytes; i++)                                                             \
        CHECK(x[i] == (unsigned char)(left * 31 + i));                                      \
    memset(got, 0, bytes);                                                                  \
    P##get##S(C got, x, LEN, right);                                                        \
    CHECK(memcmp(got, source, bytes) == 0);                                                 \
    shmem_barrier_all();                                                                    \
    memset(x, 255, bytes);                                                                  \
    shmem_barrier_all();                                                                    \
    P##put##S##_nbi(C x, source, LEN, right);                                               \
    DONE;                                                                                   \
    for (i = 0; i < bytes; i++)                                                             \
        CHECK(x[i] == (unsigned char)(left * 31 + i));                                      \
    memset(got, 0, bytes);                                                                  \
    P##get##S##_nbi(C got, x, LEN, right);                                                  \
    QUIET;                                                                                  \
    CHECK(memcmp(got, source, bytes) == 0);                                                 \
    P##put##S(C NULL, NULL, 0, right);                                                      \
    P##get##S(C NULL, NULL, 0, right);                                                      \
    P##put##S##_nbi(C NULL, NULL, 0, right);                                                \
    P##get##S##_nbi(C NULL, NULL, 0, right);                                                \
    shmem_barrier_all()

/* The strided forms, which there are of sizes. */
#define STRIDED_BODY(BYTES, P, S, C)                                                        \
    memset(x, 255, bytes);                                                                  \
    shmem_barrier_all();                                                                    \
    P##iput##S(C x, source, 2, 3, 8, right);                                                \
    DONE;                                                                                   \
    for (i = 0; i < 8; i++) {                                                               \
        int j;                                                                              \
        for (j = 0; j < BYTES; j++) {                                                       \
            CHECK(x[2 * i * BYTES + j] == (unsigned char)(left * 31 + 3 * i * BYTES + j));  \
            CHECK(x[(2 * i + 1) * BYTES + j] == 255);                                       \
        }                                                                                   \
    }                                                                                       \
    memset(got, 0, bytes);                                                                  \
    P##iget##S(C got, x, 3, 2, 8, right);                                                   \
    for (i = 0; i < 8; i++)                                                                 \
        CHECK(memcmp(got + 3 * i * BYTES, source + 3 * i * BYTES, BYTES) == 0);             \
    shmem_barrier_all();                                                                    \
    memset(x, 255, bytes);                                                                  \
    shmem_barrier_all();                                                                    \
    P##ibput##S(C x, source, 4, 3, 2, 6, right);                                            \
    DONE;                                                                                   \
    for (i = 0; i < LEN; i++) {                                                             \
        int j;                                                                              \
        for (j = 0; j < BYTES; j++)                                                         \
            CHECK(x[i * BYTES + j] == (i % 4 < 2 ? (unsigned char)(left * 31 + (i / 4 * 3 + i % 4) * BYTES + j) : 255));\
    }                                                                                       \
    memset(got, 0, bytes);                                                                  \
    P##ibget##S(C got, x, 3, 4, 2, 6, right);                                               \
    for (i = 0; i < 6; i++)                                                                 \
        CHECK(memcmp(got + 3 * i * BYTES, source + 3 * i * BYTES, 2 * BYTES) == 0);         \
    P##iput##S(C NULL, NULL, 1, 1, 0, right);                                               \
    P##iget##S(C NULL, NULL, 1, 1, 0, right);                                               \
    P##ibput##S(C NULL, NULL, 1, 1, 1, 0, right);                                           \
    P##ibget##S(C NULL, NULL, 1, 1, 1, 0, right);                                           \
    shmem_barrier_all()

#define SIZED(S)                                           \
    static void sized_##S(void)                            \
    {                                                      \
        SIZED_BODY(S / 8, shmem_, S, NO_CTX);              \
        STRIDED_BODY(S / 8, shmem_, S, NO_CTX);            \
        shmem_free(x);                                     \
    }                                                      \
    static void sized_ctx_##S(void)                        \
    {                                                      \
        SIZED_BODY(S / 8, shmem_ctx_, S, CTX);             \
        STRIDED_BODY(S / 8, shmem_ctx_, S, CTX);           \
        shmem_free(x);                                     \
    }
SIZES(SIZED)

static void mem(void)
{
    SIZED_BODY(1, shmem_, mem, NO_CTX);
    shmem_free(x);
}

static void mem_ctx(void)
{
    SIZED_BODY(1, shmem_ctx_, mem, CTX);
    shmem_free(x);
}

/* Much at a time, at places that are aligned to nothing. */
static void large(void)
{
    size_t bytes = (1 << 20) + 13, i;
    unsigned char *x = shmem_malloc(bytes + 8), *source = malloc(bytes), *got = malloc(bytes);
    for (i = 0; i < bytes; i++)
        source[i] = (unsigned char)(me + i * 7);
    shmem_putmem(x + 3, source, bytes, right);
    shmem_barrier_all();
    shmem_getmem(got, x + 3, bytes, right);
    CHECK(memcmp(got, source, bytes) == 0);
    for (i = 0; i < bytes; i += 1001)
        CHECK(x[3 + i] == (unsigned char)(left + i * 7));
    shmem_barrier_all();
    shmem_free(x);
    free(source);
    free(got);
}

#define CALL(N, T) \
    typed_##N();   \
    typed_ctx_##N();
#define CALL_SIZED(S) \
    sized_##S();      \
    sized_ctx_##S();

int main(void)
{
    begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    RMA_TYPES(CALL)
    SIZES(CALL_SIZED)
    mem();
    mem_ctx();
    large();
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
