/* That each function has the type which the specification gives it: a pointer to that type holds it, or this does not
   compile (-Werror). Written from the specification's chapters, and not from the table that the headers are made of. */
#include <pshmem.h>
#include <shmemx.h>

/* A function of this type: the one for programs, and its twin for tools. */
#define IS(returns, name, ...)                                             \
    extern returns (*const has_##name)(__VA_ARGS__);                       \
    extern returns (*const has_p##name)(__VA_ARGS__);                      \
    returns (*const has_##name)(__VA_ARGS__) = shmem_##name;               \
    returns (*const has_p##name)(__VA_ARGS__) = pshmem_##name;
/* One that has no twin. */
#define IS_OLD(returns, name, ...)                   \
    extern returns (*const has_##name)(__VA_ARGS__); \
    returns (*const has_##name)(__VA_ARGS__) = name;
/* One with a form that takes a context. */
#define BOTH(returns, name, ...)     \
    IS(returns, name, __VA_ARGS__) \
    IS(returns, ctx_##name, shmem_ctx_t, __VA_ARGS__)

/* Chapter 2: types. */
#define AMO_BITWISE(X)                                                                                        \
    X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t) X(int64, int64_t) \
    X(uint32, uint32_t) X(uint64, uint64_t)
#define AMO_STANDARD(X) AMO_BITWISE(X) X(int, int) X(long, long) X(longlong, long long) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define AMO_EXTENDED(X) AMO_STANDARD(X) X(float, float) X(double, double)
#define RMA(X)                                                                                             \
    AMO_EXTENDED(X) X(longdouble, long double) X(char, char) X(schar, signed char) X(short, short)        \
    X(uchar, unsigned char) X(ushort, unsigned short) X(int8, int8_t) X(int16, int16_t) X(uint8, uint8_t) \
    X(uint16, uint16_t)
#define REDUCE_BITS(X)                                                                                         \
    AMO_BITWISE(X) X(uchar, unsigned char) X(ushort, unsigned short) X(int8, int8_t) X(int16, int16_t)        \
    X(uint8, uint8_t) X(uint16, uint16_t) X(size, size_t)
#define REDUCE_SUM(X) RMA(X) X(complexd, double _Complex) X(complexf, float _Complex)
#define OLD_AMO(X) X(int, int) X(long, long) X(longlong, long long)
#define OLD_AMO_EXTENDED(X) OLD_AMO(X) X(float, float) X(double, double)
#define OLD_WAIT(X) X(short, short) OLD_AMO(X)
#define TO_ALL_ORDER(X) OLD_WAIT(X) X(float, float) X(double, double) X(longdouble, long double)
#define TO_ALL_SUM(X) TO_ALL_ORDER(X) X(complexd, double _Complex) X(complexf, float _Complex)
#define SIZES(X) X(8) X(16) X(32) X(64) X(128)

/* 3.1 Setup, exit, queries; 3.2 threads. */
IS(void, init, void)
IS(void, finalize, void)
IS(int, my_pe, void)
IS(int, n_pes, void)
IS(void, query_initialized, int *)
IS(void, global_exit, int)
IS(int, pe_accessible, int)
IS(int, addr_accessible, const void *, int)
IS(void *, ptr, const void *, int)
IS(void *, team_ptr, shmem_team_t, const void *, int)
IS(void, info_get_version, int *, int *)
IS(void, info_get_name, char *)
IS(int, init_thread, int, int *)
IS(void, query_thread, int *)
IS_OLD(void, start_pes, int)
IS_OLD(int, _my_pe, void)
IS_OLD(int, _num_pes, void)
/* oxshmem's own. */
IS_OLD(double, shmemx_wtime, void)
IS_OLD(double, pshmemx_wtime, void)
IS_OLD(int, shmemx_cuda_init, void)
IS_OLD(int, pshmemx_cuda_init, void)
IS_OLD(int, shmemx_cuda_device, void)
IS_OLD(int, pshmemx_cuda_device, void)
IS_OLD(int, shmemx_cuda_check, void)
IS_OLD(int, pshmemx_cuda_check, void)
IS_OLD(void *, shmemx_cuda_malloc, size_t)
IS_OLD(void *, pshmemx_cuda_malloc, size_t)
IS_OLD(void *, shmemx_cuda_ptr, const void *, int)
IS_OLD(void *, pshmemx_cuda_ptr, const void *, int)
IS_OLD(int, shmemx_cuda_resume, void)
IS_OLD(int, pshmemx_cuda_resume, void)
IS_OLD(int, shmemx_cuda_reserve_teams, int)
IS_OLD(int, pshmemx_cuda_reserve_teams, int)
IS_OLD(int, shmemx_cuda_team, shmem_team_t)
IS_OLD(int, pshmemx_cuda_team, shmem_team_t)

/* 3.3 Memory. */
IS(void *, malloc, size_t)
IS(void, free, void *)
IS(void *, realloc, void *, size_t)
IS(void *, align, size_t, size_t)
IS(void *, malloc_with_hints, size_t, long)
IS(void *, calloc, size_t, size_t)
IS_OLD(void *, shmalloc, size_t)
IS_OLD(void, shfree, void *)
IS_OLD(void *, shrealloc, void *, size_t)
IS_OLD(void *, shmemalign, size_t, size_t)

/* 3.4 Teams; 3.5 contexts; 3.9 sessions. */
IS(int, team_my_pe, shmem_team_t)
IS(int, team_n_pes, shmem_team_t)
IS(int, team_get_config, shmem_team_t, long, shmem_team_config_t *)
IS(int, team_translate_pe, shmem_team_t, int, shmem_team_t)
IS(int, team_split_strided, shmem_team_t, int, int, int, const shmem_team_config_t *, long, shmem_team_t *)
IS(int, team_split_2d, shmem_team_t, int, const shmem_team_config_t *, long, shmem_team_t *, const shmem_team_config_t *, long,
   shmem_team_t *)
IS(void, team_destroy, shmem_team_t)
IS(int, ctx_create, long, shmem_ctx_t *)
IS(int, team_create_ctx, shmem_team_t, long, shmem_ctx_t *)
IS(void, ctx_destroy, shmem_ctx_t)
IS(int, ctx_get_team, shmem_ctx_t, shmem_team_t *)
IS(void, ctx_session_start, shmem_ctx_t, long, const shmem_ctx_session_config_t *, long)
IS(void, ctx_session_stop, shmem_ctx_t)
extern int *const has_num_contexts;
int *const has_num_contexts = &((shmem_team_config_t *)0)->num_contexts;
extern size_t *const has_total_ops;
size_t *const has_total_ops = &((shmem_ctx_session_config_t *)0)->total_ops;

/* 3.6 Put and get. */
#define COPY(name, T)                       \
    BOTH(void, name, T *, const T *, size_t, int)
#define TYPED(N, T)                                                                        \
    COPY(N##_put, T) COPY(N##_get, T) COPY(N##_put_nbi, T) COPY(N##_get_nbi, T)            \
    BOTH(void, N##_p, T *, T, int)                                                         \
    BOTH(T, N##_g, const T *, int)                                                         \
    BOTH(void, N##_iput, T *, const T *, ptrdiff_t, ptrdiff_t, size_t, int)                \
    BOTH(void, N##_iget, T *, const T *, ptrdiff_t, ptrdiff_t, size_t, int)                \
    BOTH(void, N##_ibput, T *, const T *, ptrdiff_t, ptrdiff_t, size_t, size_t, int)       \
    BOTH(void, N##_ibget, T *, const T *, ptrdiff_t, ptrdiff_t, size_t, size_t, int)
RMA(TYPED)
#define SIZED(S)                                                                                   \
    COPY(put##S, void) COPY(get##S, void) COPY(put##S##_nbi, void) COPY(get##S##_nbi, void)        \
    BOTH(void, iput##S, void *, const void *, ptrdiff_t, ptrdiff_t, size_t, int)                   \
    BOTH(void, iget##S, void *, const void *, ptrdiff_t, ptrdiff_t, size_t, int)                   \
    BOTH(void, ibput##S, void *, const void *, ptrdiff_t, ptrdiff_t, size_t, size_t, int)          \
    BOTH(void, ibget##S, void *, const void *, ptrdiff_t, ptrdiff_t, size_t, size_t, int)
SIZES(SIZED)
COPY(putmem, void)
COPY(getmem, void)
COPY(putmem_nbi, void)
COPY(getmem_nbi, void)

/* 3.7 Atomics. */
#define FETCH_SET_SWAP(N, T)                                     \
    BOTH(T, N##_atomic_fetch, const T *, int)                    \
    BOTH(void, N##_atomic_set, T *, T, int)                      \
    BOTH(T, N##_atomic_swap, T *, T, int)                        \
    BOTH(void, N##_atomic_fetch_nbi, T *, const T *, int)        \
    BOTH(void, N##_atomic_swap_nbi, T *, T *, T, int)
AMO_EXTENDED(FETCH_SET_SWAP)
#define ARITHMETIC(N, T)                                         \
    BOTH(T, N##_atomic_compare_swap, T *, T, T, int)             \
    BOTH(T, N##_atomic_fetch_inc, T *, int)                      \
    BOTH(void, N##_atomic_inc, T *, int)                         \
    BOTH(T, N##_atomic_fetch_add, T *, T, int)                   \
    BOTH(void, N##_atomic_add, T *, T, int)                      \
    BOTH(void, N##_atomic_compare_swap_nbi, T *, T *, T, T, int) \
    BOTH(void, N##_atomic_fetch_inc_nbi, T *, T *, int)          \
    BOTH(void, N##_atomic_fetch_add_nbi, T *, T *, T, int)
AMO_STANDARD(ARITHMETIC)
#define BITS(N, T, op)                                           \
    BOTH(T, N##_atomic_fetch_##op, T *, T, int)                  \
    BOTH(void, N##_atomic_##op, T *, T, int)                     \
    BOTH(void, N##_atomic_fetch_##op##_nbi, T *, T *, T, int)
#define BITWISE(N, T) BITS(N, T, and) BITS(N, T, or) BITS(N, T, xor)
AMO_BITWISE(BITWISE)
#define OLD_FETCH_SET_SWAP(N, T) IS(T, N##_fetch, const T *, int) IS(void, N##_set, T *, T, int) IS(T, N##_swap, T *, T, int)
OLD_AMO_EXTENDED(OLD_FETCH_SET_SWAP)
#define OLD_ARITHMETIC(N, T)                                                                                  \
    IS(T, N##_cswap, T *, T, T, int) IS(T, N##_finc, T *, int) IS(void, N##_inc, T *, int)                    \
    IS(T, N##_fadd, T *, T, int) IS(void, N##_add, T *, T, int)
OLD_AMO(OLD_ARITHMETIC)

/* 3.8 Signals. */
#define SIGNAL(name, T) BOTH(void, name, T *, const T *, size_t, uint64_t *, uint64_t, int, int)
#define TYPED_SIGNAL(N, T) SIGNAL(N##_put_signal, T) SIGNAL(N##_put_signal_nbi, T)
RMA(TYPED_SIGNAL)
#define SIZED_SIGNAL(S) SIGNAL(put##S##_signal, void) SIGNAL(put##S##_signal_nbi, void)
SIZES(SIZED_SIGNAL)
SIZED_SIGNAL(mem)
BOTH(void, signal_add, uint64_t *, uint64_t, int)
BOTH(void, signal_set, uint64_t *, uint64_t, int)
IS(uint64_t, signal_fetch, const uint64_t *)
IS(uint64_t, signal_wait_until, uint64_t *, int, uint64_t)

/* 3.10 Collectives. */
IS(void, barrier_all, void)
IS(void, sync_all, void)
IS(int, team_sync, shmem_team_t)
#define MOVE(name, T) IS(int, name, shmem_team_t, T *, const T *, size_t)
#define MOVES(name, T) IS(int, name, shmem_team_t, T *, const T *, ptrdiff_t, ptrdiff_t, size_t)
#define ROOTED(name, T) IS(int, name, shmem_team_t, T *, const T *, size_t, int)
#define TYPED_MOVES(N, T) \
    MOVE(N##_alltoall, T) MOVES(N##_alltoalls, T) ROOTED(N##_broadcast, T) MOVE(N##_collect, T) MOVE(N##_fcollect, T)
RMA(TYPED_MOVES)
MOVE(alltoallmem, void)
MOVES(alltoallsmem, void)
ROOTED(broadcastmem, void)
MOVE(collectmem, void)
MOVE(fcollectmem, void)
#define OF_BITS(N, T) MOVE(N##_and_reduce, T) MOVE(N##_or_reduce, T) MOVE(N##_xor_reduce, T)
REDUCE_BITS(OF_BITS)
#define OF_ORDER(N, T) MOVE(N##_max_reduce, T) MOVE(N##_min_reduce, T)
RMA(OF_ORDER)
#define OF_SUM(N, T) MOVE(N##_sum_reduce, T) MOVE(N##_prod_reduce, T) MOVE(N##_sum_inscan, T) MOVE(N##_sum_exscan, T)
REDUCE_SUM(OF_SUM)
IS(void, barrier, int, int, int, long *)
IS(void, sync, int, int, int, long *)
#define OF_SET(S)                                                                             \
    IS(void, alltoall##S, void *, const void *, size_t, int, int, int, long *)                \
    IS(void, alltoalls##S, void *, const void *, ptrdiff_t, ptrdiff_t, size_t, int, int, int, long *) \
    IS(void, broadcast##S, void *, const void *, size_t, int, int, int, int, long *)          \
    IS(void, collect##S, void *, const void *, size_t, int, int, int, long *)                 \
    IS(void, fcollect##S, void *, const void *, size_t, int, int, int, long *)
OF_SET(32)
OF_SET(64)
#define TO_ALL(name, T) IS(void, name##_to_all, T *, const T *, int, int, int, int, T *, long *)
#define BITS_TO_ALL(N, T) TO_ALL(N##_and, T) TO_ALL(N##_or, T) TO_ALL(N##_xor, T)
OLD_WAIT(BITS_TO_ALL)
#define ORDER_TO_ALL(N, T) TO_ALL(N##_max, T) TO_ALL(N##_min, T)
TO_ALL_ORDER(ORDER_TO_ALL)
#define SUM_TO_ALL(N, T) TO_ALL(N##_sum, T) TO_ALL(N##_prod, T)
TO_ALL_SUM(SUM_TO_ALL)

/* 3.11 Waits and tests. */
#define ONE(N, T) IS(void, N##_wait_until, T *, int, T) IS(int, N##_test, T *, int, T)
AMO_STANDARD(ONE)
ONE(short, short)
ONE(ushort, unsigned short)
#define SEVERAL(N, T, V, suffix)                                                                        \
    IS(void, N##_wait_until_all##suffix, T *, size_t, const int *, int, V)                              \
    IS(size_t, N##_wait_until_any##suffix, T *, size_t, const int *, int, V)                            \
    IS(size_t, N##_wait_until_some##suffix, T *, size_t, size_t *, const int *, int, V)                 \
    IS(int, N##_test_all##suffix, T *, size_t, const int *, int, V)                                     \
    IS(size_t, N##_test_any##suffix, T *, size_t, const int *, int, V)                                  \
    IS(size_t, N##_test_some##suffix, T *, size_t, size_t *, const int *, int, V)
#define SETS(N, T) SEVERAL(N, T, T, ) SEVERAL(N, T, const T *, _vector)
AMO_STANDARD(SETS)
IS(void, wait_until, long *, int, long)
IS(void, wait, long *, long)
#define WAITS(N, T) IS(void, N##_wait, T *, T)
OLD_WAIT(WAITS)

/* 3.12 Order, locks, profiling. */
IS(void, fence, void)
IS(void, ctx_fence, shmem_ctx_t)
IS(void, quiet, void)
IS(void, ctx_quiet, shmem_ctx_t)
BOTH(void, pe_quiet, const int *, size_t)
IS(void, set_lock, long *)
IS(void, clear_lock, long *)
IS(int, test_lock, long *)
IS(void, pcontrol, int, ...)

/* Beyond the specification, as other libraries have them. */
OF_BITS(short, short)
OLD_AMO(OF_BITS)
SETS(short, short)
SETS(ushort, unsigned short)
