/* whole-words SECONDS CHANGES: does an aligned word, written by RDMA while a processor reads it, ever show
 * a value that was never written? Device rxe0 writes words of all zeros and of all ones by turns
 * over the wire into memory of rxe1, and a second thread reads one of those words all the while.
 * For each size of write it goes on until the reader saw the word change CHANGES times, or saw a
 * torn value; SECONDS is the limit, and a size that reaches it tells too little.
 * Exit status: 0 none torn, 1 some, 2 it could not run, 3 too few changes seen to tell.
 * Run outside the nodes of a machine of two: both devices belong to this one process. */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 4096, GID_INDEX = 1, PORT = 1 };

struct side {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_cq *completions;
    struct ibv_qp *queue_pair;
    struct ibv_mr *region;
    union ibv_gid gid;
    _Alignas(BLOCK) uint64_t words[2 * BLOCK / sizeof(uint64_t)];
};
static struct side writer, target;

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "whole-words: %s failed\n", what);
        exit(2);
    }
}

static void open_side(struct side *side, const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    require(list != NULL, "listing the devices");
    for (int i = 0; list[i] != NULL; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            side->context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    require(side->context != NULL, name);
    side->domain = ibv_alloc_pd(side->context);
    side->completions = ibv_create_cq(side->context, 16, NULL, NULL, 0);
    require(side->domain != NULL && side->completions != NULL, "making a domain and a queue");
    side->region = ibv_reg_mr(side->domain, side->words, sizeof side->words,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    require(side->region != NULL, "registering memory");
    struct ibv_qp_init_attr wanted = {
        .send_cq = side->completions, .recv_cq = side->completions, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    side->queue_pair = ibv_create_qp(side->domain, &wanted);
    require(side->queue_pair != NULL, "making a queue pair");
    require(ibv_query_gid(side->context, PORT, GID_INDEX, &side->gid) == 0, "reading a GID");
}

static void connect_side(struct side *side, const struct side *peer)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    require(ibv_modify_qp(side->queue_pair, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                          IBV_QP_ACCESS_FLAGS) == 0, "INIT");
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->queue_pair->qp_num,
        .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = PORT,
                    .grh = {.dgid = peer->gid, .sgid_index = GID_INDEX, .hop_limit = 8}},
    };
    require(ibv_modify_qp(side->queue_pair, &receive, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                          IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                          IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
    struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6,
                               .rnr_retry = 6, .max_rd_atomic = 1};
    require(ibv_modify_qp(side->queue_pair, &send, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

static void write_and_complete(uint32_t offset, uint32_t length)
{
    struct ibv_sge from = {(uintptr_t)writer.words + offset, length, writer.region->lkey};
    struct ibv_send_wr request = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                                  .send_flags = IBV_SEND_SIGNALED}, *refused;
    request.wr.rdma.remote_addr = (uintptr_t)target.words;
    request.wr.rdma.rkey = target.region->rkey;
    require(ibv_post_send(writer.queue_pair, &request, &refused) == 0, "posting a write");
    struct ibv_wc done;
    int got;
    while ((got = ibv_poll_cq(writer.completions, 1, &done)) == 0)
        ;
    require(got == 1 && done.status == IBV_WC_SUCCESS, "a write");
}

static atomic_int stop;
static _Atomic(volatile uint64_t *) watched;
static atomic_ulong changes, torn;

/* rxe works on the processor that posts; the reader needs one for itself. */
static void stay_on(int processor)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    require(sched_setaffinity(0, sizeof only, &only) == 0, "choosing a processor (it takes two)");
}

static void *watch(void *unused)
{
    stay_on(1);
    volatile uint64_t *word = watched;
    uint64_t last = *word;
    while (!stop) {
        uint64_t now = *word;
        if (now != last)
            changes++;
        if (now != 0 && now != UINT64_MAX)
            torn++;
        last = now;
    }
    return unused;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    static const uint32_t lengths[] = {8, 16, 64, 1000, BLOCK};
    double limit = argc == 3 ? atof(argv[1]) : 0;
    unsigned long enough = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (limit <= 0 || enough == 0) {
        fprintf(stderr, "usage: whole-words SECONDS CHANGES\n");
        return 2;
    }
    stay_on(0);
    open_side(&writer, "rxe0");
    open_side(&target, "rxe1");
    connect_side(&writer, &target);
    connect_side(&target, &writer);
    memset((char *)writer.words + BLOCK, 0xff, BLOCK);
    int too_few = 0;
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        watched = target.words + (lengths[i] / 8 - 1) / 2;
        stop = 0;
        changes = 0;
        pthread_t reader;
        require(pthread_create(&reader, NULL, watch, NULL) == 0, "starting a thread");
        unsigned long writes = 0;
        for (double end = seconds() + limit; seconds() < end && changes < enough && torn == 0; writes++)
            write_and_complete(writes % 2 ? 0 : BLOCK, lengths[i]);
        stop = 1;
        pthread_join(reader, NULL);
        printf("%u bytes: %lu writes, %lu changes seen, %lu torn values\n", lengths[i], writes,
               (unsigned long)changes, (unsigned long)torn);
        if (torn > 0)
            return 1;
        too_few |= changes < enough;
    }
    return too_few ? 3 : 0;
}
