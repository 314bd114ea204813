/* What makes no sense: argv[1] says what. PE 0 does it, and the others wait in a barrier. */
#include "check.h"

static const char *what;

static int is(const char *name)
{
    return strcmp(what, name) == 0;
}

int main(int argc, char **argv)
{
    long mine = 0, *x, *odd, *freed;
    what = argc > 1 ? argv[1] : "";
    if (is("before"))
        shmem_long_p(&mine, 1, 0);
    if (is("my_pe_before"))
        shmem_my_pe();
    begin();
    x = shmem_calloc(8, sizeof(long));
    odd = (long *)((char *)x + 1);
    freed = shmem_malloc(sizeof(long));
    shmem_free(freed);
    if (is("after") || is("p_after")) {
        shmem_finalize();
        if (is("p_after"))
            shmem_long_p(x, 1, 0);
        shmem_quiet();
    }
    if (is("global_exit_of_last") && me == n - 1)
        shmem_global_exit(43);
    if (is("global_exit_of_all"))
        shmem_global_exit(50 + me);
    if (me == 0) {
        shmem_ctx_t ctx;
        if (is("pe"))
            shmem_long_p(x, 1, n);
        if (is("negative_pe"))
            shmem_long_g(x, -3);
        if (is("private"))
            shmem_long_put(&mine, x, 1, right);
        if (is("private_source"))
            shmem_long_get(x, &mine, 1, right);
        if (is("null"))
            shmem_long_p(NULL, 1, right);
        if (is("misaligned"))
            shmem_long_p(odd, 1, right);
        if (is("misaligned_g"))
            shmem_long_g(odd, right);
        if (is("misaligned_put"))
            shmem_long_put(odd, x, 1, right);
        if (is("misaligned_get"))
            shmem_long_get(&mine, odd, 1, right);
        if (is("misaligned_nbi"))
            shmem_long_put_nbi(odd, &mine, 1, right);
        if (is("misaligned_iput"))
            shmem_long_iput(odd, &mine, 1, 1, 1, right);
        if (is("misaligned_iget"))
            shmem_long_iget(&mine, odd, 1, 1, 1, right);
        if (is("misaligned_data"))
            shmem_long_put_signal(odd, &mine, 1, (uint64_t *)x + 4, 1, SHMEM_SIGNAL_SET, right);
        if (is("misaligned_too_long"))
            shmem_long_put(odd, x, (size_t)1 << 60, right);
        if (is("misaligned_signal"))
            shmem_long_put_signal(x, &mine, 1, (uint64_t *)odd, 1, SHMEM_SIGNAL_SET, right);
        if (is("misaligned_atomic"))
            shmem_long_atomic_add(odd, 1, right);
        if (is("misaligned_wait"))
            shmem_long_wait_until(odd, SHMEM_CMP_EQ, 0);
        if (is("past_block"))
            shmem_long_p(x + 8, 1, right);
        if (is("over_block"))
            shmem_long_get(&mine, x + 7, 2, right);
        if (is("freed_block"))
            shmem_long_atomic_add(freed, 1, right);
        if (is("of_peer"))
            shmem_long_p(shmem_ptr(x, right), 1, right);
        if (is("too_long"))
            shmem_long_put(x, x, (size_t)1 << 60, right);
        if (is("ctx"))
            shmem_ctx_long_p(SHMEM_CTX_INVALID, x, 1, right);
        if (is("destroyed_ctx")) {
            shmem_ctx_create(0, &ctx);
            shmem_ctx_destroy(ctx);
            shmem_ctx_long_p(ctx, x, 1, right);
        }
        if (is("made_up_ctx"))
            shmem_ctx_quiet((shmem_ctx_t)(uintptr_t)0x1234567);
        if (is("stride"))
            shmem_long_iput(x, x, 0, 1, 2, right);
        if (is("cmp"))
            shmem_long_wait_until(x, 17, 1);
        if (is("sig_op"))
            shmem_long_put_signal(x, x, 1, (uint64_t *)x + 4, 1, 9, right);
        if (is("private_wait"))
            shmem_long_wait_until(&mine, SHMEM_CMP_EQ, 1);
        if (is("lock"))
            shmem_set_lock(&mine);
        if (is("clear"))
            shmem_clear_lock(x);
        if (is("free"))
            shmem_free(&mine);
        if (is("free_inside"))
            shmem_free(x + 1);
        if (is("collective"))
            shmem_sync_all();
        if (is("broadcast"))
            shmem_long_broadcast(SHMEM_TEAM_WORLD, &mine, x, 1, 0);
        if (is("exit"))
            exit(3);
        if (is("global_exit"))
            shmem_global_exit(42);
        if (is("active_set"))
            shmem_barrier(0, 40, 2, x);
        if (is("outsider"))
            shmem_barrier(1, 0, 1, x);
    }
    if (is("global_exit") || is("global_exit_of_last") || is("exit")) {
        for (;;)
            ; /* Busy, and in no call. */
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
