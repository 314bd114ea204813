/* Every header, in whatever language. */
#include <mpp/shmem.h>
#include <mpp/shmemx.h>
#include <pshmem.h>
#include <shmem.h>
#include <shmemx.h>

int main(void)
{
    return 0;
}
