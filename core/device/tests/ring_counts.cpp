// Counts the accesses to page-locked host memory of one call each, by way of the ring: the header's accesses to words, compiled for
// the host (host_shim.h), go through functions that count.
#include <cstdio>
#include <cstdlib>

static unsigned long loads, stores, others;
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
        others += is_host(at);                                                                     \
        return builtin(at, (T)value, __ATOMIC_SEQ_CST);                                            \
    }
COUNTED(counted_add, __atomic_fetch_add)
COUNTED(counted_and, __atomic_fetch_and)
COUNTED(counted_or, __atomic_fetch_or)
COUNTED(counted_xor, __atomic_fetch_xor)
COUNTED(counted_swap, __atomic_exchange_n)
template <class T, class V>
static bool counted_compare(T* at, T* compare, V value, bool, int, int) {
    others += is_host(at);
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
static char* peers[2] = {heap, nullptr};

// One call, for which the host has done everything already: slots are free, sources read, requests complete, answers there.
template <class Call>
static void count(const char* name, Call call) {
    const u64 far = head + (1 << 20);
    host.taken = host.sources_read = host.done = far;
    credit = far;
    host.answers[head & (SLOTS - 1)] = Answer{0, head + 1};
    loads = stores = others = 0;
    call();
    printf("%s %lu %lu %lu\n", name, loads, stores, others);
}

int main() {
    host_begin = (char*)&host, host_end = host_begin + sizeof host;
    oxshmem_state.me = 0, oxshmem_state.n = 2;
    oxshmem_state.heap = heap, oxshmem_state.heap_bytes = sizeof heap;
    oxshmem_state.peers = peers, oxshmem_state.ring = &ring_of_test, oxshmem_state.stop = &host.stop;
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
    printf("credit %lu\n", loads);
}
