/* A program of MPI and OpenSHMEM, which ci/test-launchers runs: argv[1] says which is initialized first, and whether the one
   ends before the other begins. */
#include <mpi.h>

#include "check.h"

static void with_mpi(void)
{
    int rank, size, from = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (from != (rank + size - 1) % size)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void with_shmem(void)
{
    long *x = shmem_calloc(1, sizeof(long));
    shmem_long_p(x, me + 1, right);
    shmem_barrier_all();
    CHECK(*x == left + 1);
    shmem_free(x);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "mpi first") == 0) {
        MPI_Init(&argc, &argv);
        begin();
        with_mpi();
        with_shmem();
        shmem_finalize();
        MPI_Finalize();
    } else if (strcmp(how, "shmem first") == 0) {
        begin();
        MPI_Init(&argc, &argv);
        with_shmem();
        with_mpi();
        MPI_Finalize();
        with_shmem();
        shmem_finalize();
    } else if (strcmp(how, "mpi before") == 0) {
        MPI_Init(&argc, &argv);
        with_mpi();
        MPI_Finalize();
        begin();
        with_shmem();
        shmem_finalize();
    } else {
        begin();
        with_shmem();
        shmem_finalize();
        MPI_Init(&argc, &argv);
        with_mpi();
        MPI_Finalize();
    }
    printf("both ended well\n");
    return 0;
}
