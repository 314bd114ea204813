/* What oxshmem has beyond OpenSHMEM. */
/* Generated from oxshmem's table (core/capi/table); do not edit. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAVE_SHMEMX_WTIME 1
double shmemx_wtime(void);
#define HAVE_SHMEMX_CUDA_INIT 1
int shmemx_cuda_init(void);
#define HAVE_SHMEMX_CUDA_DEVICE 1
int shmemx_cuda_device(void);
#define HAVE_SHMEMX_CUDA_CHECK 1
int shmemx_cuda_check(void);
#define HAVE_SHMEMX_CUDA_MALLOC 1
void *shmemx_cuda_malloc(size_t size);
#define HAVE_SHMEMX_CUDA_PTR 1
void *shmemx_cuda_ptr(const void *dest, int pe);
#define HAVE_SHMEMX_CUDA_RESUME 1
int shmemx_cuda_resume(void);
#define HAVE_SHMEMX_CUDA_RESERVE_TEAMS 1
int shmemx_cuda_reserve_teams(int teams);
#define HAVE_SHMEMX_CUDA_TEAM 1
int shmemx_cuda_team(shmem_team_t team);

#ifdef __cplusplus
}
#endif

#endif
