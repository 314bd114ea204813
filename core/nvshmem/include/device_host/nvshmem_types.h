/* Types and constants of NVSHMEM's interface, for the host and for kernels. */
#ifndef NVSHMEM_TYPES_H
#define NVSHMEM_TYPES_H

#include "../nvshmem_version.h"

#if !defined(__CUDACC_RTC__)
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#else
/* NVRTC has no headers of its own before CUDA 12.3. */
#ifndef INT_MAX
#define INT_MAX 2147483647
#endif
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#endif

/* Kernels' half of this header: in CUDA sources, unless the program wants the host's library alone. */
#if (defined(__CUDACC__) || defined(__CUDA__)) && !defined(NVSHMEM_HOSTLIB_ONLY)
#define NVSHMEMI_IN_KERNELS 1
#else
#define NVSHMEMI_IN_KERNELS 0
#endif

/* Handles of CUDA, from its headers where they are, else as these declare them. */
#if defined(__has_include)
#if !defined(__CUDACC_RTC__) && __has_include(<cuda_runtime_api.h>)
#define NVSHMEMI_HAS_CUDART 1
#endif
#endif
#if defined(NVSHMEMI_HAS_CUDART)
#include <cuda_runtime_api.h>
#endif
#if !defined(__CUDACC_RTC__)
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
#if !defined(NVSHMEMI_HAS_CUDART)
typedef struct CUstream_st *cudaStream_t;
#endif
#endif

/* 16-bit floating-point numbers, of CUDA's headers where they are. Without these headers there are calls on pointers to them alone. */
#define NVSHMEMI_HAS_HALF 0
#if defined(__cplusplus)
#if defined(__has_include)
/* They need another header, beside which the emulation has its own. */
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>) && (defined(OXSHMEM_EMULATION) || __has_include(<nv/target>))
#undef NVSHMEMI_HAS_HALF
#define NVSHMEMI_HAS_HALF 1
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#endif
#if !NVSHMEMI_HAS_HALF
struct __half;
typedef struct __half half;
struct __nv_bfloat16;
#endif
#else
typedef struct {
    unsigned short x;
} half, __nv_bfloat16;
#undef NVSHMEMI_HAS_HALF
#define NVSHMEMI_HAS_HALF 1
#endif

/* The value of a structure's field `version`. */
#define NVSHMEMI_STRUCT_VERSION(number, type) (((number) << 16) + (int)sizeof(type))

/* Teams. */
typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;
typedef uint64_t nvshmemx_team_uniqueid_t;
typedef enum nvshmem_team_id_t {
    NVSHMEM_TEAM_INVALID = -1,
    NVSHMEM_TEAM_WORLD = 0,
    NVSHMEM_TEAM_WORLD_INDEX = 0,
    NVSHMEM_TEAM_SHARED = 1,
    NVSHMEM_TEAM_SHARED_INDEX = 1,
    NVSHMEMX_TEAM_NODE = 2,
    NVSHMEM_TEAM_NODE_INDEX = 2,
    NVSHMEMX_TEAM_SAME_MYPE_NODE = 3,
    NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX = 3,
    NVSHMEM_TEAM_SAME_GPU_INDEX = 4,
    NVSHMEM_TEAM_GPU_LEADERS_INDEX = 5,
    NVSHMEM_TEAM_MC_SHARED_INDEX = 6,
    /* No PEs share multicast memory. */
    NVSHMEM_TEAM_MC_SHARED = NVSHMEM_TEAM_INVALID,
    NVSHMEM_TEAMS_MIN = 7,
    NVSHMEM_TEAM_INDEX_MAX = INT_MAX
} nvshmem_team_id_t;

typedef struct nvshmem_team_config_v1 {
    int version;
    int num_contexts;
    char padding[56];
} nvshmem_team_config_v1;
typedef struct nvshmem_team_config_v2 {
    int version;
    int num_contexts;
    nvshmemx_team_uniqueid_t uniqueid;
    char padding[48];
} nvshmem_team_config_v2;
typedef nvshmem_team_config_v2 nvshmem_team_config_t;
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS 1
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID 2
#define NVSHMEM_TEAM_UNIQUID_INITIALIZER 0
#define NVSHMEM_TEAM_CONFIG_INITIALIZER \
    {NVSHMEMI_STRUCT_VERSION(2, nvshmem_team_config_v2), 0, NVSHMEM_TEAM_UNIQUID_INITIALIZER, {0}}

/* PEs that are no PE's number. */
typedef enum nvshmem_pe_index_t {
    NVSHMEM_PE_INVALID = -1,
    NVSHMEMX_PE_ANY = 1 << 15,
    NVSHMEMX_PE_ALL = 1 << 15
} nvshmem_pe_index_t;

/* Results of calls. */
#define NVSHMEMX_STATUS_LIST(X)                                                          \
    X(NVSHMEMX_SUCCESS, 0, "success")                                                    \
    X(NVSHMEMX_ERROR_INVALID_VALUE, 1, "an argument is not valid")                       \
    X(NVSHMEMX_ERROR_OUT_OF_MEMORY, 2, "there is not enough memory")                     \
    X(NVSHMEMX_ERROR_NOT_SUPPORTED, 3, "this is not supported")                          \
    X(NVSHMEMX_ERROR_SYMMETRY, 4, "the PEs did not call alike")                          \
    X(NVSHMEMX_ERROR_GPU_NOT_SELECTED, 5, "no GPU has been chosen")                      \
    X(NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED, 6, "a collective launch failed")          \
    X(NVSHMEMX_ERROR_INTERNAL, 7, "an internal error")
#define NVSHMEMI_STATUS(name, value, text) name = value,
typedef enum nvshmemx_status {
    NVSHMEMX_STATUS_LIST(NVSHMEMI_STATUS)
    NVSHMEMX_ERROR_SENTINEL = INT_MAX
} nvshmemx_status;
#undef NVSHMEMI_STATUS

/* Start. */
typedef enum {
    NVSHMEM_THREAD_SINGLE,
    NVSHMEM_THREAD_FUNNELED,
    NVSHMEM_THREAD_SERIALIZED,
    NVSHMEM_THREAD_MULTIPLE,
    NVSHMEM_THREAD_TYPE_SENTINEL = INT_MAX
} nvshmemx_thread_support_t;
enum flags {
    NVSHMEMX_INIT_THREAD_PES = 1 << 0,
    NVSHMEMX_INIT_WITH_MPI_COMM = 1 << 1,
    NVSHMEMX_INIT_WITH_SHMEM = 1 << 2,
    NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3,
    NVSHMEMX_INIT_MAX = 1 << 31
};
typedef enum nvshmemx_init_status_t {
    NVSHMEM_STATUS_NOT_INITIALIZED,
    NVSHMEM_STATUS_IS_BOOTSTRAPPED,
    NVSHMEM_STATUS_IS_INITIALIZED,
    NVSHMEM_STATUS_LIMITED_MPG,
    NVSHMEM_STATUS_FULL_MPG,
    NVSHMEM_STATUS_INVALID = INT_MAX
} nvshmemx_init_status_t;
/* States of a request to end the job: PROXY_GLOBAL_EXIT_NOT_REQUESTED is the only one that is seen here. */
typedef enum nvshmemx_proxy_status_t {
    PROXY_GLOBAL_EXIT_NOT_REQUESTED,
    PROXY_GLOBAL_EXIT_INIT,
    PROXY_GLOBAL_EXIT_REQUESTED,
    PROXY_GLOBAL_EXIT_FINISHED,
    PROXY_GLOBAL_EXIT_MAX_STATE = INT_MAX
} nvshmemx_proxy_status_t;

typedef struct nvshmemx_uniqueid_v1 {
    int version;
    char internal[124];
} nvshmemx_uniqueid_v1;
typedef nvshmemx_uniqueid_v1 nvshmemx_uniqueid_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER \
    {NVSHMEMI_STRUCT_VERSION(1, nvshmemx_uniqueid_v1), {0}}

typedef struct nvshmemx_uniqueid_args_v1 {
    int version;
    nvshmemx_uniqueid_v1 *id;
    int myrank;
    int nranks;
} nvshmemx_uniqueid_args_v1;
typedef nvshmemx_uniqueid_args_v1 nvshmemx_uniqueid_args_t;
#define NVSHMEMX_UNIQUEID_ARGS_INITIALIZER \
    {NVSHMEMI_STRUCT_VERSION(1, nvshmemx_uniqueid_args_v1), NULL, 0, 0}

typedef struct nvshmemx_init_args_v1 {
    int version;
    nvshmemx_uniqueid_args_v1 uid_args;
    char content[96];
} nvshmemx_init_args_v1;
typedef struct nvshmemx_init_args_v2 {
    int version;
    nvshmemx_uniqueid_args_v1 uid_args;
    int cuda_device_id;
    char content[92];
} nvshmemx_init_args_v2;
typedef nvshmemx_init_args_v2 nvshmemx_init_args_t;
#define NVSHMEM_INIT_ARGS_V2_IDENTIFIER NVSHMEMI_STRUCT_VERSION(2, nvshmemx_init_args_v2)
/* No device is named: the current one. */
#define NVSHMEMX_INIT_ARGS_V2_INITIALIZER \
    {NVSHMEM_INIT_ARGS_V2_IDENTIFIER, NVSHMEMX_UNIQUEID_ARGS_INITIALIZER, -1, {0}}
#define NVSHMEMX_INIT_ARGS_INITIALIZER NVSHMEMX_INIT_ARGS_V2_INITIALIZER

typedef struct nvshmemx_init_attr_v1 {
    int version;
    void *mpi_comm;
    nvshmemx_init_args_v1 args;
} nvshmemx_init_attr_v1;
typedef struct nvshmemx_init_attr_v2 {
    int version;
    void *mpi_comm;
    nvshmemx_init_args_v2 args;
} nvshmemx_init_attr_v2;
typedef nvshmemx_init_attr_v2 nvshmemx_init_attr_t;
#define NVSHMEM_INIT_ATTR_V1_IDENTIFIER NVSHMEMI_STRUCT_VERSION(1, nvshmemx_init_attr_v1)
#define NVSHMEM_INIT_ATTR_V2_IDENTIFIER NVSHMEMI_STRUCT_VERSION(2, nvshmemx_init_attr_v2)
#define NVSHMEM_INIT_ATTR_VER NVSHMEM_INIT_ATTR_V2_IDENTIFIER
#define NVSHMEMX_INIT_ATTR_V1_INITIALIZER                                                                             \
    {NVSHMEM_INIT_ATTR_V1_IDENTIFIER, NULL,                                                                           \
     {NVSHMEMI_STRUCT_VERSION(1, nvshmemx_init_args_v1), NVSHMEMX_UNIQUEID_ARGS_INITIALIZER, {0}}}
#define NVSHMEMX_INIT_ATTR_INITIALIZER {NVSHMEM_INIT_ATTR_VER, NULL, NVSHMEMX_INIT_ARGS_INITIALIZER}
/* Sets the versions in attributes, and nothing else. */
#define nvshmemx_init_init_attr_ver_only(attr)                                                                        \
    do {                                                                                                              \
        (attr).version = NVSHMEM_INIT_ATTR_VER;                                                                       \
        (attr).args.version = NVSHMEM_INIT_ARGS_V2_IDENTIFIER;                                                        \
        (attr).args.uid_args.version = NVSHMEMI_STRUCT_VERSION(1, nvshmemx_uniqueid_args_v1);                         \
    } while (0)

typedef struct nvshmemi_version_t {
    int major;
    int minor;
    int patch;
} nvshmemi_version_t;
typedef int (*nvshmemx_device_lib_init_cb)(void **, void **);

/* Signals, waits. */
typedef enum nvshmemx_signal_op_t { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 } nvshmemx_signal_op_t;
typedef enum nvshmemi_cmp_type {
    NVSHMEM_CMP_EQ,
    NVSHMEM_CMP_NE,
    NVSHMEM_CMP_GT,
    NVSHMEM_CMP_LE,
    NVSHMEM_CMP_LT,
    NVSHMEM_CMP_GE,
    NVSHMEM_CMP_SENTINEL = INT_MAX
} nvshmemx_cmp_type_t;

/* Queue pairs. Every call goes the default way, whatever handle it is given. */
typedef int nvshmemx_qp_handle_t;
typedef enum nvshmemx_qp_handle_index_t {
    NVSHMEMX_QP_HOST = 0,
    NVSHMEMX_QP_DEFAULT = 1,
    NVSHMEMX_QP_ANY = INT_MAX,
    NVSHMEMX_QP_ALL = INT_MAX
} nvshmemx_qp_handle_index_t;

/* Regions: hints, which change nothing here. */
typedef uint64_t nvshmemx_region_handle_t;
typedef enum nvshmemx_region_hint_t { NVSHMEMX_REGION_HINT_NONE = 0, NVSHMEMX_REGION_HINT_BATCH_RMA = 1 } nvshmemx_region_hint_t;
#define NVSHMEMX_REGION_ATTRS_RESERVED_BYTES 60
typedef struct nvshmemx_region_attrs {
    uint32_t hints;
    char reserved[NVSHMEMX_REGION_ATTRS_RESERVED_BYTES];
} nvshmemx_region_attrs_t;
#define NVSHMEMX_REGION_ATTRS_INITIALIZER {NVSHMEMX_REGION_HINT_NONE, {0}}

/* Copies by the GPU's copy unit. Kernels here copy by loads and stores: they ask for no shared memory. */
typedef enum nvshmemx_tma_policy_t {
    NVSHMEMX_TMA_DISABLE,
    NVSHMEMX_TMA_ENABLE,
    NVSHMEMX_TMA_FORCE,
    NVSHMEMX_TMA_POLICY_MAX = INT_MAX
} nvshmemx_tma_policy_t;
typedef enum nvshmemx_smem_amount_t {
    NVSHMEMX_SMEM_RECOMMENDED,
    NVSHMEMX_SMEM_MINIMUM,
    NVSHMEMX_SMEM_BARRIERS_ONLY,
    NVSHMEMX_SMEM_AMOUNT_MAX = INT_MAX
} nvshmemx_smem_amount_t;

/* Launches. */
#if defined(NVSHMEMI_HAS_CUDART) && (defined(__cplusplus) || CUDART_VERSION >= 12000)
#define NVSHMEMI_HAS_LAUNCH_CONFIG 1
typedef struct nvshmemx_collective_launch_attr {
    cudaLaunchConfig_t cuda_config;
} nvshmemx_collective_launch_attr_t;
#endif

#define nvshmem_sync nvshmem_team_sync

/* Not of the interface, and used by programs all the same. */
#define NVSHMEMI_ERROR_PRINT(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__))

#endif
