/* Preloaded into a PE, it breaks what the PE made, behind the library's back:
 * SIGUSR1 puts all its queue pairs into the error state, SIGUSR2 deregisters all its memory that
 * peers may write. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { MOST = 4096 };

static struct ibv_qp *pairs[MOST];
static struct ibv_mr *regions[MOST];
static struct ibv_mr *broken[MOST];
static int pair_count, region_count, broken_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    return found;
}

/* The signals are blocked in every thread but this one. */
static void *breaker(void *unused)
{
    int (*deregister)(struct ibv_mr *) = next("ibv_dereg_mr");
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    for (;;) {
        int got;
        if (sigwait(&both, &got) != 0)
            return unused;
        pthread_mutex_lock(&lock);
        struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
        for (int i = 0; got == SIGUSR1 && i < pair_count; i++)
            if (ibv_modify_qp(pairs[i], &error, IBV_QP_STATE) != 0)
                abort();
        for (; got == SIGUSR2 && region_count > 0; region_count--) {
            broken[broken_count++] = regions[region_count - 1];
            if (deregister(regions[region_count - 1]) != 0)
                abort();
        }
        pthread_mutex_unlock(&lock);
    }
}

__attribute__((constructor)) static void begin(void)
{
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    pthread_t thread;
    if (pthread_sigmask(SIG_BLOCK, &both, NULL) != 0 || pthread_create(&thread, NULL, breaker, NULL) != 0)
        abort();
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *wanted)
{
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) = next("ibv_create_qp");
    pthread_mutex_lock(&lock);
    struct ibv_qp *made = create(domain, wanted);
    if (made != NULL && pair_count < MOST)
        pairs[pair_count++] = made;
    pthread_mutex_unlock(&lock);
    return made;
}

int ibv_destroy_qp(struct ibv_qp *pair)
{
    int (*destroy)(struct ibv_qp *) = next("ibv_destroy_qp");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < pair_count; i++)
        if (pairs[i] == pair)
            pairs[i] = pairs[--pair_count];
    int status = destroy(pair);
    pthread_mutex_unlock(&lock);
    return status;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *domain, void *base, size_t len, uint64_t iova, unsigned int access)
{
    struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, uint64_t, unsigned int) = next("ibv_reg_mr_iova2");
    pthread_mutex_lock(&lock);
    struct ibv_mr *made = reg(domain, base, len, iova, access);
    if (made != NULL && (access & IBV_ACCESS_REMOTE_WRITE) != 0 && region_count < MOST)
        regions[region_count++] = made;
    pthread_mutex_unlock(&lock);
    return made;
}

int ibv_dereg_mr(struct ibv_mr *region)
{
    int (*deregister)(struct ibv_mr *) = next("ibv_dereg_mr");
    int status = 0, done = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < broken_count && !done; i++)
        if (broken[i] == region) {
            broken[i] = broken[--broken_count];
            done = 1;
        }
    for (int i = 0; i < region_count; i++)
        if (regions[i] == region)
            regions[i] = regions[--region_count];
    if (!done)
        status = deregister(region);
    pthread_mutex_unlock(&lock);
    return status;
}
