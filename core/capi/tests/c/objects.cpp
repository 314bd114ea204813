// Programs in C++'s way: a symmetric array as a class, templates over the types of elements, a queue of work under a lock,
// containers as sources, complex numbers, and threads with a context each.
#include <shmem.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "expect.h"

namespace {

int me, n;

// Elements on every PE, as long as the object is there.
template <typename T>
class Symmetric {
  public:
    explicit Symmetric(std::size_t len) : len_(len), at_(static_cast<T *>(shmem_calloc(len, sizeof(T)))) {
        if (at_ == nullptr) shmem_global_exit(5);
    }
    ~Symmetric() { shmem_free(at_); }
    Symmetric(const Symmetric &) = delete;
    Symmetric &operator=(const Symmetric &) = delete;

    T *data() { return at_; }
    T &operator[](std::size_t i) { return at_[i]; }
    std::size_t size() const { return len_; }
    T *begin() { return at_; }
    T *end() { return at_ + len_; }

  private:
    std::size_t len_;
    T *at_;
};

// Every type by the same name.
template <typename T>
void round_trip() {
    Symmetric<T> there(10);
    std::vector<T> from(10), back(10);
    std::iota(from.begin(), from.end(), static_cast<T>(me));
    shmem_put(there.data(), from.data(), from.size(), (me + 1) % n);
    shmem_barrier_all();
    const int left = (me + n - 1) % n;
    for (std::size_t i = 0; i < there.size(); i++) CHECK(there[i] == static_cast<T>(left + static_cast<int>(i)));
    shmem_get(back.data(), there.data(), back.size(), (me + 1) % n);
    CHECK(back == from);
    shmem_sync(SHMEM_TEAM_WORLD);
    shmem_p(there.data(), static_cast<T>(3), (me + 1) % n);
    shmem_quiet();
    shmem_barrier_all();
    CHECK(shmem_g(there.data(), me) == static_cast<T>(3));
    Symmetric<T> sum(10);
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, sum.data(), there.data(), 10) == 0 && sum[0] == static_cast<T>(3));
    shmem_barrier_all();
}

template <typename... T>
void round_trips() {
    int in_order[] = {(round_trip<T>(), 0)...};
    (void)in_order;
}

// PE 0 has a queue of numbers; who takes one under the lock puts two smaller ones in, and counts.
struct Queue {
    int count;
    int numbers[200];
    long taken;
};
Queue queue;
long queue_lock;

void take_turns() {
    if (me == 0) {
        queue.count = 1;
        queue.numbers[0] = 6;
    }
    shmem_barrier_all();
    for (bool done = false; !done;) {
        shmem_set_lock(&queue_lock);
        Queue mine;
        shmem_getmem(&mine, &queue, sizeof mine, 0);
        done = mine.count == 0;
        if (!done) {
            const int number = mine.numbers[--mine.count];
            mine.taken++;
            if (number > 0) {
                mine.numbers[mine.count++] = number - 1;
                mine.numbers[mine.count++] = number - 1;
            }
            shmem_putmem(&queue, &mine, sizeof mine, 0);
        }
        shmem_clear_lock(&queue_lock);
    }
    shmem_barrier_all();
    CHECK(shmem_long_atomic_fetch(&queue.taken, 0) == 127);
    shmem_barrier_all();
}

void complex_numbers() {
    Symmetric<std::complex<double>> each(2), sum(2);
    each[0] = {1.0, me + 0.5};
    each[1] = std::complex<double>(0, 1);
    CHECK(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, sum.data(), each.data(), 2) == 0);
    CHECK(sum[0] == std::complex<double>(n, n * (n - 1) / 2.0 + n * 0.5) && sum[1] == std::complex<double>(0, n));
    shmem_barrier_all();
}

// A text of its own length from each.
void texts() {
    const std::string mine = "PE " + std::string(static_cast<std::size_t>(me), '*') + ";";
    Symmetric<char> source(64), all(64 * static_cast<std::size_t>(n));
    std::copy(mine.begin(), mine.end(), source.begin());
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, all.data(), source.data(), mine.size()) == 0);
    std::string expected;
    for (int pe = 0; pe < n; pe++) expected += "PE " + std::string(static_cast<std::size_t>(pe), '*') + ";";
    CHECK(expected == all.data());
    shmem_barrier_all();
}

// Each thread with its context, and all with one more; where the library wants one call at a time, each hands the turn on after
// one.
void threads(int level) {
    enum { THREADS = 3, TIMES = 40 };
    Symmetric<std::uint64_t> counts(THREADS);
    shmem_ctx_t common = SHMEM_CTX_INVALID;
    CHECK(shmem_ctx_create(0, &common) == 0);
    std::mutex turn;
    std::condition_variable handed_on;
    int whose = 0;
    const auto in_turn = [&](int t, const std::function<void()> &call) {
        std::unique_lock<std::mutex> held(turn, std::defer_lock);
        if (level < SHMEM_THREAD_MULTIPLE) {
            held.lock();
            handed_on.wait(held, [&] { return whose == t; });
        }
        call();
        if (level < SHMEM_THREAD_MULTIPLE) whose = (t + 1) % THREADS;
        handed_on.notify_all();
    };
    std::vector<std::thread> all;
    for (int t = 0; t < THREADS; t++)
        all.emplace_back([&, t] {
            shmem_ctx_t ctx = SHMEM_CTX_INVALID;
            in_turn(t, [&] { CHECK(shmem_ctx_create(0, &ctx) == 0); });
            for (int i = 0; i < TIMES; i++) {
                in_turn(t, [&] { shmem_atomic_add(ctx, counts.data() + t, std::uint64_t{2}, (me + i) % n); });
                in_turn(t, [&] { (void)shmem_atomic_fetch_inc(common, counts.data() + (t + i) % THREADS, i % n); });
            }
            in_turn(t, [&] { shmem_ctx_quiet(ctx); });
            in_turn(t, [&] { shmem_ctx_destroy(ctx); });
        });
    for (auto &thread : all) thread.join();
    shmem_ctx_destroy(common);
    Symmetric<std::uint64_t> sums(THREADS);
    shmem_barrier_all();
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, sums.data(), counts.data(), THREADS) == 0);
    for (auto sum : sums) CHECK(sum == std::uint64_t{3} * TIMES * static_cast<unsigned>(n));
    shmem_barrier_all();
}

// The calls are the main thread's; what another one does beside is none.
void beside() {
    Symmetric<long> words(1);
    std::atomic<long> done{0};
    std::atomic<bool> is_through{false};
    std::thread other([&] {
        while (!is_through.load()) done++;
    });
    while (done.load() == 0) std::this_thread::yield();
    for (int i = 0; i < 200; i++) {
        shmem_atomic_add(words.data(), 1L, (me + i) % n);
        shmem_barrier_all();
    }
    is_through.store(true);
    other.join();
    CHECK(words.data()[0] == 200);
}

}  // namespace

// With the name of a thread level, that one.
int main(int argc, char **argv) {
    const std::string name = argc > 1 ? argv[1] : "multiple";
    const int asked = name == "funneled" ? SHMEM_THREAD_FUNNELED : name == "serialized" ? SHMEM_THREAD_SERIALIZED : SHMEM_THREAD_MULTIPLE;
    int level = -1, told = -1;
    CHECK(shmem_init_thread(asked, &level) == 0 && level == asked);
    shmem_query_thread(&told);
    CHECK(told == level);
    me = shmem_my_pe();
    n = shmem_n_pes();
    round_trips<char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long, long long,
                unsigned long long, float, double, long double, std::size_t, std::ptrdiff_t>();
    take_turns();
    complex_numbers();
    texts();
    if (level > SHMEM_THREAD_FUNNELED) threads(level);
    beside();
    if (me == 0) std::puts("right");
    shmem_finalize();
}
