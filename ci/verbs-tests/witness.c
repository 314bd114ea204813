/* witness ADDRESS PORT DEVICE: an independent witness of oxshmem's verbs transport. It is a plain verbs
 * program: of the other side (src/witness.rs) it knows queue pair numbers, GIDs, an address and a
 * key, which come in lines over TCP. It reads by RDMA what oxshmem wrote, writes by RDMA what oxshmem reads
 * in its memory, and both add to one word; then the reverse.
 * Exit status: 0 all was as it should be, 1 not, 2 it could not run. */
#include <infiniband/verbs.h>
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The same numbers as in src/witness.rs. */
enum {
    LEN = 1 << 20,
    WRITTEN_BY_OXSHMEM = 0,
    WRITTEN_BY_WITNESS = 300000,
    BYTES = 200001,
    WORD = 600000,
    SIGNAL = 600008,
    SHORT = 700001,
    SHORT_BYTES = 13,
    PORT_NUMBER = 1,
    SECONDS = 60,
};

static struct ibv_context *context;
static struct ibv_pd *domain;
static struct ibv_cq *completions;
static struct ibv_mr *shared, *private_region;
static union ibv_gid gid;
static int gid_index;
static _Alignas(4096) unsigned char memory[LEN], scratch[LEN];
static FILE *from, *to;

static void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        fprintf(stderr, "witness: %s failed\n", what);
        exit(2);
    }
}

static unsigned char pattern(unsigned seed, uint32_t i)
{
    return (unsigned char)((i * UINT32_C(2654435761)) >> 24) ^ seed;
}

static void fill(unsigned char *at, unsigned seed, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        at[i] = pattern(seed, i);
}

static void check(const volatile unsigned char *at, unsigned seed, uint32_t len, const char *what)
{
    for (uint32_t i = 0; i < len; i++)
        if (at[i] != pattern(seed, i)) {
            fprintf(stderr, "witness: %s: byte %" PRIu32 " is %d, not %d\n", what, i, at[i], pattern(seed, i));
            exit(1);
        }
}

static void check_word(uint32_t at, uint64_t wanted, const char *what)
{
    uint64_t found = *(volatile uint64_t *)(memory + at);
    if (found != wanted) {
        fprintf(stderr, "witness: %s is %" PRIu64 ", not %" PRIu64 "\n", what, found, wanted);
        exit(1);
    }
}

static void tell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(to, format, arguments);
    va_end(arguments);
    require(fflush(to) == 0, "telling oxshmem");
}

static const char *hex(const union ibv_gid *of)
{
    static char text[33];
    for (int i = 0; i < 16; i++)
        sprintf(text + 2 * i, "%02x", of->raw[i]);
    return text;
}

static union ibv_gid parse_gid(const char *text)
{
    union ibv_gid parsed;
    for (int i = 0; i < 16; i++)
        require(sscanf(text + 2 * i, "%2hhx", &parsed.raw[i]) == 1, "reading a GID");
    return parsed;
}

static struct ibv_qp *make_queue_pair(void)
{
    struct ibv_qp_init_attr wanted = {
        .send_cq = completions, .recv_cq = completions, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_qp *made = ibv_create_qp(domain, &wanted);
    require(made != NULL, "making a queue pair");
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = PORT_NUMBER,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    require(ibv_modify_qp(made, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
            "INIT");
    return made;
}

static void connect_queue_pair(struct ibv_qp *pair, uint32_t number, uint32_t receive, uint32_t send,
                               union ibv_gid peer)
{
    struct ibv_qp_attr ready = {
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = number, .rq_psn = receive,
        .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = PORT_NUMBER,
                    .grh = {.dgid = peer, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
    };
    require(ibv_modify_qp(pair, &ready, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                          IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
    struct ibv_qp_attr sending = {.qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 6, .rnr_retry = 6,
                                  .sq_psn = send, .max_rd_atomic = 1};
    require(ibv_modify_qp(pair, &sending, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

static void complete(struct ibv_qp *pair, struct ibv_send_wr *request, const char *what)
{
    struct ibv_send_wr *refused;
    request->send_flags = IBV_SEND_SIGNALED;
    require(ibv_post_send(pair, request, &refused) == 0, what);
    struct ibv_wc done;
    int got;
    time_t end = time(NULL) + SECONDS;
    while ((got = ibv_poll_cq(completions, 1, &done)) == 0)
        require(time(NULL) < end, what);
    require(got == 1, what);
    if (done.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "witness: %s: %s\n", what, ibv_wc_status_str(done.status));
        exit(1);
    }
}

static void transfer(struct ibv_qp *pair, enum ibv_wr_opcode opcode, uint64_t address, uint32_t key,
                     uint32_t len, const char *what)
{
    struct ibv_sge near = {(uintptr_t)scratch, len, private_region->lkey};
    struct ibv_send_wr request = {.sg_list = &near, .num_sge = 1, .opcode = opcode};
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = key;
    complete(pair, &request, what);
}

static uint64_t fetch_add(struct ibv_qp *pair, uint64_t address, uint32_t key, uint64_t value)
{
    struct ibv_sge near = {(uintptr_t)scratch, 8, private_region->lkey};
    struct ibv_send_wr request = {.sg_list = &near, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
    request.wr.atomic.remote_addr = address;
    request.wr.atomic.rkey = key;
    request.wr.atomic.compare_add = value;
    complete(pair, &request, "a fetch-add");
    uint64_t old;
    memcpy(&old, scratch, sizeof old);
    return old;
}

/* The port's identifier that is an IPv4 address: ::ffff:a.b.c.d. Its place in the table changes with the addresses. */
static void find_ipv4(void)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct ibv_port_attr port;
    require(ibv_query_port(context, PORT_NUMBER, &port) == 0, "asking for the port");
    for (gid_index = 0; gid_index < port.gid_tbl_len; gid_index++)
        if (ibv_query_gid(context, PORT_NUMBER, gid_index, &gid) == 0 && memcmp(gid.raw, mapped, sizeof mapped) == 0)
            return;
    require(0, "finding an IPv4 address");
}

static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    require(list != NULL, "listing the devices");
    for (int i = 0; list[i] != NULL; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    require(context != NULL, name);
    domain = ibv_alloc_pd(context);
    completions = ibv_create_cq(context, 64, NULL, NULL, 0);
    require(domain != NULL && completions != NULL, "making a domain and a queue");
    shared = ibv_reg_mr(domain, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    private_region = ibv_reg_mr(domain, scratch, sizeof scratch, IBV_ACCESS_LOCAL_WRITE);
    require(shared != NULL && private_region != NULL, "registering memory");
    find_ipv4();
}

static void dial(const char *address, const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    require(inet_pton(AF_INET, address, &at.sin_addr) == 1, "reading the address");
    int connected = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval limit = {.tv_sec = SECONDS};
    require(setsockopt(connected, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0, "setting a deadline");
    require(connect(connected, (struct sockaddr *)&at, sizeof at) == 0, "connecting to oxshmem");
    from = fdopen(connected, "r");
    to = fdopen(dup(connected), "w");
    require(from != NULL && to != NULL, "opening the connection");
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: witness ADDRESS PORT DEVICE\n");
        return 2;
    }
    open_device(argv[3]);
    dial(argv[1], argv[2]);

    /* By address and key: what oxshmem wrote, and what it is to see. */
    const uint32_t first = 4711, second = 815;
    struct ibv_qp *active = make_queue_pair();
    tell("witness %" PRIu32 " %" PRIu32 " %s %" PRIuPTR " %" PRIu32 "\n", active->qp_num, first, hex(&gid),
         (uintptr_t)memory, shared->rkey);
    uint32_t number, sequence, key;
    uint64_t address;
    char peer[33];
    require(fscanf(from, "oxshmem %" SCNu32 " %" SCNu32 " %32s %" SCNu64 " %" SCNu32, &number, &sequence, peer,
                   &address, &key) == 5, "hearing of oxshmem's memory");
    connect_queue_pair(active, number, sequence, first, parse_gid(peer));
    transfer(active, IBV_WR_RDMA_READ, address + WRITTEN_BY_OXSHMEM, key, BYTES, "a read");
    check(scratch, 1, BYTES, "what oxshmem wrote, read by RDMA");
    fill(scratch, 2, BYTES);
    transfer(active, IBV_WR_RDMA_WRITE, address + WRITTEN_BY_WITNESS, key, BYTES, "a write");
    uint64_t old = fetch_add(active, address + WORD, key, 17);
    if (old != 1000) {
        fprintf(stderr, "witness: oxshmem's word was %" PRIu64 ", not 1000\n", old);
        return 1;
    }

    /* The reverse: oxshmem reads and writes this memory, by address and key. */
    fill(memory + WRITTEN_BY_WITNESS, 3, BYTES);
    *(volatile uint64_t *)(memory + WORD) = 50;
    tell("read and written\n");
    require(fscanf(from, " lane %" SCNu32 " %" SCNu32 " %32s", &number, &sequence, peer) == 3, "hearing of a lane");
    struct ibv_qp *passive = make_queue_pair();
    connect_queue_pair(passive, number, sequence, second, parse_gid(peer));
    tell("passive %" PRIu32 " %" PRIu32 "\n", passive->qp_num, second);
    char word[16];
    require(fscanf(from, "%15s", word) == 1 && strcmp(word, "written") == 0, "hearing that oxshmem has written");
    check(memory + WRITTEN_BY_OXSHMEM, 4, BYTES, "what oxshmem wrote here");
    check(memory + SHORT, 5, SHORT_BYTES, "the few bytes that oxshmem wrote here");
    check(memory + WRITTEN_BY_WITNESS, 3, BYTES, "what oxshmem only read");
    check_word(WORD, 57, "the word that oxshmem added to");
    check_word(SIGNAL, 77, "the signal that oxshmem set");
    if (memory[SHORT - 1] != 0 || memory[SHORT + SHORT_BYTES] != 0) {
        fprintf(stderr, "witness: oxshmem wrote beside its few bytes\n");
        return 1;
    }
    tell("seen\n");
    return 0;
}
