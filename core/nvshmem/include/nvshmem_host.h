/* The host's half of NVSHMEM's interface. */
#ifndef NVSHMEM_HOST_H
#define NVSHMEM_HOST_H

#include "host/nvshmem_api.h"
#include "host/nvshmemx_api.h"

#endif
