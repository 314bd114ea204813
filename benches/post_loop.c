// Posts of 8 bytes by a queue pair to itself, and nothing else: `benches/verbs-instructions` compares with it.
//
//     post_loop write|read|fetch-add|write-stream COUNT
//
// write-stream posts without asking for a completion but once in 64, as a stream of puts does. The others await each request.
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_cq *queue;
static struct ibv_qp *pair;
static struct ibv_mr *region;
static uint64_t words[64];

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "post_loop: %s failed\n", what);
        exit(1);
    }
}

static void connect_to_itself(struct ibv_context *context)
{
    struct ibv_port_attr port;
    union ibv_gid gid;
    require(ibv_query_port(context, 1, &port) == 0 && ibv_query_gid(context, 1, 0, &gid) == 0, "asking for the address");
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    require(ibv_modify_qp(pair, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
    struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = pair->qp_num,
                                .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .ah_attr = {.dlid = port.lid, .port_num = 1}};
    ready.ah_attr.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    ready.ah_attr.grh.dgid = gid;
    ready.ah_attr.grh.hop_limit = 64;
    require(ibv_modify_qp(pair, &ready, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
    struct ibv_qp_attr sending = {.qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 1};
    require(ibv_modify_qp(pair, &sending, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

static void posts(enum ibv_wr_opcode opcode, unsigned flags, uint64_t every, uint64_t count)
{
    struct ibv_sge near = {(uintptr_t)&words[32], 8, region->lkey};
    struct ibv_send_wr request = {.sg_list = &near, .num_sge = 1, .opcode = opcode};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request.wr.atomic.remote_addr = (uintptr_t)words;
        request.wr.atomic.rkey = region->rkey;
        request.wr.atomic.compare_add = 1;
    } else {
        request.wr.rdma.remote_addr = (uintptr_t)words;
        request.wr.rdma.rkey = region->rkey;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct ibv_send_wr *refused;
        int asks = i % every == every - 1;
        request.wr_id = i;
        request.send_flags = flags | (asks ? IBV_SEND_SIGNALED : 0);
        require(ibv_post_send(pair, &request, &refused) == 0, "a post");
        if (asks) {
            struct ibv_wc done;
            int got;
            while ((got = ibv_poll_cq(queue, 1, &done)) == 0)
                ;
            require(got == 1 && done.status == IBV_WC_SUCCESS, "a request");
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: post_loop write|read|fetch-add|write-stream COUNT\n");
        return 2;
    }
    struct ibv_device **list = ibv_get_device_list(NULL);
    require(list != NULL && list[0] != NULL, "finding a device");
    struct ibv_context *context = ibv_open_device(list[0]);
    require(context != NULL, "opening it");
    struct ibv_pd *domain = ibv_alloc_pd(context);
    queue = ibv_create_cq(context, 128, NULL, NULL, 0);
    require(domain != NULL && queue != NULL, "making a queue");
    region = ibv_reg_mr(domain, words, sizeof words, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    struct ibv_qp_init_attr wanted = {.send_cq = queue, .recv_cq = queue, .qp_type = IBV_QPT_RC,
                                      .cap = {.max_send_wr = 128, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
                                              .max_inline_data = 8}};
    pair = ibv_create_qp(domain, &wanted);
    require(region != NULL && pair != NULL, "making a queue pair");
    connect_to_itself(context);

    uint64_t count = strtoull(argv[2], NULL, 10);
    if (strcmp(argv[1], "write-stream") == 0)
        posts(IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 64, count);
    else if (strcmp(argv[1], "write") == 0)
        posts(IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 1, count);
    else if (strcmp(argv[1], "read") == 0)
        posts(IBV_WR_RDMA_READ, 0, 1, count);
    else if (strcmp(argv[1], "fetch-add") == 0)
        posts(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, count);
    else
        require(0, argv[1]);
    return 0;
}
