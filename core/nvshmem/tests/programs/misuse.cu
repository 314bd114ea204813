// Calls that make no sense, by number. Each ends with a message that says what is wrong.
#include "check.h"

__global__ void wrong_pe(int* word) { nvshmem_int_p(word, 1, 77); }
__global__ void wrong_team(int* word) { nvshmem_int_sum_reduce(99, word, word, 1); }

static int* word;

static void begin() {
    start();
    word = (int*)nvshmem_calloc(4, sizeof(int));
}

int main(int count, char** words) {
    CHECK(count == 2);
    int local = 0;
    switch (atoi(words[1])) {
        case 0: nvshmem_malloc(100); break;
        case 1: printf("%d\n", nvshmem_my_pe()); break;
        case 2: begin(); nvshmem_int_p(word, 1, pes); nvshmem_quiet(); break;
        case 3: begin(); nvshmem_int_p(word, 1, -1); break;
        case 4: begin(); nvshmem_int_put(&local, word, 1, 0); break;
        case 5: {
            begin();
            int* own;
            CUDA(cudaMalloc(&own, 100));
            nvshmem_int_put(own, word, 1, 0);
            break;
        }
        case 6: begin(); nvshmem_free(&local); break;
        case 7: begin(); return nvshmem_int_sum_reduce(99, word, word + 1, 1);
        case 8: begin(); return nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, word, word + 1, 1, pes);
        case 9: begin(); return nvshmem_align(3, 100) ? 0 : 7;
        // PEs that differ.
        case 10: begin(); nvshmem_malloc(me ? 100 : 200); break;
        case 11: begin(); wrong_pe<<<1, 1>>>(word); cudaDeviceSynchronize(); nvshmem_barrier_all(); break;
        case 12: begin(); nvshmem_finalize(); nvshmem_malloc(100); break;
        case 13: {
            nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
            if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attributes) != 0) return 7;
            break;
        }
        case 14: {
            nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
            if (nvshmemx_init_attr(1024, &attributes) != 0) return 7;
            break;
        }
        case 15: begin(); wrong_team<<<1, 1>>>(word); cudaDeviceSynchronize(); nvshmem_barrier_all(); break;
        case 16: begin(); nvshmemx_signal_op_on_stream((uint64_t*)word, 1, 77, 0, 0); break;
        case 17: begin(); nvshmem_int_put((int*)((char*)word + 1), word, 1, 0); break;
        default: FAIL("no case %s", words[1]);
    }
    return 0;
}
