/* Types and constants, by the name of the file in which programs look for them. */
#ifndef NVSHMEM_COMMON_CUH
#define NVSHMEM_COMMON_CUH

#include "nvshmem_types.h"

#endif
