/* The header's old place. Deprecated in OpenSHMEM 1.1. */
#ifndef OXSHMEM_MPP_SHMEM_H
#define OXSHMEM_MPP_SHMEM_H

#include <shmem.h>

/* As the first machines that had this header called them. */
#define my_pe() shmem_my_pe()
#define num_pes() shmem_n_pes()

#endif
