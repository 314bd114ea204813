// The counterpart of benches/src/bin/gpu_peer.rs over NVSHMEM: the same rows, the same loops, one line
// "ROW NANOSECONDS" for each. `gpu_peers` runs both by turns and compares them.
//
//   nvshmem-peer LARGEST_BYTES BATCH_MICROSECONDS GPUS
//
// It runs two PEs, this process and a fork of it, on one GPU (GPUS = 1) or on two. NVSHMEM without MPS lets
// two PEs of one GPU do one-sided operations and the barrier of all, and nothing else: so are the rows.
// While PE 0 measures, PE 1 waits in read(), and has nothing on the GPU.
#include <cuda_runtime.h>
#include <errno.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

// benches/src/gpu.rs has the same numbers.
constexpr int BATCHES = 7;
constexpr long BARRIERS = 20;
constexpr long CALLS = 64;
constexpr int NO_GPU = 3;
constexpr int PATTERN = 0x5a;

static int me;
static int other;  // the socket to the other PE
static double batch_ns;
static cudaStream_t stream;
static char* from;           // symmetric, the largest size
static char* to;             // likewise
static uint64_t* signal_of;  // symmetric
static size_t size;          // of the operations of the row

[[noreturn]] static void fail(const char* what, const char* why) {
    fprintf(stderr, "nvshmem-peer: PE %d: %s: %s\n", me, what, why);
    exit(1);
}

#define CUDA(call)                                                             \
    do {                                                                       \
        cudaError_t error_ = (call);                                           \
        if (error_ != cudaSuccess) fail(#call, cudaGetErrorString(error_));     \
    } while (0)

static double now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

// --- Between the two processes, on the host alone.

static void tell(const void* bytes, size_t count) {
    if (write(other, bytes, count) != (ssize_t)count) fail("telling the other PE", strerror(errno));
}

static void hear(void* bytes, size_t count) {
    for (char* at = (char*)bytes; count > 0;) {
        ssize_t got = read(other, at, count);
        if (got <= 0) fail("hearing from the other PE", got == 0 ? "it has ended" : strerror(errno));
        at += got;
        count -= got;
    }
}

// Waits until both PEs have arrived here.
static void meet() {
    char byte = 0;
    tell(&byte, 1);
    hear(&byte, 1);
}

// --- The loops.

static void copies(long n) {
    for (long i = 0; i < n; i++)
        CUDA(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void puts(long n) {
    for (long i = 0; i < n; i++) nvshmemx_putmem_on_stream(to, from, size, 1, stream);
    nvshmemx_quiet_on_stream(stream);
    CUDA(cudaStreamSynchronize(stream));
}

static void puts_in_turn(long n) {
    for (long i = 0; i < n; i++) puts(1);
}

static void copies_in_turn(long n) {
    for (long i = 0; i < n; i++) copies(1);
}

static void put_signals(long n) {
    for (long i = 0; i < n; i++)
        nvshmemx_putmem_signal_on_stream(to, from, size, signal_of, 1, NVSHMEM_SIGNAL_ADD, 1, stream);
    CUDA(cudaStreamSynchronize(stream));
}

static void put_signals_in_turn(long n) {
    for (long i = 0; i < n; i++) put_signals(1);
}

static void barriers(long n) {
    for (long i = 0; i < n; i++) nvshmemx_barrier_all_on_stream(stream);
    CUDA(cudaStreamSynchronize(stream));
}

// --- Measuring.

static void report(const std::string& row, std::vector<double> ns) {
    std::sort(ns.begin(), ns.end());
    printf("%s %.2f\n", row.c_str(), ns[ns.size() / 2]);
    fflush(stdout);
}

// Times on PE 0 alone, after a warm-up that also finds how many repetitions make a batch.
static void alone(const std::string& row, void (*loop)(long)) {
    long n = 1;
    loop(n);
    for (;;) {
        double start = now_ns();
        loop(n);
        if (now_ns() - start >= batch_ns) break;
        n *= 2;
    }
    std::vector<double> ns;
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now_ns();
        loop(n);
        ns.push_back((now_ns() - start) / n);
    }
    report(row, ns);
}

// The host's time for the calls, few enough to fit into the stream's queue.
template <class Call>
static void calls(const std::string& row, Call call) {
    std::vector<double> ns;
    for (int batch = 0; batch < 4 * BATCHES; batch++) {
        double start = now_ns();
        for (long i = 0; i < CALLS; i++) call();
        ns.push_back((now_ns() - start) / CALLS);
        CUDA(cudaStreamSynchronize(stream));
    }
    report(row, ns);
}

// Times on both PEs.
static void together(const std::string& row, void (*loop)(long)) {
    std::vector<double> ns;
    loop(2);
    for (int batch = 0; batch < BATCHES; batch++) {
        meet();
        double start = now_ns();
        loop(BARRIERS);
        ns.push_back((now_ns() - start) / BARRIERS);
    }
    if (me == 0) report(row, ns);
}

static void measure(size_t largest) {
    for (size = 8; size <= largest; size *= 8) {
        std::string bytes = std::to_string(size);
        alone("copy_" + bytes, copies);
        alone("put_" + bytes, puts);
        alone("put_signal_" + bytes, put_signals);
        alone("copy_latency_" + bytes, copies_in_turn);
        alone("put_latency_" + bytes, puts_in_turn);
        alone("put_signal_latency_" + bytes, put_signals_in_turn);
    }
    size = 8;
    calls("copy_call", [] { CUDA(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream)); });
    calls("put_call", [] { nvshmemx_putmem_on_stream(to, from, size, 1, stream); });
    calls("put_signal_call", [] {
        nvshmemx_putmem_signal_on_stream(to, from, size, signal_of, 1, NVSHMEM_SIGNAL_ADD, 1, stream);
    });
}

// On PE 1: the data has arrived, and there are no more signals than PE 0 has sent.
static void check(size_t largest) {
    std::vector<char> seen(largest);
    CUDA(cudaMemcpy(seen.data(), to, largest, cudaMemcpyDeviceToHost));
    for (char byte : seen)
        if (byte != PATTERN) fail("checking what was put", "it is not all there");
    uint64_t signals;
    CUDA(cudaMemcpy(&signals, signal_of, sizeof signals, cudaMemcpyDeviceToHost));
    if (signals == 0) fail("checking what was put", "no signal came");
}

// Sets a variable, unless the user has set it.
static void setting(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

int main(int count, char** arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: nvshmem-peer LARGEST_BYTES BATCH_MICROSECONDS GPUS\n");
        return 2;
    }
    const size_t largest = strtoull(arguments[1], nullptr, 10);
    batch_ns = strtod(arguments[2], nullptr) * 1e3;
    const int gpus = atoi(arguments[3]);
    if (largest < 8 || gpus < 1) {
        fprintf(stderr, "nvshmem-peer: at least 8 bytes and 1 GPU\n");
        return 2;
    }
    // Two PEs of one GPU can't have multicast memory; nothing here needs the rest.
    setting("NVSHMEM_DISABLE_NVLS", "1");
    setting("NVSHMEM_DISABLE_NCCL", "1");
    setting("NVSHMEM_REMOTE_TRANSPORT", "none");
    setting("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo");
    setting("NVSHMEM_SYMMETRIC_SIZE", std::to_string(2 * largest + (256ull << 20)));

    // Before any CUDA call: CUDA does not survive a fork.
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("socketpair", strerror(errno));
    const pid_t child = fork();
    if (child < 0) fail("fork", strerror(errno));
    me = child == 0;
    other = ends[me];
    close(ends[!me]);

    int devices = 0;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices < gpus) {
        if (me == 0)
            fprintf(stderr, "nvshmem-peer: %d GPUs wanted, %d here: %s\n", gpus, devices,
                    cudaGetErrorString(found));
        return NO_GPU;
    }
    CUDA(cudaSetDevice(me % gpus));
    CUDA(cudaFree(nullptr));

    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    if (me == 0) {
        if (nvshmemx_get_uniqueid(&id) != 0) fail("nvshmemx_get_uniqueid", "refused");
        tell(&id, sizeof id);
    } else {
        hear(&id, sizeof id);
    }
    if (nvshmemx_set_attr_uniqueid_args(me, 2, &id, &attributes) != 0 ||
        nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0)
        fail("nvshmemx_init_attr", "refused; NVSHMEM_DEBUG=INFO says why");
    if (nvshmem_my_pe() != me || nvshmem_n_pes() != 2) fail("joining", "not PE 0 and 1 of 2");

    if (me == 0) {
        cudaDeviceProp properties;
        CUDA(cudaGetDeviceProperties(&properties, 0));
        char name[NVSHMEM_MAX_NAME_LEN];
        nvshmem_info_get_name(name);
        const int status = nvshmemx_init_status();
        printf("# %s on %s%s\n", name, properties.name,
               status == NVSHMEM_STATUS_LIMITED_MPG ? ", limited: two PEs of one GPU without MPS" : "");
    }
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    from = (char*)nvshmem_malloc(largest);
    to = (char*)nvshmem_malloc(largest);
    signal_of = (uint64_t*)nvshmem_calloc(1, sizeof *signal_of);
    if (!from || !to || !signal_of) fail("nvshmem_malloc", "no memory");
    CUDA(cudaMemset(from, PATTERN, largest));
    CUDA(cudaDeviceSynchronize());
    meet();
    if (me == 0) {
        // The rows end with the largest size that is 8 times a power of 8; this put covers all of it.
        size = largest;
        puts(1);
        measure(largest);
    }
    meet();
    if (me == 1) check(largest);
    meet();
    together("barrier", barriers);
    meet();
    nvshmem_free(signal_of);
    nvshmem_free(to);
    nvshmem_free(from);
    nvshmem_finalize();
    if (me == 1) return 0;
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) fail("PE 1", "it failed");
    return 0;
}
