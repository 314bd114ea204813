/* The types and constants of OpenSHMEM 1.6. Included by shmem.h and pshmem.h. */
#ifndef OXSHMEM_BASE_H
#define OXSHMEM_BASE_H

#include <stddef.h>
#include <stdint.h>
#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L
/* Programs for other libraries have it from there. */
#include <complex.h>
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define OXSHMEM_NORETURN [[noreturn]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define OXSHMEM_NORETURN _Noreturn
#else
#define OXSHMEM_NORETURN __attribute__((noreturn))
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "oxshmem 0.2.0"
/* The version as programs for Open MPI ask for it. */
#define OSHMEM_SPEC_VERSION (SHMEM_MAJOR_VERSION * 10000 + SHMEM_MINOR_VERSION * 100)

/* What threads may do, from little to much. */
#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

/* Handles are numbers in the guise of pointers, of types of their own so that C11 and C++ tell them apart. */
typedef struct oxshmem_team *shmem_team_t;
typedef struct oxshmem_ctx *shmem_ctx_t;

#ifdef __cplusplus
#define OXSHMEM_HANDLE(type, number) (reinterpret_cast<type>(static_cast<uintptr_t>(number)))
#else
#define OXSHMEM_HANDLE(type, number) ((type)(number))
#endif

#define SHMEM_TEAM_INVALID OXSHMEM_HANDLE(shmem_team_t, 0)
#define SHMEM_TEAM_WORLD OXSHMEM_HANDLE(shmem_team_t, 1)
#define SHMEM_TEAM_SHARED OXSHMEM_HANDLE(shmem_team_t, 2)

#define SHMEM_CTX_INVALID OXSHMEM_HANDLE(shmem_ctx_t, 0)
#define SHMEM_CTX_DEFAULT OXSHMEM_HANDLE(shmem_ctx_t, 1)

/* Fields of shmem_team_config_t, for masks. */
#define SHMEM_TEAM_NUM_CONTEXTS 1L

typedef struct {
    int num_contexts;
} shmem_team_config_t;

/* Options of contexts. */
#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE 2L
#define SHMEM_CTX_NOSTORE 4L

/* Options of sessions, and the fields of shmem_ctx_session_config_t. */
#define SHMEM_CTX_SESSION_BATCH 1L
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L

typedef struct {
    size_t total_ops;
} shmem_ctx_session_config_t;

/* Hints for shmem_malloc_with_hints. */
#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L

/* What a signal does to its word. */
#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

/* How a word is compared with a value. */
#define SHMEM_CMP_EQ 1
#define SHMEM_CMP_NE 2
#define SHMEM_CMP_GT 3
#define SHMEM_CMP_GE 4
#define SHMEM_CMP_LT 5
#define SHMEM_CMP_LE 6

/* Of the arrays for collective calls of active sets, which oxshmem takes and does not use. Deprecated. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 8
#define SHMEM_BARRIER_SYNC_SIZE 8
#define SHMEM_BCAST_SYNC_SIZE 8
#define SHMEM_COLLECT_SYNC_SIZE 8
#define SHMEM_REDUCE_SYNC_SIZE 8
#define SHMEM_ALLTOALL_SYNC_SIZE 8
#define SHMEM_ALLTOALLS_SYNC_SIZE 8
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 8

/* The oldest names. Deprecated. */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE

/* Complex numbers, which C++ knows as an extension of the compiler's alone. */
__extension__ typedef double _Complex oxshmem_complexd;
__extension__ typedef float _Complex oxshmem_complexf;

#endif
