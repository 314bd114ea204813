// A start by OpenSHMEM: the program's own library of it says who is in the job. Both go on beside each other.
#include "check.h"
#include <shmem.h>

__global__ void greet(int* inbox, int right) {
    nvshmem_int_p(inbox, nvshmem_my_pe() + 1, right);
    nvshmem_barrier_all();
}

int main() {
    shmem_init();
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_SHMEM, &attributes) == 0);
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    CHECK(me == shmem_my_pe() && pes == shmem_n_pes());
    choose_device();
    int* inbox = (int*)nvshmem_calloc(1, sizeof(int));
    greet<<<1, 1>>>(inbox, (me + 1) % pes);
    RAN();
    CHECK(nvshmem_int_g(inbox, me) == (me + pes - 1) % pes + 1);
    static long host;
    shmem_long_p(&host, me + 1, (me + 1) % pes);
    shmem_barrier_all();
    CHECK(host == (me + pes - 1) % pes + 1);
    nvshmem_free(inbox);
    nvshmem_finalize();
    shmem_finalize();
    return 0;
}
