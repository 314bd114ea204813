/* All PEs make the collective calls of active sets, also those that are none of the members: to these nothing happens, as
   programs for other libraries expect. */
#include "check.h"
#include <complex.h>

static long *pSync;

/* Of PE 1 alone, and of PEs 1 and 2. */
static int size;
#define SET 1, 0, size, pSync

static int is_member(void)
{
    return me >= 1 && me < 1 + size;
}

#define MOVES(S)                                                                                        \
    static void moves_##S(void)                                                                         \
    {                                                                                                   \
        int##S##_t *x = shmem_malloc(2 * n * sizeof *x), *y = shmem_malloc(2 * n * sizeof *y);          \
        int i, at;                                                                                      \
        for (i = 0; i < 2 * n; i++) x[i] = me + 1, y[i] = -1;                                           \
        shmem_barrier_all();                                                                            \
        shmem_broadcast##S(y, x, 1, size - 1, SET);                                                     \
        shmem_collect##S(y, x, 1, SET);                                                                 \
        shmem_fcollect##S(y, x, 1, SET);                                                                \
        shmem_alltoall##S(y, x, 1, SET);                                                                \
        shmem_alltoalls##S(y, x, 2, 2, 1, SET);                                                         \
        for (i = 0, at = 0; i < 2 * n; i++)                                                             \
            if (is_member() && at < size && i == 2 * at) CHECK(y[i] == ++at + 1);                       \
            else CHECK(y[i] == -1 || is_member());                                                      \
        shmem_barrier_all();                                                                            \
        shmem_free(y);                                                                                  \
        shmem_free(x);                                                                                  \
    }
OLD_SIZES(MOVES)

#define EACH(N, T, OP)                                                                                  \
    do {                                                                                                \
        T *x = shmem_malloc(sizeof(T)), *y = shmem_malloc(sizeof(T));                                   \
        T *pWrk = shmem_malloc((1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof(T));                        \
        *x = (T)1, *y = (T)55;                                                                          \
        shmem_barrier_all();                                                                            \
        shmem_##N##_##OP##_to_all(y, x, 1, 1, 0, size, pWrk, pSync);                                    \
        CHECK((*y == (T)55) == !is_member());                                                           \
        shmem_barrier_all();                                                                            \
        shmem_free(pWrk);                                                                               \
        shmem_free(y);                                                                                  \
        shmem_free(x);                                                                                  \
    } while (0)
#define BITS(N, T) \
    static void bits_##N(void) { EACH(N, T, and); EACH(N, T, or); EACH(N, T, xor); }
#define ORDER(N, T) \
    static void order_##N(void) { EACH(N, T, max); EACH(N, T, min); }
#define SUM(N, T) \
    static void sum_##N(void) { EACH(N, T, sum); EACH(N, T, prod); }
OLD_REDUCE_BITS_TYPES(BITS)
OLD_REDUCE_ORDER_TYPES(ORDER)
OLD_REDUCE_SUM_TYPES(SUM)

#define CALL_MOVES(S) moves_##S();
#define CALL_BITS(N, T) bits_##N();
#define CALL_ORDER(N, T) order_##N();
#define CALL_SUM(N, T) sum_##N();

int main(void)
{
    int i;
    begin();
    pSync = shmem_malloc(SHMEM_REDUCE_SYNC_SIZE * sizeof(long));
    for (i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        pSync[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    for (size = 1; size <= 2 && size < n; size++) {
        OLD_SIZES(CALL_MOVES)
        OLD_REDUCE_BITS_TYPES(CALL_BITS)
        OLD_REDUCE_ORDER_TYPES(CALL_ORDER)
        OLD_REDUCE_SUM_TYPES(CALL_SUM)
        shmem_barrier(SET);
        (shmem_sync)(SET);
    }
    shmem_free(pSync);
    shmem_finalize();
    return 0;
}
