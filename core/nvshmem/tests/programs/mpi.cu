// A start by an MPI communicator: MPI_COMM_WORLD (`world`), a communicator in another order (`reversed`), the odd and even ranks
// as jobs of their own (`halves`), NVSHMEM_BOOTSTRAP in the environment (`environment`), or a unique id that MPI broadcasts
// (`unique_id`).
#include "check.h"
#include <mpi.h>

__global__ void greet(int* inbox, int right) {
    nvshmem_int_p(inbox, nvshmem_my_pe() + 1, right);
    nvshmem_barrier_all();
}

int main(int count, char** words) {
    CHECK(count == 2);
    const char* way = words[1];
    CHECK(MPI_Init(&count, &words) == MPI_SUCCESS);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm comm = MPI_COMM_WORLD;
    if (!strcmp(way, "reversed")) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    if (!strcmp(way, "halves")) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    int in_comm, of_comm;
    MPI_Comm_rank(comm, &in_comm);
    MPI_Comm_size(comm, &of_comm);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    if (!strcmp(way, "unique_id")) {
        nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
        if (rank == 0) CHECK(nvshmemx_get_uniqueid(&id) == 0);
        MPI_Bcast(&id, sizeof id, MPI_UINT8_T, 0, comm);
        CHECK(nvshmemx_set_attr_uniqueid_args(rank, ranks, &id, &attributes) == 0);
        CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0);
    } else if (!strcmp(way, "environment")) {
        CHECK(setenv("NVSHMEM_BOOTSTRAP", "MPI", 1) == 0);
        nvshmem_init();
    } else {
        if (!strcmp(way, "world")) CHECK(nvshmemx_set_attr_mpi_comm_args(&comm, &attributes) == 0);
        else attributes.mpi_comm = &comm;
        CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) == 0);
    }
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    CHECK(me == in_comm && pes == of_comm);
    choose_device();
    int* inbox = (int*)nvshmem_calloc(1, sizeof(int));
    greet<<<1, 1>>>(inbox, (me + 1) % pes);
    RAN();
    CHECK(nvshmem_int_g(inbox, me) == (me + pes - 1) % pes + 1);
    nvshmem_barrier_all();
    nvshmem_free(inbox);
    // MPI goes on.
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == ranks * (ranks - 1) / 2);
    nvshmem_finalize();
    MPI_Finalize();
    return 0;
}
