/* The header's old place. Deprecated in OpenSHMEM 1.1. */
#include <shmemx.h>
