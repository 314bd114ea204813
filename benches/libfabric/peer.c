/* libfabric's own figures for the rows of `peers --only tcp`: remote writes and reads of a reliable endpoint of its
 * provider tcp between two processes, a line "ROW NANOSECONDS" for each.
 *
 *   peer serve PORT     waits for the other process, and serves it until it is done
 *   peer HOST PORT      measures
 *
 * A write is complete when its data are in the target's memory (FI_DELIVERY_COMPLETE), which is what a quiet promises.
 * Loops and batches are those of benches/oshmem/timing.c.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 512, BATCHES = 15, WINDOW = 64, LARGEST = 1 << 20, PAGE = 4096 };
static const double MIN_BATCH_NS = 1e6;
static const size_t SIZES[] = {1 << 10, 16 << 10, 128 << 10, LARGEST};

/* Memory that the other process accesses, and the sources of writes. */
struct shared {
    uint64_t words[WORDS];
    volatile uint64_t ping[PAGE / 8], pong[PAGE / 8];
    unsigned char block[LARGEST];
};
static struct {
    _Alignas(PAGE) struct shared shared;
    _Alignas(PAGE) uint64_t values[WINDOW];
    _Alignas(PAGE) unsigned char local[LARGEST];
} memory;

static struct fid_cq *cq;
static struct fid_ep *endpoint;
static fi_addr_t other;
static void *local_descriptor;
static uint64_t remote_base, remote_key;
static int control;
static long outstanding;
static size_t size;
static uint64_t trips;
/* One for each operation in flight: the provider keeps its state there. */
static struct fi_context2 contexts[WINDOW];

static void fail(const char *what, long error) {
    fprintf(stderr, "peer: %s: %s\n", what, fi_strerror((int)-error));
    exit(1);
}
static void check(const char *what, long result) {
    if (result < 0) fail(what, result);
}
static void refuse(const char *what) {
    perror(what);
    exit(1);
}

static void progress(void) {
    struct fi_cq_entry entries[16];
    ssize_t got = fi_cq_read(cq, entries, 16);
    if (got > 0) {
        outstanding -= got;
    } else if (got == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(cq, &error, 0);
        fail("an operation", -error.err);
    } else if (got < 0 && got != -FI_EAGAIN) {
        fail("fi_cq_read", got);
    }
}
static void quiet(void) {
    while (outstanding) progress();
}
/* Repeats a call until the provider has room for it. */
#define POST(what, call)                                       \
    do {                                                       \
        ssize_t posted;                                        \
        while ((posted = (call)) == -FI_EAGAIN) progress();    \
        check(what, posted);                                   \
    } while (0)
#define REMOTE(member) (remote_base + offsetof(struct shared, member))

static void *context(void) {
    static unsigned next;
    while (outstanding >= WINDOW) progress();
    outstanding++;
    /* Operations complete in order, or all are waited for, before a context is used again. */
    return &contexts[next++ % WINDOW];
}
static void put(const void *from, size_t length, uint64_t to) {
    void *mine = context();
    POST("fi_write", fi_write(endpoint, from, length, local_descriptor, other, to, remote_key, mine));
}
static void get(void *into, size_t length, uint64_t from) {
    void *mine = context();
    POST("fi_read", fi_read(endpoint, into, length, local_descriptor, other, from, remote_key, mine));
}
static void flag(uint64_t value, uint64_t to) {
    POST("fi_inject_write", fi_inject_write(endpoint, &value, sizeof value, other, to, remote_key));
}
static void await(volatile uint64_t *word, uint64_t value) {
    while (*word != value) progress();
}

static void put8(long n) {
    for (long i = 0; i < n; i++) put(&memory.values[i % WINDOW], 8, REMOTE(words[i % WORDS]));
    quiet();
}
static void put_nbi8_window(long n) {
    for (long i = 0; i < n; i++) {
        for (long w = 0; w < WINDOW; w++) put(&memory.values[w], 8, REMOTE(words[w]));
        quiet();
    }
}
static void get8(long n) {
    for (long i = 0; i < n; i++) {
        get(&memory.values[0], 8, REMOTE(words[i % WORDS]));
        quiet();
    }
}
static void put_quiet(long n) {
    for (long i = 0; i < n; i++) {
        put(&memory.values[0], 8, REMOTE(words[i % WORDS]));
        quiet();
    }
}
static void put_block(long n) {
    for (long i = 0; i < n; i++) put(memory.local, size, REMOTE(block));
    quiet();
}
static void get_block(long n) {
    for (long i = 0; i < n; i++) {
        get(memory.local, size, REMOTE(block));
        quiet();
    }
}
/* The block, which a quiet places, then the flag. */
static void tell(uint64_t value, uint64_t to) {
    if (size) {
        put(memory.local, size, REMOTE(block));
        quiet();
    }
    flag(value, to);
}
static void ping_pong(long n) {
    for (long i = 0; i < n; i++) {
        tell(++trips, REMOTE(ping));
        await(memory.shared.pong, trips);
    }
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static double time_of(void (*loop)(long), long n) {
    double t = now_ns();
    loop(n);
    return now_ns() - t;
}
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static void measure(const char *row, void (*loop)(long), double each) {
    double ns[BATCHES];
    long n = 1;
    while (time_of(loop, n) < MIN_BATCH_NS) n *= 2;
    for (int b = 0; b < BATCHES; b++) ns[b] = time_of(loop, n) / ((double)n * each);
    qsort(ns, BATCHES, sizeof *ns, by_value);
    printf("%s %.4f\n", row, ns[BATCHES / 2]);
    fflush(stdout);
}

static void measure_all(void) {
    char row[32];
    measure("put8", put8, 1);
    measure("put_nbi8_window", put_nbi8_window, WINDOW);
    measure("get8", get8, 1);
    measure("put_quiet", put_quiet, 1);
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        size = SIZES[i];
        snprintf(row, sizeof row, "put_%zu", size);
        measure(row, put_block, 1);
        snprintf(row, sizeof row, "get_%zu", size);
        measure(row, get_block, 1);
    }
    size = 0;
    measure("ping_pong", ping_pong, 2);
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        size = SIZES[i];
        /* The size of the answers, from now on. */
        flag(size, REMOTE(ping[64]));
        snprintf(row, sizeof row, "put_latency_%zu", size);
        measure(row, ping_pong, 2);
    }
    flag(1, REMOTE(ping[128]));
}
static void serve(void) {
    volatile uint64_t *ping = memory.shared.ping;
    while (!ping[128]) {
        progress();
        if (*ping != trips) {
            size = ping[64];
            tell(trips = *ping, REMOTE(pong));
        }
    }
    quiet();
}

static int listening(const char *port) {
    int one = 1, s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
    if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(s, (struct sockaddr *)&any, sizeof any) || listen(s, 1))
        refuse(port);
    int accepted = accept(s, NULL, NULL);
    if (accepted < 0) refuse("accept");
    return accepted;
}
static int connected(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int s, tries;
    if (getaddrinfo(host, port, &hints, &found)) {
        fprintf(stderr, "peer: no host %s\n", host);
        exit(1);
    }
    for (tries = 0; tries < 400; tries++) {
        s = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (!connect(s, found->ai_addr, found->ai_addrlen)) return s;
        close(s);
        usleep(50000);
    }
    refuse(host);
    return -1;
}
static void exchange(const void *mine, void *theirs, size_t length) {
    if (send(control, mine, length, MSG_NOSIGNAL) != (ssize_t)length ||
        recv(control, theirs, length, MSG_WAITALL) != (ssize_t)length)
        refuse("exchange");
}

/* The address of this host on the connection, as text. */
static void own_address(char *text, size_t length) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(control, (struct sockaddr *)&address, &size)) refuse("getsockname");
    if (getnameinfo((struct sockaddr *)&address, size, text, (socklen_t)length, NULL, 0, NI_NUMERICHOST))
        refuse("getnameinfo");
    /* The socket serves both families. */
    if (!strncmp(text, "::ffff:", 7)) memmove(text, text + 7, strlen(text + 7) + 1);
}

static void open_endpoint(void) {
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_mr *mr;
    char address[INET6_ADDRSTRLEN];
    own_address(address, sizeof address);
    hints->fabric_attr->prov_name = strdup("tcp");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 9), address, "0", FI_SOURCE, hints, &info));
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .size = 4 * WINDOW};
    check("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
    check("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &endpoint, NULL));
    check("fi_ep_bind", fi_ep_bind(endpoint, &av->fid, 0));
    check("fi_ep_bind", fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV));
    check("fi_enable", fi_enable(endpoint));
    check("fi_mr_reg", fi_mr_reg(domain, &memory, sizeof memory, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                                 7, 0, &mr, NULL));
    local_descriptor = fi_mr_desc(mr);

    struct {
        uint64_t base, key;
        size_t length;
        char name[256];
    } mine = {.length = sizeof mine.name}, theirs;
    mine.base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)&memory.shared
                                                             : offsetof(__typeof__(memory), shared);
    mine.key = fi_mr_key(mr);
    check("fi_getname", fi_getname(&endpoint->fid, mine.name, &mine.length));
    exchange(&mine, &theirs, sizeof mine);
    remote_base = theirs.base;
    remote_key = theirs.key;
    if (fi_av_insert(av, theirs.name, 1, &other, 0, NULL) != 1) fail("fi_av_insert", -FI_EINVAL);
    fprintf(stderr, "peer: libfabric %u.%u, %s\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()),
            info->fabric_attr->prov_name);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: peer serve PORT | peer HOST PORT\n");
        return 2;
    }
    int serves = !strcmp(argv[1], "serve");
    control = serves ? listening(argv[2]) : connected(argv[1], argv[2]);
    open_endpoint();
    if (serves) serve();
    else measure_all();
    /* Neither leaves while the other still needs its progress. */
    char word = 1, theirs;
    send(control, &word, 1, MSG_NOSIGNAL);
    while (recv(control, &theirs, 1, MSG_DONTWAIT) != 1) progress();
    return 0;
}
