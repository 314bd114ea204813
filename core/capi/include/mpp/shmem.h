/* The header's old place. Deprecated in OpenSHMEM 1.1. */
#include <shmem.h>
