/* What oxshmem has beyond OpenSHMEM: nothing so far. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#endif
