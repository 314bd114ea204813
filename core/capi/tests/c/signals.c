/* Signals, and puts with them. */
#include "check.h"

#include <sched.h>

enum { LEN = 9 };

static shmem_ctx_t ctx;
static uint64_t *word;
/* How often the left neighbour has signalled. */
static uint64_t signals;

#define TYPED_BODY(T, F, C)                                                            \
    T *x = shmem_calloc(LEN, sizeof(T)), source[LEN];                                  \
    int i;                                                                             \
    for (i = 0; i < LEN; i++)                                                          \
        source[i] = (T)(me * 10 + i + 1);                                              \
    F##_put_signal(C x, source, LEN, word, 1, SHMEM_SIGNAL_ADD, right);                \
    signals++;                                                                         \
    CHECK(shmem_signal_wait_until(word, SHMEM_CMP_EQ, signals) == signals);            \
    for (i = 0; i < LEN; i++)                                                          \
        CHECK(x[i] == (T)(left * 10 + i + 1));                                         \
    shmem_barrier_all();                                                               \
    for (i = 0; i < LEN; i++)                                                          \
        source[i] = (T)(me * 5 + i + 2);                                               \
    signals++;                                                                         \
    F##_put_signal_nbi(C x, source, LEN, word, signals, SHMEM_SIGNAL_SET, right);      \
    CHECK(shmem_signal_wait_until(word, SHMEM_CMP_GE, signals) == signals);            \
    for (i = 0; i < LEN; i++)                                                          \
        CHECK(x[i] == (T)(left * 5 + i + 2));                                          \
    /* Nothing but the signal. */                                                      \
    shmem_ctx_quiet(ctx);                                                              \
    shmem_barrier_all();                                                               \
    F##_put_signal(C NULL, NULL, 0, word, 1, SHMEM_SIGNAL_ADD, right);                 \
    F##_put_signal_nbi(C NULL, NULL, 0, word, 1, SHMEM_SIGNAL_ADD, right);             \
    signals += 2;                                                                      \
    CHECK(shmem_signal_wait_until(word, SHMEM_CMP_EQ, signals) == signals);            \
    shmem_ctx_quiet(ctx);                                                              \
    shmem_barrier_all();                                                               \
    shmem_free(x)

#define TYPED(N, T)                       \
    static void typed_##N(void)           \
    {                                     \
        TYPED_BODY(T, shmem_##N, NO_CTX); \
    }                                     \
    static void typed_ctx_##N(void)       \
    {                                     \
        TYPED_BODY(T, shmem_ctx_##N, CTX); \
    }
RMA_TYPES(TYPED)

#define SIZED_BODY(BYTES, P, S, C)                                                         \
    unsigned char *x = shmem_align(16, LEN * BYTES), source[LEN * BYTES];                  \
    int i, bytes = LEN * BYTES;                                                            \
    for (i = 0; i < bytes; i++)                                                            \
        source[i] = (unsigned char)(me * 3 + i);                                           \
    P##put##S##_signal(C x, source, LEN, word, 1, SHMEM_SIGNAL_ADD, right);                \
    signals++;                                                                             \
    shmem_signal_wait_until(word, SHMEM_CMP_GE, signals);                                  \
    for (i = 0; i < bytes; i++)                                                            \
        CHECK(x[i] == (unsigned char)(left * 3 + i));                                      \
    shmem_barrier_all();                                                                   \
    memset(source, me + 1, bytes);                                                         \
    P##put##S##_signal_nbi(C x, source, LEN, word, 1, SHMEM_SIGNAL_ADD, right);            \
    signals++;                                                                             \
    shmem_signal_wait_until(word, SHMEM_CMP_GE, signals);                                  \
    for (i = 0; i < bytes; i++)                                                            \
        CHECK(x[i] == (unsigned char)(left + 1));                                          \
    shmem_ctx_quiet(ctx);                                                                  \
    shmem_barrier_all();                                                                   \
    P##put##S##_signal(C NULL, NULL, 0, word, 1, SHMEM_SIGNAL_ADD, right);                 \
    P##put##S##_signal_nbi(C NULL, NULL, 0, word, 1, SHMEM_SIGNAL_ADD, right);             \
    signals += 2;                                                                          \
    CHECK(shmem_signal_wait_until(word, SHMEM_CMP_EQ, signals) == signals);                \
    shmem_ctx_quiet(ctx);                                                                  \
    shmem_barrier_all();                                                                   \
    shmem_free(x)

#define SIZED(S)                              \
    static void sized_##S(void)               \
    {                                         \
        SIZED_BODY(S / 8, shmem_, S, NO_CTX); \
    }                                         \
    static void sized_ctx_##S(void)           \
    {                                         \
        SIZED_BODY(S / 8, shmem_ctx_, S, CTX); \
    }
SIZES(SIZED)

static void mem(void)
{
    SIZED_BODY(1, shmem_, mem, NO_CTX);
}

static void mem_ctx(void)
{
    SIZED_BODY(1, shmem_ctx_, mem, CTX);
}

static void alone(void)
{
    shmem_signal_set(word, 1000, right);
    shmem_quiet();
    shmem_barrier_all();
    CHECK(shmem_signal_fetch(word) == 1000);
    shmem_barrier_all();
    shmem_signal_add(word, 5, right);
    shmem_barrier_all();
    CHECK(shmem_signal_fetch(word) == 1005);
    shmem_barrier_all();
    shmem_ctx_signal_set(ctx, word, 7, right);
    shmem_ctx_fence(ctx);
    shmem_ctx_signal_add(ctx, word, 1, right);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(shmem_signal_fetch(word) == 8);
    shmem_barrier_all();
}

/* What a session gathers is on its way when the program looks for a signal, and calls nothing else. */
static void gathered(void)
{
    *word = 0;
    shmem_barrier_all();
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    shmem_ctx_signal_add(ctx, word, 1, right);
    while (shmem_signal_fetch(word) == 0)
        sched_yield();
    shmem_ctx_session_stop(ctx);
    shmem_barrier_all();
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
    word = shmem_calloc(1, sizeof *word);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    RMA_TYPES(CALL)
    SIZES(CALL_SIZED)
    mem();
    mem_ctx();
    alone();
    gathered();
    shmem_ctx_destroy(ctx);
    shmem_free(word);
    shmem_finalize();
    return 0;
}
