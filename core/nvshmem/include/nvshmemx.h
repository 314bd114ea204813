/* The extensions: nvshmem.h has them, too. */
#ifndef NVSHMEMX_H
#define NVSHMEMX_H

#include "nvshmem.h"

#endif
