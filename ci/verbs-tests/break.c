/* Preloaded into a PE, it breaks what the PE made, behind its back: SIGUSR1 puts all its queue pairs
 * into the error state, SIGUSR2 deregisters all its memory. It asks the kernel for that by the PE's own
 * device files, where objects have small numbers; what is not of the kind asked for is refused. */
#define _GNU_SOURCE
#include <dirent.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More objects than a PE of the tests has. */
enum { NUMBERS = 4096 };

static int fail_queue_pair(int device, unsigned number)
{
    struct {
        struct ib_uverbs_cmd_hdr head;
        struct ib_uverbs_modify_qp command;
    } __attribute__((packed)) request;
    memset(&request, 0, sizeof request);
    request.head.command = IB_USER_VERBS_CMD_MODIFY_QP;
    request.head.in_words = sizeof request / 4;
    request.command.qp_handle = number;
    request.command.attr_mask = IBV_QP_STATE;
    request.command.qp_state = IBV_QPS_ERR;
    return write(device, &request, sizeof request) == sizeof request;
}

static int deregister(int device, unsigned number)
{
    struct {
        struct ib_uverbs_cmd_hdr head;
        struct ib_uverbs_dereg_mr command;
    } __attribute__((packed)) request;
    memset(&request, 0, sizeof request);
    request.head.command = IB_USER_VERBS_CMD_DEREG_MR;
    request.head.in_words = sizeof request / 4;
    request.command.mr_handle = number;
    return write(device, &request, sizeof request) == sizeof request;
}

static int break_all(int (*one)(int, unsigned))
{
    int broken = 0;
    DIR *descriptors = opendir("/proc/self/fd");
    for (struct dirent *entry; descriptors != NULL && (entry = readdir(descriptors)) != NULL;) {
        char path[300], target[300];
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t len = readlink(path, target, sizeof target - 1);
        if (len <= 0)
            continue;
        target[len] = '\0';
        if (strstr(target, "/uverbs") == NULL)
            continue;
        for (unsigned number = 0; number < NUMBERS; number++)
            if (one(atoi(entry->d_name), number) && broken++ == 0)
                /* At once: the process may end by what this does before the rest is done. */
                fprintf(stderr, "broke 1 or more\n");
    }
    if (descriptors != NULL)
        closedir(descriptors);
    return broken;
}

static void ours(sigset_t *both)
{
    sigemptyset(both);
    sigaddset(both, SIGUSR1);
    sigaddset(both, SIGUSR2);
}

/* The signals are blocked in every thread but this one. */
static void *breaker(void *unused)
{
    sigset_t both;
    ours(&both);
    for (int got; sigwait(&both, &got) == 0;) {
        if (got == SIGUSR1)
            fprintf(stderr, "broke %d queue pairs\n", break_all(fail_queue_pair));
        else
            fprintf(stderr, "broke %d registrations\n", break_all(deregister));
    }
    return unused;
}

__attribute__((constructor)) static void begin(void)
{
    sigset_t both;
    ours(&both);
    pthread_t thread;
    if (pthread_sigmask(SIG_BLOCK, &both, NULL) != 0 || pthread_create(&thread, NULL, breaker, NULL) != 0)
        abort();
}
