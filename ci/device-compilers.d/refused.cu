// Calls that no compiler takes: CASE is the number of one, and 0 that of none.
#include "oxshmem.cuh"

struct Wide {
    long low, high;
};

__global__ void calls(int* word, long* number, double* real, Wide* wide) {
    oxshmem::p(number, 1L, 0);
#if CASE == 1
    oxshmem::signal(word, 1, oxshmem::SIGNAL_SET, 0);
#elif CASE == 2
    oxshmem::p(wide, Wide(), 0);
#elif CASE == 3
    oxshmem::put(oxshmem::thread(), number, word, 1, 0);
#elif CASE == 4
    oxshmem::atomic_add(wide, Wide(), 0);
#elif CASE == 5
    oxshmem::put_signal(number, number, 1, word, 1, oxshmem::SIGNAL_ADD, 0);
#elif CASE == 6
    oxshmem::reduce<oxshmem::And>(oxshmem::thread(), oxshmem::TEAM_WORLD, real, real, 1);
#elif CASE == 7
    oxshmem::put(number, (const long*)number, 1);
#endif
}
