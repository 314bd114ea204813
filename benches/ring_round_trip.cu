// The round trip of a kernel's request by the ring, on the software driver, beside a bare ring of the same slots between two threads of this
// process. The request is a quiet of nothing, so that the host's thread has only to read and to answer it; a `g`, whose value comes from
// another PE's GPU memory by way of messages, is told beside it. benches/ring-round-trip builds and runs it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>
#include <thread>
#include <vector>

using oxshmem::Answer;
using oxshmem::Slot;

enum { SLOTS = 1024, TRIPS = 5000, FETCHES = 200, ROUNDS = 9 };

#define REQUIRE(condition)                                                                     \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "ring_round_trip: %s:%d: %s failed\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

__global__ void order(int trips) {
    for (int i = 0; i < trips; ++i) oxshmem::ring::await_done(oxshmem::ring::post_order(oxshmem::ring::OP_QUIET));
}

// Values of another PE, one behind the other; gives their sum.
__global__ void fetch(const long* word, int pe, int trips, long* sum) {
    long values = 0;
    for (int i = 0; i < trips; ++i) values += oxshmem::g(word, pe);
    *sum = values;
}

// A ring without a library: one thread asks, another one answers.
struct Bare {
    alignas(64) unsigned long long taken = 0;
    alignas(64) Slot slots[SLOTS] = {};
    Answer answers[SLOTS] = {};
};

template <class Word>
static Word load(const Word* at, int order) {
    return __atomic_load_n(at, order);
}

// Looks until a word has a value. It gives the core away now and then, where both threads may have but one.
static void await(const unsigned long long* word, unsigned long long value) {
    for (unsigned look = 1; load(word, __ATOMIC_ACQUIRE) != value; ++look)
        if (look % 4096 == 0) std::this_thread::yield();
}

static void serve(Bare& ring, unsigned long long tickets, long value) {
    for (unsigned long long ticket = 0; ticket < tickets; ++ticket) {
        Slot& slot = ring.slots[ticket % SLOTS];
        await(&slot.words[7], ticket + 1);
        unsigned long long words = 0;
        for (int i = 0; i < 6; ++i) words |= load(&slot.words[i], __ATOMIC_RELAXED);
        REQUIRE(words != 0);
        __atomic_store_n(&ring.taken, ticket + 1, __ATOMIC_RELEASE);
        Answer& answer = ring.answers[ticket % SLOTS];
        await(&answer.ticket, 0);
        __atomic_store_n(&answer.value, (unsigned long long)value, __ATOMIC_RELAXED);
        __atomic_store_n(&answer.ticket, ticket + 1, __ATOMIC_RELEASE);
    }
}

static long ask(Bare& ring, unsigned long long tickets) {
    long values = 0;
    for (unsigned long long ticket = 0; ticket < tickets; ++ticket) {
        Slot& slot = ring.slots[ticket % SLOTS];
        for (int i = 0; i < 6; ++i) __atomic_store_n(&slot.words[i], ticket + i, __ATOMIC_RELAXED);
        __atomic_store_n(&slot.words[7], ticket + 1, __ATOMIC_RELEASE);
        Answer& answer = ring.answers[ticket % SLOTS];
        await(&answer.ticket, ticket + 1);
        values += (long)load(&answer.value, __ATOMIC_RELAXED);
        __atomic_store_n(&answer.ticket, 0ull, __ATOMIC_RELEASE);
    }
    return values;
}

// Nanoseconds of each of a call's round trips.
template <class Call>
static double time_of(int trips, Call call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / trips;
}

int main() {
    shmem_init();
    REQUIRE(shmemx_cuda_init() == 0 && shmem_n_pes() == 2);
    const int me = shmem_my_pe();
    const long value = 7;
    long* word = (long*)shmemx_cuda_malloc(sizeof(long));
    REQUIRE(word);
    shmem_long_p(word, value, me);
    shmem_barrier_all();
    REQUIRE(me != 0 || !shmemx_cuda_ptr(word, 1));
    if (me == 0) {
        long* sum;
        REQUIRE(cudaMallocHost(&sum, sizeof(long)) == cudaSuccess);
        std::vector<double> of_kernel, of_bare, of_fetch, ratios;
        for (int round = 0; round < ROUNDS; ++round) {
            of_kernel.push_back(time_of(TRIPS, [&] {
                order<<<1, 1>>>(TRIPS);
                REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
            }));
            of_fetch.push_back(time_of(FETCHES, [&] {
                fetch<<<1, 1>>>(word, 1, FETCHES, sum);
                REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
            }));
            REQUIRE(*sum == FETCHES * value && shmemx_cuda_check() == 0);
            Bare* ring = new Bare;
            std::thread server(serve, std::ref(*ring), TRIPS, value);
            of_bare.push_back(time_of(TRIPS, [&] { REQUIRE(ask(*ring, TRIPS) == TRIPS * value); }));
            server.join();
            delete ring;
            ratios.push_back(of_kernel.back() / of_bare.back());
        }
        auto median = [](std::vector<double> all) {
            std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
            return all[all.size() / 2];
        };
        printf("round trip, median of %d rounds: a kernel's request %.0f ns, a bare ring %.0f ns, ratio %.2f; a kernel's g %.0f ns\n", ROUNDS,
               median(of_kernel), median(of_bare), median(ratios), median(of_fetch));
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
