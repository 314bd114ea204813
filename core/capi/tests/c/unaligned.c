/* Puts and gets, of every type, at places that are aligned for none: of the heap, of variables and of private memory. The bytes
   are copied, and nothing beside them. argv[1] is the thread level. */
#include "check.h"

#include <stddef.h>

enum { LEN = 24, FAR = 3, NEAR = 5, BACK = 7, ROOM = LEN * 16 + 16 };

static shmem_ctx_t ctx;
static unsigned char *room;
static unsigned char mine[ROOM], back[ROOM];
static uint64_t word;

/* What PE `pe` puts as byte i; 255 is none. */
static unsigned char value(int pe, size_t i)
{
    return (unsigned char)(((size_t)pe * 31 + i * 7 + 1) % 250);
}

/* All is done, and begins anew. */
static void clean(void)
{
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    memset(room, 255, ROOM);
    memset(back, 255, sizeof back);
    word = 0;
    shmem_barrier_all();
}

static void done(void)
{
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
}

/* Whether these bytes are those from `near` on that PE `pe` gave, and their neighbours untouched. */
static void are(const unsigned char *at, int pe, size_t near, size_t bytes)
{
    size_t i;
    for (i = 0; i < bytes; i++)
        CHECK(at[i] == value(pe, near + i));
    CHECK(at[-1] == 255 && at[bytes] == 255);
}

/* The same of blocks so far apart on either side. */
static void blocks_are(const unsigned char *at, size_t apart, int pe, size_t near, size_t bytes, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++)
        are(at + i * apart, pe, i * near, bytes);
}

#define PLAIN(CALL, ...) CALL(__VA_ARGS__)
#define ON_CTX(CALL, ...) CALL(ctx, __VA_ARGS__)

/* Of elements of so many bytes; C makes a call. */
#define BODY(BYTES, C, PUT, GET, PUT_NBI, GET_NBI, PUT_SIGNAL, PUT_SIGNAL_NBI)              \
    void *x = room + FAR, *source = mine + NEAR, *got = back + BACK;                        \
    const size_t size = BYTES;                                                              \
    clean();                                                                                \
    C(PUT, x, source, LEN, right);                                                          \
    done();                                                                                 \
    are(x, left, 0, LEN * size);                                                            \
    C(GET, got, x, LEN, right);                                                             \
    are(got, me, 0, LEN * size);                                                            \
    clean();                                                                                \
    C(PUT, x, source, 1, right);                                                            \
    done();                                                                                 \
    are(x, left, 0, size);                                                                  \
    C(GET, got, x, 1, right);                                                               \
    are(got, me, 0, size);                                                                  \
    clean();                                                                                \
    C(PUT_NBI, x, source, LEN, right);                                                      \
    done();                                                                                 \
    are(x, left, 0, LEN * size);                                                            \
    C(GET_NBI, got, x, LEN, right);                                                         \
    done();                                                                                 \
    are(got, me, 0, LEN * size);                                                            \
    clean();                                                                                \
    C(PUT_SIGNAL, x, source, LEN, &word, 1, SHMEM_SIGNAL_SET, right);                       \
    shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 1);                                        \
    are(x, left, 0, LEN * size);                                                            \
    clean();                                                                                \
    C(PUT_SIGNAL_NBI, x, source, LEN, &word, 2, SHMEM_SIGNAL_ADD, right);                   \
    shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 2);                                        \
    are(x, left, 0, LEN * size)

/* Every third to every second, and blocks of 2 of 3 to blocks of 2 of 4. */
#define STRIDED(C, IPUT, IGET, IBPUT, IBGET)                                                \
    clean();                                                                                \
    C(IPUT, x, source, 2, 3, 8, right);                                                     \
    done();                                                                                 \
    blocks_are(x, 2 * size, left, 3 * size, size, 8);                                       \
    C(IGET, got, x, 3, 2, 8, right);                                                        \
    blocks_are(got, 3 * size, me, 3 * size, size, 8);                                       \
    clean();                                                                                \
    C(IBPUT, x, source, 4, 3, 2, 6, right);                                                 \
    done();                                                                                 \
    blocks_are(x, 4 * size, left, 3 * size, 2 * size, 6);                                   \
    C(IBGET, got, x, 3, 4, 2, 6, right);                                                    \
    blocks_are(got, 3 * size, me, 3 * size, 2 * size, 6)

#define ONE(T, C, P, G)                                                                     \
    do {                                                                                    \
        T came;                                                                             \
        clean();                                                                            \
        C(P, x, (T)(me + 60), right);                                                       \
        done();                                                                             \
        memcpy(&came, x, sizeof came);                                                      \
        CHECK(came == (T)(left + 60));                                                      \
        CHECK(room[FAR - 1] == 255 && room[FAR + size] == 255);                             \
        CHECK(C(G, x, right) == (T)(me + 60));                                              \
    } while (0)

#define TYPED_OF(T, F, C)                                                                   \
    {                                                                                       \
        BODY(sizeof(T), C, F##_put, F##_get, F##_put_nbi, F##_get_nbi, F##_put_signal, F##_put_signal_nbi); \
        STRIDED(C, F##_iput, F##_iget, F##_ibput, F##_ibget);                               \
        ONE(T, C, F##_p, F##_g);                                                            \
    }
#define TYPED(N, T)                                           \
    static void typed_##N(void) TYPED_OF(T, shmem_##N, PLAIN) \
    static void typed_ctx_##N(void) TYPED_OF(T, shmem_ctx_##N, ON_CTX)
RMA_TYPES(TYPED)

#define SIZED_OF(S, P, C)                                                                   \
    {                                                                                       \
        BODY(S / 8, C, P##put##S, P##get##S, P##put##S##_nbi, P##get##S##_nbi, P##put##S##_signal, P##put##S##_signal_nbi); \
        STRIDED(C, P##iput##S, P##iget##S, P##ibput##S, P##ibget##S);                       \
    }
#define SIZED(S)                                          \
    static void sized_##S(void) SIZED_OF(S, shmem_, PLAIN) \
    static void sized_ctx_##S(void) SIZED_OF(S, shmem_ctx_, ON_CTX)
SIZES(SIZED)

/* A variable of the program, whose parts lie wherever they may. */
static struct __attribute__((packed)) {
    char first;
    long whole;
    double real[2];
} record;

static void variables(void)
{
    char *at = (char *)&record;
    long *whole = (long *)(at + 1);
    double *real = (double *)(at + 9), reals[2] = {me + 0.5, me + 0.25};
    shmem_long_p(whole, me + 10L, right);
    shmem_double_put(real, reals, 2, right);
    done();
    CHECK(record.first == 0 && record.whole == left + 10 && record.real[0] == left + 0.5 && record.real[1] == left + 0.25);
    CHECK(shmem_long_g(whole, right) == me + 10);
    shmem_double_get(reals, real, 2, left);
    CHECK(reals[1] == (left + n - 1) % n + 0.25);
    done();
}

/* More than is copied at once anywhere. */
static void large(void)
{
    size_t count = (1 << 17) + 5, i;
    char *x = shmem_malloc((count + 1) * sizeof(long));
    long *far = (long *)(x + 1), *source = malloc(count * sizeof *source), *got = malloc(count * sizeof *got);
    for (i = 0; i < count; i++)
        source[i] = (long)i * 5 + me;
    shmem_long_put(far, source, count, right);
    done();
    shmem_long_get(got, far, count, right);
    CHECK(memcmp(got, source, count * sizeof *got) == 0);
    memcpy(&got[0], far + count - 1, sizeof got[0]);
    CHECK(got[0] == (long)(count - 1) * 5 + left);
    done();
    shmem_free(x);
    free(source);
    free(got);
}

#define CALL(N, T) \
    typed_##N();                                                                            \
    typed_ctx_##N();
#define CALL_SIZED(S) \
    sized_##S();                                                                            \
    sized_ctx_##S();

int main(int argc, char **argv)
{
    int provided;
    size_t i;
    CHECK(shmem_init_thread(argc > 1 ? atoi(argv[1]) : SHMEM_THREAD_SINGLE, &provided) == 0);
    begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    room = shmem_align(64, ROOM);
    for (i = NEAR; i < ROOM; i++)
        mine[i] = value(me, i - NEAR);
    RMA_TYPES(CALL)
    SIZES(CALL_SIZED)
    variables();
    large();
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    shmem_finalize();
    return 0;
}
