// Threads of C++ in calls at once, by the overloads.
#include "check.h"

#include <thread>
#include <vector>

static volatile long flag;
static long sum;

int main()
{
    enum { THREADS = 3, ROUNDS = 50 };
    int provided;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    CHECK(provided == SHMEM_THREAD_MULTIPLE);
    begin();
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([i] {
            shmem_ctx_t ctx;
            CHECK(shmem_ctx_create(i % 2 ? SHMEM_CTX_PRIVATE : 0, &ctx) == 0);
            for (int r = 0; r < ROUNDS; r++) {
                shmem_atomic_inc(ctx, &sum, right);
                shmem_atomic_add(&sum, 2L, right);
            }
            shmem_ctx_destroy(ctx);
            shmem_quiet();
            shmem_atomic_inc(&flag, right);
        });
    // This one waits meanwhile.
    shmem_wait_until(&flag, SHMEM_CMP_EQ, THREADS);
    CHECK(shmem_atomic_fetch(&sum, me) == 3L * THREADS * ROUNDS);
    for (std::thread &thread : threads)
        thread.join();
    shmem_finalize();
    shmem_finalize();
    return 0;
}
