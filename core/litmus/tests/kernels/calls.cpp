// The device library's calls as functions with C's linkage, for threads of litmus programs.
#include "oxshmem.cuh"

using namespace oxshmem;

enum Group { GROUP_THREAD, GROUP_WARP, GROUP_BLOCK };

template <class Call>
static auto by(int group, Call call) {
    switch (group) {
        case GROUP_WARP: return call(warp());
        case GROUP_BLOCK: return call(block());
        default: return call(thread());
    }
}

extern "C" {

void weak_begin(const WeakHooks* hooks, const char* base, size_t bytes, int change) {
    weak_hooks = *hooks, weak_base = base, weak_bytes = bytes, weak_change = change;
}
void weak_thread(u32 lane, u32 lanes, u32 number, const State* state) {
    threadIdx.x = lane, blockDim.x = lanes, blockIdx.x = number;
    oxshmem_state = *state;
}

void weak_put(int group, u64* to, const u64* from, size_t n, int pe, int nbi) {
    by(group, [&](auto scope) { nbi ? put_nbi(scope, to, from, n, pe) : put(scope, to, from, n, pe); });
}
void weak_get(int group, u64* to, const u64* from, size_t n, int pe, int nbi) {
    by(group, [&](auto scope) { nbi ? get_nbi(scope, to, from, n, pe) : get(scope, to, from, n, pe); });
}
// Strides of 1, one word at a time.
void weak_iput(int group, u64* to, const u64* from, size_t n, int pe) {
    by(group, [&](auto scope) { iput(scope, to, from, 1, 1, n, pe); });
}
void weak_iget(int group, u64* to, const u64* from, size_t n, int pe) {
    by(group, [&](auto scope) { iget(scope, to, from, 1, 1, n, pe); });
}
void weak_p(u64* to, u64 value, int pe) { p(to, value, pe); }
u64 weak_g(const u64* from, int pe) { return g(from, pe); }
void weak_put_signal(int group, u64* to, const u64* from, size_t n, u64* signal, u64 value, int add, int pe, int nbi) {
    const SignalOperation operation = add ? SIGNAL_ADD : SIGNAL_SET;
    by(group, [&](auto scope) {
        nbi ? put_signal_nbi(scope, to, from, n, signal, value, operation, pe)
            : put_signal(scope, to, from, n, signal, value, operation, pe);
    });
}
void weak_signal(u64* word, u64 value, int add, int pe) { signal(word, value, add ? SIGNAL_ADD : SIGNAL_SET, pe); }

// In the order of `Update` in core/litmus/src/program.rs.
void weak_update(int operation, u64* at, u64 value, int pe) {
    switch (operation) {
        case 0: return atomic_set(at, value, pe);
        case 1: return atomic_add(at, value, pe);
        case 2: return atomic_and(at, value, pe);
        case 3: return atomic_or(at, value, pe);
        default: return atomic_xor(at, value, pe);
    }
}
u64 weak_fetch_update(int operation, u64* at, u64 value, int pe) {
    switch (operation) {
        case 0: return atomic_swap(at, value, pe);
        case 1: return atomic_fetch_add(at, value, pe);
        case 2: return atomic_fetch_and(at, value, pe);
        case 3: return atomic_fetch_or(at, value, pe);
        default: return atomic_fetch_xor(at, value, pe);
    }
}
u64 weak_fetch(const u64* at, int pe) { return atomic_fetch(at, pe); }
u64 weak_compare_swap(u64* at, u64 compare, u64 value, int pe) { return atomic_compare_swap(at, compare, value, pe); }

u64 weak_wait(const u64* word, int compare, u64 value) { return signal_wait_until(word, (Compare)compare, value); }
void weak_wait_until(const u64* word, int compare, u64 value) { wait_until(word, (Compare)compare, value); }
u64 weak_test(const u64* word, int compare, u64 value) { return test(word, (Compare)compare, value); }
u64 weak_signal_fetch(const u64* word) { return signal_fetch(word); }
// 0: all; 1: any; 2: some.
u64 weak_wait_several(int which, u64* words, size_t n, int compare, u64 value) {
    size_t found[8];
    switch (which) {
        case 0: return wait_until_all(words, n, nullptr, (Compare)compare, value), 1;
        case 1: return wait_until_any(words, n, nullptr, (Compare)compare, value);
        default: return wait_until_some(words, n, found, nullptr, (Compare)compare, value);
    }
}
u64 weak_test_several(int which, u64* words, size_t n, int compare, u64 value) {
    size_t found[8];
    switch (which) {
        case 0: return test_all(words, n, nullptr, (Compare)compare, value);
        case 1: return test_any(words, n, nullptr, (Compare)compare, value);
        default: return test_some(words, n, found, nullptr, (Compare)compare, value);
    }
}

void weak_fence() { fence(); }
void weak_quiet() { quiet(); }
void weak_flush() { flush(); }
void weak_barrier(int group) {
    by(group, [](auto scope) { barrier_all(scope); });
}
void weak_sync(int group) {
    by(group, [](auto scope) { sync_all(scope); });
}
// 0: broadcast; 1: fcollect; 2: alltoall; 3: sum.
void weak_collective(int group, int what, u64* to, const u64* from, size_t n, int root) {
    by(group, [&](auto scope) {
        switch (what) {
            case 0: broadcast(scope, TEAM_WORLD, to, from, n, root); break;
            case 1: fcollect(scope, TEAM_WORLD, to, from, n); break;
            case 2: alltoall(scope, TEAM_WORLD, to, from, n); break;
            default: reduce<Sum>(scope, TEAM_WORLD, to, from, n); break;
        }
    });
}
void weak_sync_group(int group) {
    by(group, [](auto scope) { scope.sync(); });
}
void weak_serve(Inbox* inbox) { inbox::serve(inbox); }

}  // extern "C"
