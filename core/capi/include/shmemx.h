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

#ifdef __cplusplus
}
#endif

#endif
