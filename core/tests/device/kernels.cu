// Kernels of the device library's tests: one for each family of calls, which its host side tells what to do.
#define OXSHMEM_CHECK
#include "oxshmem.cuh"

using namespace oxshmem;

// The scopes, by number.
enum { THREAD, WARP, BLOCK };

#define IN_SCOPE(scope, call)                                                                          \
    do {                                                                                               \
        if ((scope) == BLOCK) {                                                                        \
            const block_scope group = block();                                                         \
            call;                                                                                      \
        } else if ((scope) == WARP) {                                                                  \
            const warp_scope group = warp();                                                           \
            call;                                                                                      \
        } else if (thread_in_block() == 0) {                                                           \
            const thread_scope group = thread();                                                       \
            call;                                                                                      \
        }                                                                                              \
    } while (0)

enum { PUT, PUT_NBI, GET, GET_NBI, IPUT, IGET, PUTMEM, PUTMEM_NBI, GETMEM, GETMEM_NBI };

// One call of one scope on bytes, with a quiet behind it; strided calls on words of 4 bytes, from every second one to every
// third.
extern "C" __global__ void move(u32 call, u32 scope, u8* dest, u8* source, u64 n, int pe) {
    switch (call) {
        case PUT: IN_SCOPE(scope, put(group, dest, source, n, pe)); break;
        case PUT_NBI: IN_SCOPE(scope, put_nbi(group, dest, source, n, pe)); break;
        case GET: IN_SCOPE(scope, get(group, dest, source, n, pe)); break;
        case GET_NBI: IN_SCOPE(scope, get_nbi(group, dest, source, n, pe)); break;
        case IPUT: IN_SCOPE(scope, iput(group, (u32*)dest, (const u32*)source, 3, 2, n, pe)); break;
        case IGET: IN_SCOPE(scope, iget(group, (u32*)dest, (const u32*)source, 3, 2, n, pe)); break;
        case PUTMEM: IN_SCOPE(scope, putmem(group, dest, source, n, pe)); break;
        case PUTMEM_NBI: IN_SCOPE(scope, putmem_nbi(group, dest, source, n, pe)); break;
        case GETMEM: IN_SCOPE(scope, getmem(group, dest, source, n, pe)); break;
        case GETMEM_NBI: IN_SCOPE(scope, getmem_nbi(group, dest, source, n, pe)); break;
    }
    __syncthreads();
    if (thread_in_block() == 0) quiet();
}

// p and g of each width: `values` are 4 words of this PE, one of each width, and so are `words` of `pe`.
extern "C" __global__ void values(u64* words, u64* seen, u64 value, int pe) {
    p((u8*)(words + 0), (u8)value, pe);
    p((u16*)(words + 1), (u16)value, pe);
    p((float*)(words + 2), (float)value, pe);
    p(words + 3, value, pe);
    quiet();
    seen[0] = g((const u8*)(words + 0), pe);
    seen[1] = g((const u16*)(words + 1), pe);
    seen[2] = (u64)g((const float*)(words + 2), pe);
    seen[3] = g(words + 3, pe);
}

enum { SETS, ADDS, SETS_NBI, ADDS_NBI, APART };

// Rounds of data to the right with a signal; each waits for its own data and counts what is wrong in it (M22).
extern "C" __global__ void signals(u32 scope, u32 how, u64* data, u64* out, u64* word, u64 n, u64 rounds, u64* wrong) {
    const int me = my_pe(), right = (me + 1) % n_pes(), left = (me + n_pes() - 1) % n_pes();
    for (u64 round = 1; round <= rounds; ++round) {
        for (u64 i = thread_in_block(); i < n; i += threads_of_block()) out[i] = me * 1000003 + round * 7919 + i;
        __syncthreads();
        switch (how) {
            case SETS: IN_SCOPE(scope, put_signal(group, data, out, n, word, round, SIGNAL_SET, right)); break;
            case ADDS: IN_SCOPE(scope, put_signal(group, data, out, n, word, 1, SIGNAL_ADD, right)); break;
            case SETS_NBI: IN_SCOPE(scope, put_signal_nbi(group, data, out, n, word, round, SIGNAL_SET, right)); break;
            case ADDS_NBI: IN_SCOPE(scope, put_signal_nbi(group, data, out, n, word, 1, SIGNAL_ADD, right)); break;
            // A signal alone, which a fence orders behind the data.
            case APART:
                IN_SCOPE(scope, put(group, data, out, n, right));
                __syncthreads();
                if (thread_in_block() == 0) {
                    fence();
                    signal(word, round, SIGNAL_SET, right);
                }
                break;
        }
        if (thread_in_block() == 0) signal_wait_until(word, CMP_GE, round);
        __syncthreads();
        if (thread_in_block() == 0 && signal_fetch(word) < round) atomicAdd(wrong, 1ull);
        for (u64 i = thread_in_block(); i < n; i += threads_of_block())
            if (data[i] != left * 1000003 + round * 7919 + i) atomicAdd(wrong, 1ull);
        __syncthreads();
        barrier_all(block());
    }
}

// Puts, a fence, and a flag (M17, G3): the flag's reader must see what was put before it, by put, p or a nonblocking put.
extern "C" __global__ void fences(u64* data, u64* flag, u64* source, u64 n, u64 rounds, u64* wrong) {
    const int me = my_pe(), right = (me + 1) % n_pes();
    for (u64 round = 1; round <= rounds; ++round) {
        for (u64 i = thread_in_block(); i < n; i += threads_of_block()) source[i] = round + i;
        put_nbi(block(), data, source, n, right);
        // The barrier of the call orders all threads' stores before this fence (G2).
        if (thread_in_block() == 0) {
            p(data + n, round, right);
            fence();
            atomic_set(flag, round, right);
            wait_until(flag, CMP_EQ, round);
        }
        __syncthreads();
        for (u64 i = thread_in_block(); i < n; i += threads_of_block())
            if (data[i] != round + i) atomicAdd(wrong, 1ull);
        if (thread_in_block() == 0 && data[n] != round) atomicAdd(wrong, 1ull);
        barrier_all(block());
    }
}

// A nonblocking put whose source is overwritten after a flush: the target has what was there before (G3).
extern "C" __global__ void flushes(u64* data, u64* source, u64 n, int pe) {
    put_nbi(block(), data, source, n, pe);
    if (thread_in_block() == 0) flush();
    __syncthreads();
    for (u64 i = thread_in_block(); i < n; i += threads_of_block()) source[i] = ~0ull;
    __syncthreads();
    if (thread_in_block() == 0) quiet();
}

// A nonblocking put without a quiet: the host's completes it (G4).
extern "C" __global__ void leaves_behind(u64* data, u64* source, u64 n, int pe) { put_nbi(block(), data, source, n, pe); }

// Every block puts its part; the last that arrives quiets for all, and tells (G2).
extern "C" __global__ void one_quiet(u64* data, u64* source, u64 each, unsigned long long* arrived, u64* flag, int pe) {
    const u64 at = blockIdx.x * each;
    put_nbi(block(), data + at, source + at, each, pe);
    if (thread_in_block() == 0) {
        __threadfence();
        if (atomicAdd(arrived, 1ull) + 1 == gridDim.x) {
            __threadfence();
            quiet();
            atomic_inc(flag, pe);
        }
    }
}

// `times` of every atomic that counts, by every thread, on words of one PE (M28).
extern "C" __global__ void count(u64* words, u32* narrow, u64 times, int pe) {
    for (u64 i = 0; i < times; ++i) {
        atomic_add(words + 0, 3, pe);
        atomic_fetch_add(words + 1, 5, pe);
        atomic_inc(words + 2, pe);
        atomic_fetch_inc(narrow + 0, pe);
        u64 seen = atomic_fetch(words + 3, pe), old;
        while ((old = atomic_compare_swap(words + 3, seen, seen + 7, pe)) != seen) seen = old;
        const u64 bit = 1ull << (thread_in_block() % 32);
        atomic_xor(words + 4, bit, pe);
    }
}

// Calls of single values by all lanes at once: on neighbouring words of 8 and of 2 bytes, on words apart, and by some lanes alone. Each
// thread has its own words, and counts what is wrong. `met` tells whether lanes were ever at one place together.
extern "C" __global__ void lanes(u64* words, u16* narrow, u64* counter, u64 rounds, int pe, u64* wrong, u64* met) {
    const u32 me = thread_in_block() + blockIdx.x * threads_of_block();
    for (u64 round = 1; round <= rounds; ++round) {
        const u64 value = round * 1000 + me;
        // From here they go on together, as far as chance lets them.
        warp().sync();
        if (Lanes::now().count() > 1) atomicAdd(met, 1ull);
        p(words + me, value, pe);
        p(narrow + 3 + me, (u16)value, pe);
        p(words + 128 + 2 * me, ~value, pe);
        const u64 before = atomic_fetch_add(counter, 1, pe);
        if (me % 3 == 1) atomic_add(counter + 1, me, pe);
        quiet();
        u64 faults = before >= rounds * gridDim.x * threads_of_block();
        faults += g(words + me, pe) != value;
        faults += g(narrow + 3 + me, pe) != (u16)value;
        if (me % 2) faults += g(words + 128 + 2 * me, pe) != ~value;
        if (faults) atomicAdd(wrong, faults);
    }
}

// Every other atomic once, with the value that it gives.
extern "C" __global__ void every_atomic(u64* words, u64* seen, int pe) {
    atomic_set(words + 0, 0xf0, pe);
    quiet();
    seen[0] = atomic_fetch(words + 0, pe);
    seen[1] = atomic_swap(words + 0, 0xff, pe);
    seen[2] = atomic_fetch_and(words + 0, 0x3c, pe);
    seen[3] = atomic_fetch_or(words + 0, 0x03, pe);
    seen[4] = atomic_fetch_xor(words + 0, 0x3f, pe);
    atomic_or(words + 0, 0xff, pe);
    atomic_and(words + 0, 0x7f, pe);
    atomic_xor(words + 0, 0x01, pe);
    quiet();
    seen[5] = atomic_fetch(words + 0, pe);
    seen[6] = atomic_compare_swap(words + 0, 1, 2, pe);
    const double half = atomic_swap((double*)(words + 1), 0.5, pe);
    seen[7] = half == 0.0 && atomic_fetch((double*)(words + 1), pe) == 0.5;
    // A number of 16 bits beside another, and a sum behind both.
    short* narrow = (short*)(words + 2) + 1;
    atomic_set16(narrow, 5, pe);
    seen[8] = atomic_fetch16(narrow, pe);
    seen[9] = atomic_swap16(narrow, -2, pe) == 5 && atomic_fetch_add16(narrow, 9, pe) == -2;
    atomic_add16(narrow, 1, pe);
    seen[10] = atomic_fetch((u32*)(words + 2), pe);
    float* sum = (float*)(words + 2) + 1;
    atomic_add(sum, 1.5f, pe);
    seen[11] = atomic_fetch_add(sum, 0.25f, pe) == 1.5f && atomic_fetch(sum, pe) == 1.75f;
}

// Waits for several words of this PE, which others set; results to `seen`.
extern "C" __global__ void several(i64* words, int* status, i64* values, u64* indices, u64* seen) {
    seen[0] = test_any(words, 4, status, CMP_NE, 0) == (size_t)-1;
    seen[1] = test_all(words, 4, status, CMP_EQ, 0);
    // All others set word i to -(i + 1), but that of status 1.
    wait_until_all(words, 4, status, CMP_LT, 0);
    wait_until_all_vector(words, 4, status, CMP_EQ, values);
    seen[2] = wait_until_any(words, 4, status, CMP_EQ, -1);
    seen[3] = wait_until_some(words, 4, (size_t*)indices, status, CMP_LE, -3);
    seen[4] = test_some_vector(words, 4, (size_t*)indices + 4, status, CMP_EQ, values);
    const int none[4] = {1, 1, 1, 1};
    seen[5] = wait_until_any(words, 4, none, CMP_EQ, 5) == (size_t)-1;
    seen[6] = wait_until_some(words, 4, (size_t*)indices + 8, none, CMP_EQ, 5);
    wait_until_all(words, 4, none, CMP_EQ, 5);
    seen[7] = test_all(words, 4, none, CMP_EQ, 5);
    // No word is passed over for ever: each of three that hold is found.
    u64 found = 0;
    for (u32 i = 0; i < 32; ++i) found |= 1ull << test_any(words, 4, status, CMP_LT, 0);
    seen[8] = found;
}

// The other calls on several words, which all hold: word i is -(i + 1), but that of status 1, which is 0.
extern "C" __global__ void several_more(i64* words, int* status, i64* values, u64* indices, u64* seen) {
    seen[0] = test(words, CMP_EQ, -1) && !test(words, CMP_NE, -1);
    seen[1] = test_all_vector(words, 4, status, CMP_EQ, values) && !test_all_vector(words, 4, status, CMP_LT, values);
    seen[2] = test_any_vector(words, 4, status, CMP_LT, values) == (size_t)-1;
    seen[3] = test_any_vector(words, 1, status, CMP_EQ, values);
    seen[4] = test_some(words, 4, (size_t*)indices, status, CMP_LE, -3);
    seen[5] = wait_until_some_vector(words, 4, (size_t*)indices + 2, status, CMP_EQ, values);
    u64 found = 0;
    for (u32 i = 0; i < 32; ++i) found |= 1ull << wait_until_any_vector(words, 4, status, CMP_EQ, values);
    seen[6] = found;
}

enum { BROADCAST, FCOLLECT, ALLTOALL, SUM, MIN, XOR, REDUCE_SCATTER, INSCAN, EXSCAN, BARRIER, SYNC, MAX, PRODUCT, AND, OR };

// One collective call of one scope, as often as told, one behind the other.
extern "C" __global__ void collective(u32 call, u32 scope, team_t team, i64* dest, i64* source, u64 n, int root, u64 times) {
    for (u64 time = 0; time < times; ++time) switch (call) {
            case BROADCAST: IN_SCOPE(scope, broadcast(group, team, dest, source, n, root)); break;
            case FCOLLECT: IN_SCOPE(scope, fcollect(group, team, dest, source, n)); break;
            case ALLTOALL: IN_SCOPE(scope, alltoall(group, team, dest, source, n)); break;
            case SUM: IN_SCOPE(scope, reduce<Sum>(group, team, dest, source, n)); break;
            case MIN: IN_SCOPE(scope, reduce<Min>(group, team, dest, source, n)); break;
            case XOR: IN_SCOPE(scope, reduce<Xor>(group, team, dest, source, n)); break;
            case REDUCE_SCATTER: IN_SCOPE(scope, reduce_scatter<Sum>(group, team, dest, source, n)); break;
            case INSCAN: IN_SCOPE(scope, inscan<Sum>(group, team, dest, source, n)); break;
            case EXSCAN: IN_SCOPE(scope, exscan<Sum>(group, team, dest, source, n)); break;
            case BARRIER: IN_SCOPE(scope, barrier(group, team)); break;
            case SYNC: IN_SCOPE(scope, sync(group, team)); break;
            case MAX: IN_SCOPE(scope, reduce<Max>(group, team, dest, source, n)); break;
            case PRODUCT: IN_SCOPE(scope, reduce<Product>(group, team, dest, source, n)); break;
            case AND: IN_SCOPE(scope, reduce<And>(group, team, dest, source, n)); break;
            case OR: IN_SCOPE(scope, reduce<Or>(group, team, dest, source, n)); break;
        }
}

// A sequence of calls without a barrier between them: what one leaves in the scratch memory must not disturb the next.
extern "C" __global__ void sequence(i64* dest, i64* source, u64 rounds, u64* wrong) {
    const i64 me = my_pe(), n = n_pes();
    for (u64 round = 0; round < rounds; ++round) {
        const i64 r = (i64)round;
        if (thread_in_block() == 0) source[0] = me + r;
        __syncthreads();
        reduce<Sum>(block(), TEAM_WORLD, dest, source, 1);
        if (thread_in_block() == 0 && dest[0] != n * (n - 1) / 2 + n * r) atomicAdd(wrong, 1ull);
        __syncthreads();
        if (round % 3 == 0) broadcast(block(), TEAM_WORLD, dest + 8, source, 1, (int)(r % n));
        if (round % 3 == 0 && thread_in_block() == 0 && dest[8] != r % n + r) atomicAdd(wrong, 1ull);
        if (round % 5 == 0) sync(block(), TEAM_WORLD);
        if (round % 7 == 0) sync_all(block());
        inscan<Max>(block(), TEAM_WORLD, dest + 16, source, 1);
        if (thread_in_block() == 0 && dest[16] != me + r) atomicAdd(wrong, 1ull);
        __syncthreads();
    }
}

// Numbers and addresses that a kernel asks for.
extern "C" __global__ void queries(u64* own, u64* seen, team_t odds) {
    seen[0] = my_pe();
    seen[1] = n_pes();
    seen[2] = team_my_pe(TEAM_WORLD) == my_pe() && team_n_pes(TEAM_WORLD) == n_pes();
    seen[3] = ptr(own, my_pe()) == own;
    seen[4] = ptr(own, n_pes()) == nullptr && ptr(own, -1) == nullptr;
    seen[5] = odds < 0 ? 0 : team_n_pes(odds);
    seen[6] = odds < 0 ? 0 : team_translate_pe(odds, team_my_pe(odds), TEAM_WORLD);
    seen[7] = odds < 0 ? 0 : team_translate_pe(TEAM_WORLD, 0, odds);
    // Null where the PE is not mapped.
    u64* theirs = ptr(own, (my_pe() + 1) % n_pes());
    if (theirs)
        *theirs = 77 + my_pe();
    else
        p(own, 77 + my_pe(), (my_pe() + 1) % n_pes());
}

// A bad call of one thread.
extern "C" __global__ void bad(u32 what, u64* word, u64* outside, u64* odd) {
    if (blockIdx.x != 1 || threadIdx.x != 2) return;
    switch (what) {
        case 0: p(word, 1, n_pes()); break;
        case 1: put(word, outside, 1, -1); break;
        case 2: atomic_add((u64*)outside, 1, 0); break;
        case 3: wait_until((u64*)((char*)odd + 4), CMP_EQ, 1); break;
        case 4: put_signal(word, word, 1, outside, 1, SIGNAL_SET, 0); break;
        case 5: barrier(TEAM_INVALID); break;
        case 6: iput(word, word, 0, 1, 1, 0); break;
        case 7: broadcast(thread(), TEAM_WORLD, word, word, 1, n_pes()); break;
    }
}

// A wait for a value that never comes.
extern "C" __global__ void wait_for_ever(u64* word, u64* after) {
    wait_until(word, CMP_EQ, 1);
    if (thread_in_block() == 0) *after = 1;
}
