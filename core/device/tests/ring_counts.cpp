// Counts the accesses to page-locked host memory of one call each, by way of the ring: the header's accesses to words, compiled for
// the host (host_shim.h), go through functions that count. Then those of a warp, whose lanes are threads here that make a call at once.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>

// Accesses to host memory, and atomics on the GPU's.
static std::atomic<unsigned long> loads, stores, others, on_gpu;
static char *host_begin, *host_end;
static bool is_host(const volatile void* at) { return (char*)at >= host_begin && (char*)at < host_end; }

template <class T>
static T counted_load(const T* at, int) {
    loads += is_host(at);
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
template <class T, class V>
static void counted_store(T* at, V value, int) {
    stores += is_host(at);
    __atomic_store_n(at, (T)value, __ATOMIC_SEQ_CST);
}
#define COUNTED(name, builtin)                                                                     \
    template <class T, class V>                                                                    \
    static T name(T* at, V value, int) {                                                           \
        ++(is_host(at) ? others : on_gpu);                                                        \
        return builtin(at, (T)value, __ATOMIC_SEQ_CST);                                            \
    }
COUNTED(counted_add, __atomic_fetch_add)
COUNTED(counted_and, __atomic_fetch_and)
COUNTED(counted_or, __atomic_fetch_or)
COUNTED(counted_xor, __atomic_fetch_xor)
COUNTED(counted_swap, __atomic_exchange_n)
template <class T, class V>
static bool counted_compare(T* at, T* compare, V value, bool, int, int) {
    ++(is_host(at) ? others : on_gpu);
    return __atomic_compare_exchange_n(at, compare, (T)value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
#define __atomic_load_n counted_load
#define __atomic_store_n counted_store
#define __atomic_fetch_add counted_add
#define __atomic_fetch_and counted_and
#define __atomic_fetch_or counted_or
#define __atomic_fetch_xor counted_xor
#define __atomic_exchange_n counted_swap
#define __atomic_compare_exchange_n counted_compare
#include "oxshmem.cuh"

using namespace oxshmem;

enum { SLOTS = 1024 };
struct Host {
    Slot slots[SLOTS];
    Answer answers[SLOTS];
    u64 taken, sources_read, done;
    u32 stop;
};
static Host host;
static u64 head, credit;
static Ring ring_of_test = {host.slots, host.answers, &head, &host.taken, &host.sources_read, &host.done, &credit, SLOTS - 1};
alignas(16) static char heap[4096];
static i64 distances[3] = {0, UNMAPPED, UNMAPPED};

// The host has done everything already: slots are free, sources read, requests complete, and the answers of the next tickets there.
static void prepare(u64 tickets) {
    const u64 far = head + (1 << 20);
    host.taken = host.sources_read = host.done = far;
    credit = far;
    for (u64 i = 0; i < tickets; ++i) host.answers[(head + i) & (SLOTS - 1)] = Answer{700 + i, head + i + 1};
    loads = stores = others = on_gpu = 0;
}

// One call of a thread.
template <class Call>
static void count(const char* name, Call call) {
    prepare(1);
    call();
    printf("%s %lu %lu %lu\n", name, loads.load(), stores.load(), others.load());
}

// Lanes that run: all of them come to each meeting.
static unsigned lanes_here;
static pthread_barrier_t meeting;
static softcuda_exchange board;
static thread_local softcuda_exchange seen;

static const softcuda_exchange* meet(unsigned, unsigned, unsigned long long value) {
    board.values[softcuda_lane()] = value;
    pthread_barrier_wait(&meeting);
    seen = board;
    seen.lanes = lanes_here;
    pthread_barrier_wait(&meeting);
    return &seen;
}

// One call of each lane of `lanes`, which gets its rank among them. Tells the accesses, the atomics, the tickets and the requests.
template <class Call>
static void count_lanes(const char* name, unsigned lanes, Call call) {
    const unsigned n = __builtin_popcount(lanes);
    prepare(n);
    const u64 first = head;
    lanes_here = lanes;
    pthread_barrier_init(&meeting, nullptr, n);
    std::vector<std::thread> threads;
    for (unsigned lane = 0, rank = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        threads.emplace_back([=] {
            softcuda_thread(0, 0, 0, lane, 0, 0, 1, 1, 1, 32, 1, 1);
            call(rank);
        });
        ++rank;
    }
    for (std::thread& thread : threads) thread.join();
    pthread_barrier_destroy(&meeting);
    u64 requests = 0, ticket = first;
    while (ticket != head) {
        const Slot& slot = host.slots[ticket & (SLOTS - 1)];
        if (slot.words[7] != ticket + 1) break;
        ++requests;
        ticket += 1 + (slot.words[0] >> 16 & 0xff);
    }
    const u64 tickets = head - first;
    printf("%s %lu %lu %lu %lu %llu %llu\n", name, loads.load(), stores.load(), others.load(), on_gpu.load(), tickets,
           ticket == head ? requests : 0);
}

// Ends the program unless a lane's request has its value.
static void expect(bool right, const char* which) {
    if (right) return;
    fprintf(stderr, "%s is wrong\n", which);
    exit(1);
}

static void count_warps() {
    const unsigned whole = 0xffffffff, some = 1u << 1 | 1u << 4 | 1u << 9 | 1u << 30;
    long* words = (long*)heap;
    static long own[32];
    softcuda_warp = meet;
    // Lanes that wait for each other in different calls end the program.
    alarm(120);
    for (unsigned lanes : {whole, some}) {
        const u64 n = __builtin_popcount(lanes), start = head;
        count_lanes("p", lanes, [&](unsigned rank) { p(words + rank, 500 + rank, 1); });
        for (u64 i = 0; i < n; ++i) expect(host.slots[(start + i) & (SLOTS - 1)].words[4] == 500 + i, "the value of a lane's p");
        count_lanes("g", lanes, [&](unsigned rank) { own[rank] = g(words + rank, 1); });
        for (u64 i = 0; i < n; ++i) expect(own[i] == (long)(700 + i), "the value of a lane's g");
        // Words that are no neighbours, or not all of one PE.
        count_lanes("p-apart", lanes, [&](unsigned rank) { p(words + 2 * rank, rank, 1); });
        count_lanes("p-backwards", lanes, [&](unsigned rank) { p(words + 31 - rank, rank, 1); });
        count_lanes("p-two-pes", lanes, [&](unsigned rank) { p(words + rank, rank, 1 + rank % 2); });
        count_lanes("g-apart", lanes, [&](unsigned rank) { own[rank] = g(words + 2 * rank, 1); });
        count_lanes("put_nbi", lanes, [&](unsigned rank) { put_nbi(words + rank, own + rank, 1, 1); });
        count_lanes("signal", lanes, [&](unsigned) { signal(words, 1, SIGNAL_ADD, 1); });
        count_lanes("atomic_add", lanes, [&](unsigned) { atomic_add(words, 1, 1); });
        count_lanes("atomic_fetch_add", lanes, [&](unsigned rank) { own[rank] = atomic_fetch_add(words, 1, 1); });
        for (u64 i = 0; i < n; ++i) expect(own[i] == (long)(700 + i), "the value of a lane's atomic");
    }
}

int main() {
    host_begin = (char*)&host, host_end = host_begin + sizeof host;
    oxshmem_state.me = 0, oxshmem_state.n = 3;
    oxshmem_state.heap = heap, oxshmem_state.heap_bytes = sizeof heap;
    oxshmem_state.distances = distances, oxshmem_state.ring = &ring_of_test, oxshmem_state.stop = &host.stop;
    softcuda_thread(0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1);
    long* word = (long*)heap;
    u64* signal_of_test = (u64*)heap + 1;
    long own[4] = {};

    count("put_nbi", [&] { put_nbi(word, own, 4, 1); });
    count("put", [&] { put(word, own, 4, 1); });
    count("p", [&] { p(word, 1, 1); });
    count("put_signal_nbi", [&] { put_signal_nbi(word, own, 4, signal_of_test, 1, SIGNAL_SET, 1); });
    count("put_signal", [&] { put_signal(word, own, 4, signal_of_test, 1, SIGNAL_SET, 1); });
    count("signal", [&] { signal(signal_of_test, 1, SIGNAL_ADD, 1); });
    count("atomic_add", [&] { atomic_add(word, 1, 1); });
    count("get_nbi", [&] { get_nbi(own, word, 4, 1); });
    count("get", [&] { get(own, word, 4, 1); });
    count("g", [&] { own[0] = g(word, 1); });
    count("atomic_fetch_add", [&] { own[0] = atomic_fetch_add(word, 1, 1); });
    count("atomic_compare_swap", [&] { own[0] = atomic_compare_swap(word, 1, 2, 1); });
    count("fence", [] { fence(); });
    count("quiet", [] { quiet(); });
    count("flush", [] { flush(); });

    // The host reads each request before the next one comes: its counter is asked for when the known credit is used up.
    credit = host.taken = head;
    loads = 0;
    for (int i = 0; i < 8 * SLOTS; ++i) {
        host.taken = head;
        p(word, 1, 1);
    }
    printf("credit %lu\n", loads.load());

    puts("warps");
    count_warps();
}
