/* As C programs of old have it included in C++. */
extern "C" {
#include <shmem.h>
}
#include "generics.c"
