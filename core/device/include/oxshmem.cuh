// oxshmem's device library: calls inside kernels, by the rules M1 to M38 and G1 to G6 of docs/memory-model.md.
// One header; there is nothing to link. core/device/README.md describes the calls.
//
// Made by ci/device-header of the parts in core/device/header and transport/nvlink/device. Do not edit.

#pragma once

// Types, and accesses to words that other threads, GPUs, NICs and CPUs use at the same time: always at system scope.
// Each access is one, whole. Inline PTX on a GPU, `__atomic_*` elsewhere.

#if defined(__CUDA_ARCH__) && !defined(OXSHMEM_EMULATION) && !defined(SOFTCUDA)
#define OXSHMEM_PTX 1
#else
#define OXSHMEM_PTX 0
#endif
#define OXSHMEM_DEVICE static __device__ __forceinline__
// For code that is long beside its call: there is one copy of it in an image.
#ifndef OXSHMEM_OUTLINE
#define OXSHMEM_OUTLINE [[maybe_unused]] static __device__ __noinline__
#endif
#define OXSHMEM_MEMBER __device__ __forceinline__

namespace oxshmem {

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

namespace words {

#if OXSHMEM_PTX

#define OXSHMEM_LOADS_AND_STORES(T, bits, reg)                                                         \
    OXSHMEM_DEVICE T load_relaxed(const T* word) {                                                     \
        T value;                                                                                       \
        asm volatile("ld.relaxed.sys.u" bits " %0, [%1];" : "=" reg(value) : "l"(word) : "memory");    \
        return value;                                                                                  \
    }                                                                                                  \
    OXSHMEM_DEVICE T load_acquire(const T* word) {                                                     \
        T value;                                                                                       \
        asm volatile("ld.acquire.sys.u" bits " %0, [%1];" : "=" reg(value) : "l"(word) : "memory");    \
        return value;                                                                                  \
    }                                                                                                  \
    OXSHMEM_DEVICE void store_relaxed(T* word, T value) {                                              \
        asm volatile("st.relaxed.sys.u" bits " [%0], %1;" ::"l"(word), reg(value) : "memory");         \
    }                                                                                                  \
    OXSHMEM_DEVICE void store_release(T* word, T value) {                                              \
        asm volatile("st.release.sys.u" bits " [%0], %1;" ::"l"(word), reg(value) : "memory");         \
    }
#define OXSHMEM_OLD_VALUE(name, instruction, T, reg)                                                   \
    OXSHMEM_DEVICE T name(T* word, T operand) {                                                        \
        T old;                                                                                         \
        asm volatile("atom.relaxed.sys." instruction " %0, [%1], %2;"                                  \
                     : "=" reg(old)                                                                    \
                     : "l"(word), reg(operand)                                                         \
                     : "memory");                                                                      \
        return old;                                                                                    \
    }
#define OXSHMEM_NO_VALUE(name, instruction, T, reg)                                                    \
    OXSHMEM_DEVICE void name(T* word, T operand) {                                                     \
        asm volatile("red." instruction " [%0], %1;" ::"l"(word), reg(operand) : "memory");            \
    }
#define OXSHMEM_ATOMICS(T, bits, reg)                                                                  \
    OXSHMEM_OLD_VALUE(fetch_add, "add.u" bits, T, reg)                                                 \
    OXSHMEM_OLD_VALUE(fetch_and, "and.b" bits, T, reg)                                                 \
    OXSHMEM_OLD_VALUE(fetch_or, "or.b" bits, T, reg)                                                   \
    OXSHMEM_OLD_VALUE(fetch_xor, "xor.b" bits, T, reg)                                                 \
    OXSHMEM_OLD_VALUE(swap, "exch.b" bits, T, reg)                                                     \
    OXSHMEM_NO_VALUE(add, "relaxed.sys.add.u" bits, T, reg)                                            \
    OXSHMEM_NO_VALUE(and_with, "relaxed.sys.and.b" bits, T, reg)                                       \
    OXSHMEM_NO_VALUE(or_with, "relaxed.sys.or.b" bits, T, reg)                                         \
    OXSHMEM_NO_VALUE(xor_with, "relaxed.sys.xor.b" bits, T, reg)                                       \
    OXSHMEM_NO_VALUE(add_release, "release.sys.add.u" bits, T, reg)                                    \
    OXSHMEM_DEVICE T compare_swap(T* word, T compare, T operand) {                                     \
        T old;                                                                                         \
        asm volatile("atom.relaxed.sys.cas.b" bits " %0, [%1], %2, %3;"                                \
                     : "=" reg(old)                                                                    \
                     : "l"(word), reg(compare), reg(operand)                                           \
                     : "memory");                                                                      \
        return old;                                                                                    \
    }

OXSHMEM_LOADS_AND_STORES(u16, "16", "h")
OXSHMEM_LOADS_AND_STORES(u32, "32", "r")
OXSHMEM_LOADS_AND_STORES(u64, "64", "l")
OXSHMEM_ATOMICS(u32, "32", "r")
OXSHMEM_ATOMICS(u64, "64", "l")

OXSHMEM_DEVICE u8 load_relaxed(const u8* word) {
    u32 value;
    asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return (u8)value;
}
OXSHMEM_DEVICE void store_relaxed(u8* word, u8 value) {
    asm volatile("st.relaxed.sys.u8 [%0], %1;" ::"l"(word), "r"((u32)value) : "memory");
}

// Two neighbouring words, from an address that is a multiple of 16. Each of them is whole.
OXSHMEM_DEVICE ulonglong2 load_pair_relaxed(const u64* words) {
    ulonglong2 pair;
    asm volatile("ld.relaxed.sys.v2.u64 {%0, %1}, [%2];" : "=l"(pair.x), "=l"(pair.y) : "l"(words) : "memory");
    return pair;
}
OXSHMEM_DEVICE void store_pair_relaxed(u64* words, u64 first, u64 second) {
    asm volatile("st.relaxed.sys.v2.u64 [%0], {%1, %2};" ::"l"(words), "l"(first), "l"(second) : "memory");
}

// Orders what this thread did before, and what a barrier of its group had ordered before that, with
// what it does later, for the whole system.
OXSHMEM_DEVICE void fence_all() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
// The same, and all such fences have one order: of two threads that store, fence and load, one sees the other's store.
OXSHMEM_DEVICE void fence_sequential() { asm volatile("fence.sc.sys;" ::: "memory"); }

OXSHMEM_DEVICE u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#undef OXSHMEM_LOADS_AND_STORES
#undef OXSHMEM_OLD_VALUE
#undef OXSHMEM_NO_VALUE
#undef OXSHMEM_ATOMICS

#else

#define OXSHMEM_LOADS_AND_STORES(T)                                                                    \
    OXSHMEM_DEVICE T load_relaxed(const T* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }   \
    OXSHMEM_DEVICE T load_acquire(const T* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }   \
    OXSHMEM_DEVICE void store_relaxed(T* word, T v) { __atomic_store_n(word, v, __ATOMIC_RELAXED); }   \
    OXSHMEM_DEVICE void store_release(T* word, T v) { __atomic_store_n(word, v, __ATOMIC_RELEASE); }
#define OXSHMEM_ATOMICS(T)                                                                             \
    OXSHMEM_DEVICE T fetch_add(T* word, T v) { return __atomic_fetch_add(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE T fetch_and(T* word, T v) { return __atomic_fetch_and(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE T fetch_or(T* word, T v) { return __atomic_fetch_or(word, v, __ATOMIC_RELAXED); }   \
    OXSHMEM_DEVICE T fetch_xor(T* word, T v) { return __atomic_fetch_xor(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE T swap(T* word, T v) { return __atomic_exchange_n(word, v, __ATOMIC_RELAXED); }     \
    OXSHMEM_DEVICE void add(T* word, T v) { (void)__atomic_fetch_add(word, v, __ATOMIC_RELAXED); }     \
    OXSHMEM_DEVICE void and_with(T* word, T v) { (void)__atomic_fetch_and(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE void or_with(T* word, T v) { (void)__atomic_fetch_or(word, v, __ATOMIC_RELAXED); }  \
    OXSHMEM_DEVICE void xor_with(T* word, T v) { (void)__atomic_fetch_xor(word, v, __ATOMIC_RELAXED); } \
    OXSHMEM_DEVICE void add_release(T* word, T v) { (void)__atomic_fetch_add(word, v, __ATOMIC_RELEASE); } \
    OXSHMEM_DEVICE T compare_swap(T* word, T compare, T v) {                                           \
        __atomic_compare_exchange_n(word, &compare, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);     \
        return compare;                                                                                \
    }

OXSHMEM_LOADS_AND_STORES(u8)
OXSHMEM_LOADS_AND_STORES(u16)
OXSHMEM_LOADS_AND_STORES(u32)
OXSHMEM_LOADS_AND_STORES(u64)
OXSHMEM_ATOMICS(u32)
OXSHMEM_ATOMICS(u64)

OXSHMEM_DEVICE ulonglong2 load_pair_relaxed(const u64* words) {
    return ulonglong2{load_relaxed(words), load_relaxed(words + 1)};
}
OXSHMEM_DEVICE void store_pair_relaxed(u64* words, u64 first, u64 second) {
    store_relaxed(words, first);
    store_relaxed(words + 1, second);
}

OXSHMEM_DEVICE void fence_all() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
OXSHMEM_DEVICE void fence_sequential() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // namespace words
}  // namespace oxshmem
extern "C" __device__ unsigned long long softcuda_nanoseconds();
namespace oxshmem {
namespace words {

OXSHMEM_DEVICE u64 nanoseconds() { return softcuda_nanoseconds(); }

#undef OXSHMEM_LOADS_AND_STORES
#undef OXSHMEM_ATOMICS

#endif

// The unsigned word of a number of bytes.
template <u32 BYTES>
struct Word {};
template <>
struct Word<1> {
    typedef u8 Type;
};
template <>
struct Word<2> {
    typedef u16 Type;
};
template <>
struct Word<4> {
    typedef u32 Type;
};
template <>
struct Word<8> {
    typedef u64 Type;
};

// A signal, which programs may declare by any type of 64 bits.
template <class Signal>
OXSHMEM_DEVICE u64* signal_word(Signal* signal) {
    static_assert(sizeof(Signal) == 8, "a signal has 64 bits");
    return (u64*)signal;
}

// A parameter that takes its type from the others.
template <class T>
struct Same {
    typedef T Type;
};

// A value as the word of its size, and back.
template <class T>
OXSHMEM_DEVICE typename Word<sizeof(T)>::Type to_word(const T& value) {
    typename Word<sizeof(T)>::Type word;
    memcpy(&word, &value, sizeof word);
    return word;
}
template <class T>
OXSHMEM_DEVICE T from_word(typename Word<sizeof(T)>::Type word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}
template <class T>
OXSHMEM_DEVICE typename Word<sizeof(T)>::Type* word_of(T* at) {
    return (typename Word<sizeof(T)>::Type*)at;
}
template <class T>
OXSHMEM_DEVICE const typename Word<sizeof(T)>::Type* word_of(const T* at) {
    return (const typename Word<sizeof(T)>::Type*)at;
}

}  // namespace words
}  // namespace oxshmem

// An atomic on a word, by number.

namespace oxshmem {

// In the order of `AtomicOp::ALL` in transport/api/src/op.rs; ci/test-kernels compares them.
enum AtomicOp : u32 {
    ATOMIC_FETCH,
    ATOMIC_SET,
    ATOMIC_ADD,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_SWAP,
    ATOMIC_COMPARE_SWAP,
};

namespace words {

// Gives the old value; 0 of a set. Any other number changes nothing.
template <class T>
OXSHMEM_DEVICE T perform(T* word, u32 op, T operand, T compare) {
    switch (op) {
        case ATOMIC_FETCH: return load_relaxed(word);
        case ATOMIC_SET: store_relaxed(word, operand); return 0;
        case ATOMIC_ADD: return fetch_add(word, operand);
        case ATOMIC_AND: return fetch_and(word, operand);
        case ATOMIC_OR: return fetch_or(word, operand);
        case ATOMIC_XOR: return fetch_xor(word, operand);
        case ATOMIC_SWAP: return swap(word, operand);
        case ATOMIC_COMPARE_SWAP: return compare_swap(word, compare, operand);
        default: return 0;
    }
}

}  // namespace words
}  // namespace oxshmem

// Atomics on this GPU's words that other PEs' hosts ask for (M29: a GPU's words have one domain, the GPU).
//
// The host cannot rely on a kernel of its own: it has no place while waiting kernels fill the GPU, and they may wait for what
// the atomic brings. So every wait performs what is in the inbox.

namespace oxshmem {

// An atomic that another PE's host asks of this GPU: 64 bytes in pinned host memory.
struct Errand {
    u64 word;        // its address
    u32 operation;   // in the order of `AtomicOp` in transport/api
    u32 width;       // bytes
    u64 operand;
    u64 compare;
    u64 old;         // the answer
    u64 done;        // the errand's number plus one, once that is there
    u64 padding[2];
};

// The atomics that hosts ask of this GPU. Waiting kernels perform them, and a kernel of the host's, whichever comes first.
struct Inbox {
    Errand* errands;     // in pinned host memory
    u64* claimed;        // errands that a thread has begun, in the GPU's memory
    const u64* posted;   // errands that are there, in pinned host memory
    u64 mask;            // places - 1
};

namespace inbox {

// Performs what is there and what no other thread has begun.
OXSHMEM_OUTLINE void serve(Inbox* inbox) {
    u64 next = words::load_relaxed((const u64*)inbox->claimed);
    // The counter of claims may be newer than what this thread sees of the other.
    while ((i64)(words::load_relaxed(inbox->posted) - next) > 0) {
        const u64 seen = words::compare_swap(inbox->claimed, next, next + 1);
        if (seen != next) {
            next = seen;
            continue;
        }
        // The errand is there. Whoever sees its word changed sees what the asking PE had ordered before.
        words::fence_all();
        Errand* errand = &inbox->errands[next & inbox->mask];
        const u32 operation = words::load_relaxed(&errand->operation);
        const u64 word = words::load_relaxed(&errand->word), operand = words::load_relaxed(&errand->operand);
        const u64 compare = words::load_relaxed(&errand->compare);
        const u64 old = words::load_relaxed(&errand->width) == 4
                            ? words::perform((u32*)word, operation, (u32)operand, (u32)compare)
                            : words::perform((u64*)word, operation, operand, compare);
        words::store_relaxed(&errand->old, old);
        words::store_release(&errand->done, ++next);
    }
}

}  // namespace inbox
}  // namespace oxshmem

// The state by which a kernel finds its PE, its peers and the job.
//
// The host fills one state for each loaded image (DeviceLibrary::prepare in Rust). It writes it before
// the kernels that use it, and changes later only what the pointers in it lead to.

namespace oxshmem {

// The layout of everything here that the host shares. It changes with every change of one.
enum : u32 { ABI = 3 };

// A request to the host, for a PE whose memory is not mapped here: 64 bytes. The last word is the
// ticket plus one, and is stored after the others.
struct Slot {
    u64 words[8];
};

// The answer to a request that fetches. `ticket` is 0 while the place is free, and the ticket plus one
// when the value is there.
struct Answer {
    u64 value;
    u64 ticket;
};

// The ring of requests. `slots`, `answers` and the host's counters lie in pinned host memory, `head` in
// the GPU's. Counters count requests from 0 on.
struct Ring {
    Slot* slots;
    Answer* answers;
    u64* head;               // tickets taken
    const u64* taken;        // requests that the host has read; their slots are free
    const u64* sources_read; // requests whose source may be changed
    const u64* done;         // requests that are complete at their target
    u64* credit;             // requests that the host is known to have read, in the GPU's memory: `taken` lies a long way off
    u64 mask;                // slots - 1; there is a power of two of them
};

// The members of a team, and the words and buffers by which they meet. In the GPU's memory.
struct Team {
    u32 n;
    u32 me;
    const u32* members;   // PE of each member
    u64* words;           // symmetric: word i is set by member i alone
    char* scratch;        // symmetric: two halves of `n` places each
    u64 place;            // bytes of a place, a multiple of 16
    u64 epoch;            // collective calls that this member has begun
    u64 met;              // the last of them in which it has heard of all members
    u64 half_used[2];     // the last that used each half of `scratch`
};

// Words of the GPU's memory that change while kernels run.
struct Shared {
    u32 teams;   // entries of the table of teams
    u32 turn;    // moves the first word at which wait_until_any looks
};

// The first bad call of a kernel, with checks. In pinned host memory.
struct Fault {
    u32 state;   // 0: none; 1: being written; 2: complete
    u32 call;
    u32 kind;
    i64 pe;
    u64 address;
    u64 bytes;
    u32 block[3];
    u32 thread[3];
};

struct State {
    u32 abi;              // ABI << 16 | sizeof(State)
    u32 me;
    u32 n;
    u32 flags;
    char* heap;           // this PE's GPU heap
    u64 heap_bytes;
    const i64* distances; // from this PE's heap to each PE's as mapped here, in bytes; or UNMAPPED
    Team* const* teams;
    Shared* shared;
    Ring* ring;           // null if every PE is mapped
    u32* stop;            // in pinned host memory: not 0 once waits have to end
    Fault* fault;
    u64 deadline;         // nanoseconds that a wait may take; 0: for ever
    Inbox* inbox;
    u64 reserved[2];
};
static_assert(sizeof(State) <= 128, "the state is small");

// The distance to a heap that is not mapped here. No heap lies at an odd one.
enum : u32 { UNMAPPED = 1 };

// Bits of State::flags.
enum : u32 {
    FLUSH_AFTER_WAIT = 1,   // a NIC writes this GPU's memory: a wait that ends asks the host for a flush
};

// Values of `*State::stop`.
enum : u32 {
    STOP_LOST = 1,       // a PE was lost, or the job ends
    STOP_FAULT = 2,      // a kernel made a bad call
    STOP_DEADLINE = 3,   // a wait took longer than State::deadline
};

enum SignalOperation : u32 {
    SIGNAL_SET,
    SIGNAL_ADD,
};

// A team's number, the same on all of its members.
typedef int team_t;
enum : team_t { TEAM_INVALID = -1, TEAM_WORLD = 0, TEAM_SHARED = 1 };

}  // namespace oxshmem

// One variable for each image: with relocatable device code (-rdc=true) of all its sources together. Its first word tells the
// host which header an image was compiled with.
#if defined(__CUDACC_RDC__)
#if !defined(__CUDA_ARCH__)
// Its stand-in on the host, which names it for the CUDA runtime: one in each library of a process.
__attribute__((visibility("hidden")))
#elif defined(__clang__) && !defined(__NVCC__)
// Clang leaves out an inline variable that no kernel reads, and the host looks for it all the same.
__attribute__((used))
#endif
inline __constant__ oxshmem::State oxshmem_state = {oxshmem::ABI << 16 | sizeof(oxshmem::State)};
#else
extern "C" {
__constant__ oxshmem::State oxshmem_state = {oxshmem::ABI << 16 | sizeof(oxshmem::State)};
}
#endif

// Waiting. Each wait ends when the host sets the stop word, because the job has failed (G6).

namespace oxshmem {
namespace spin {

// Ends all waits of this GPU, unless something has ended them already.
OXSHMEM_DEVICE void stop_all(u32 reason) { words::compare_swap(oxshmem_state.stop, 0u, reason); }

// The end of a wait before its time.
enum End : u32 {
    NOT_YET,
    STOPPED,
    TOO_LATE,
};

// Looks whether a wait that began at `start` has to end. The stop word lies in host memory, a long way off.
OXSHMEM_OUTLINE End look_for_end(u64 start) {
    // The awaited value may come by an atomic that this GPU has to perform itself.
    if (oxshmem_state.inbox) inbox::serve(oxshmem_state.inbox);
    if (words::load_relaxed(oxshmem_state.stop) != 0) return STOPPED;
    const u64 patience = oxshmem_state.deadline;
    return patience && words::nanoseconds() - start > patience ? TOO_LATE : NOT_YET;
}

// Looks for `condition()` until it is true. False if the wait was ended before.
template <class Condition>
OXSHMEM_DEVICE bool until(Condition& condition) {
    if (condition()) return true;
    const u64 start = oxshmem_state.deadline ? words::nanoseconds() : 0;
    u32 pause = 32;
    for (u32 round = 1; !condition(); ++round) {
        if (round % 16 == 0) {
            const End end = look_for_end(start);
            if (end != NOT_YET) {
                // The awaited value may have come before the host gave up.
                if (condition()) return true;
                if (end == TOO_LATE) stop_all(STOP_DEADLINE);
                return false;
            }
        }
        // An emulated thread gives way at once: another one may have to run.
        if (round < 64 && OXSHMEM_PTX) continue;
        __nanosleep(pause);
        if (round % 64 == 0 && pause < 256) pause *= 2;
    }
    // The emulation learns that a sleeper has gone on.
    if (!OXSHMEM_PTX) __nanosleep(0);
    return true;
}

struct AtLeast {
    const u64* word;
    u64 value;

    // Counters wrap.
    OXSHMEM_MEMBER bool operator()() const {
        return (i64)(words::load_acquire(word) - value) >= 0;
    }
};

OXSHMEM_OUTLINE bool until_at_least(const u64* word, u64 value) {
    AtLeast condition = {word, value};
    return until(condition);
}

}  // namespace spin
}  // namespace oxshmem

// Checks of arguments, compiled in with OXSHMEM_CHECK: the first bad call of a kernel is recorded for the host, all
// waits end, and the host's next call gives the error. Without it a bad argument is undefined behaviour.

namespace oxshmem {
namespace check {

// In the order of `Call` in core/device/src/fault.rs.
enum Call : u32 {
    CALL_PUT,
    CALL_GET,
    CALL_P,
    CALL_G,
    CALL_IPUT,
    CALL_IGET,
    CALL_PUT_SIGNAL,
    CALL_SIGNAL,
    CALL_ATOMIC,
    CALL_WAIT,
    CALL_TEST,
    CALL_TEAM,
    CALL_BROADCAST,
    CALL_FCOLLECT,
    CALL_ALLTOALL,
    CALL_REDUCE,
    CALL_REDUCE_SCATTER,
    CALL_SCAN,
    CALL_BARRIER,
};

// In the order of `Kind` in core/device/src/fault.rs.
enum Kind : u32 {
    KIND_PE,
    KIND_RANGE,
    KIND_ALIGNMENT,
    KIND_TEAM,
    KIND_ROOT,
    KIND_STRIDE,
};

#ifdef OXSHMEM_CHECK

OXSHMEM_OUTLINE void report(u32 call, u32 kind, i64 pe, const void* address, u64 bytes) {
    Fault* fault = oxshmem_state.fault;
    if (words::compare_swap(&fault->state, 0u, 1u) == 0) {
        fault->call = call;
        fault->kind = kind;
        fault->pe = pe;
        fault->address = (u64)address;
        fault->bytes = bytes;
        fault->block[0] = blockIdx.x, fault->block[1] = blockIdx.y, fault->block[2] = blockIdx.z;
        fault->thread[0] = threadIdx.x, fault->thread[1] = threadIdx.y, fault->thread[2] = threadIdx.z;
        words::store_release(&fault->state, 2u);
    }
    spin::stop_all(STOP_FAULT);
}

OXSHMEM_DEVICE bool pe(u32 call, int pe) {
    if (pe >= 0 && (u32)pe < oxshmem_state.n) return true;
    report(call, KIND_PE, pe, nullptr, 0);
    return false;
}

// Whether `bytes` bytes lie in the symmetric heap, from a multiple of `align` on.
OXSHMEM_DEVICE bool range(u32 call, int pe, const void* at, u64 bytes, u64 align) {
    const u64 offset = (u64)at - (u64)oxshmem_state.heap;
    if (offset > oxshmem_state.heap_bytes || bytes > oxshmem_state.heap_bytes - offset) {
        report(call, KIND_RANGE, pe, at, bytes);
        return false;
    }
    if ((u64)at % align != 0) {
        report(call, KIND_ALIGNMENT, pe, at, bytes);
        return false;
    }
    return true;
}

OXSHMEM_DEVICE bool target(u32 call, int pe, const void* at, u64 bytes, u64 align) {
    return check::pe(call, pe) && range(call, pe, at, bytes, align);
}

OXSHMEM_DEVICE bool team(u32 call, team_t team) {
    const bool exists = team >= 0 && (u32)team < words::load_relaxed(&oxshmem_state.shared->teams) &&
                        oxshmem_state.teams[team] != nullptr;
    if (!exists) report(call, KIND_TEAM, team, nullptr, 0);
    return exists;
}

OXSHMEM_DEVICE bool root(u32 call, int root, u32 n) {
    if (root >= 0 && (u32)root < n) return true;
    report(call, KIND_ROOT, root, nullptr, 0);
    return false;
}

OXSHMEM_DEVICE bool stride(u32 call, i64 stride) {
    if (stride >= 1) return true;
    report(call, KIND_STRIDE, stride, nullptr, 0);
    return false;
}

#else

OXSHMEM_DEVICE bool target(u32, int, const void*, u64, u64) { return true; }
OXSHMEM_DEVICE bool pe(u32, int) { return true; }
OXSHMEM_DEVICE bool range(u32, int, const void*, u64, u64) { return true; }
OXSHMEM_DEVICE bool team(u32, team_t) { return true; }
OXSHMEM_DEVICE bool root(u32, int, u32) { return true; }
OXSHMEM_DEVICE bool stride(u32, i64) { return true; }

#endif

}  // namespace check
}  // namespace oxshmem

// Copies by loads and stores. Each aligned word of the destination, up to 8 bytes, is stored whole and once: a
// waiter may watch one.

namespace oxshmem {
namespace copies {

// Loads of a thread's own memory, which the compiler may cache.
struct Plain {
    template <class Word>
    OXSHMEM_DEVICE Word load(const Word* at) {
        return *at;
    }
    OXSHMEM_DEVICE ulonglong2 load_pair(const u64* at) { return *(const ulonglong2*)at; }
};
// Loads of memory that others write meanwhile: a get that is repeated sees what has come.
struct Relaxed {
    template <class Word>
    OXSHMEM_DEVICE Word load(const Word* at) {
        return words::load_relaxed(at);
    }
    OXSHMEM_DEVICE ulonglong2 load_pair(const u64* at) { return words::load_pair_relaxed(at); }
};

// Bytes from any address as a word.
template <class Loads>
OXSHMEM_DEVICE u64 gather(const char* from, u32 bytes) {
    u64 word = 0;
#pragma unroll 1
    for (u32 i = 0; i < bytes; ++i) word |= (u64)Loads::load((const u8*)from + i) << (8 * i);
    return word;
}

template <class Loads, class Word>
OXSHMEM_DEVICE void copy_word(char* to, const char* from) {
    const bool is_whole = (u64)from % sizeof(Word) == 0;
    *(volatile Word*)to = is_whole ? Loads::load((const Word*)from) : (Word)gather<Loads>(from, sizeof(Word));
}

// Fewer than 16 bytes up to an alignment, or the rest behind one, by one thread.
template <class Loads>
OXSHMEM_OUTLINE void copy_few(char* to, const char* from, u64 bytes) {
    while (bytes > 0) {
        u32 step;
        if (bytes >= 8 && (u64)to % 8 == 0) {
            copy_word<Loads, u64>(to, from);
            step = 8;
        } else if (bytes >= 4 && (u64)to % 4 == 0) {
            copy_word<Loads, u32>(to, from);
            step = 4;
        } else if (bytes >= 2 && (u64)to % 2 == 0) {
            copy_word<Loads, u16>(to, from);
            step = 2;
        } else {
            copy_word<Loads, u8>(to, from);
            step = 1;
        }
        to += step;
        from += step;
        bytes -= step;
    }
}

// Two words of 8 bytes, from an address that is a multiple of 16, of 8, or of nothing.
template <class Loads>
struct Aligned16 {
    OXSHMEM_DEVICE ulonglong2 load(const char* from) { return Loads::load_pair((const u64*)from); }
};
template <class Loads>
struct Aligned8 {
    OXSHMEM_DEVICE ulonglong2 load(const char* from) {
        const u64* words = (const u64*)from;
        return ulonglong2{Loads::load(words), Loads::load(words + 1)};
    }
};
template <class Loads>
struct Unaligned {
    // The three aligned words that hold the bytes. Each holds one of them, so its page may be read.
    OXSHMEM_DEVICE ulonglong2 load(const char* from) {
        const u32 skip = (u32)((u64)from % 8);
        const u64* words = (const u64*)(from - skip);
        const u32 low = skip * 8, high = 64 - low;
        const u64 middle = Loads::load(words + 1);
        return ulonglong2{Loads::load(words) >> low | middle << high, middle >> low | Loads::load(words + 2) << high};
    }
};

// `count` vectors of 16 bytes to an aligned address. Four loads are under way before the first store.
template <class From>
OXSHMEM_OUTLINE void copy_vectors(char* to, const char* from, u64 count, u64 thread, u64 threads) {
    ulonglong2* out = (ulonglong2*)to;
    u64 i = thread;
    for (; i + 3 * threads < count; i += 4 * threads) {
        const ulonglong2 a = From::load(from + 16 * i);
        const ulonglong2 b = From::load(from + 16 * (i + threads));
        const ulonglong2 c = From::load(from + 16 * (i + 2 * threads));
        const ulonglong2 d = From::load(from + 16 * (i + 3 * threads));
        out[i] = a;
        out[i + threads] = b;
        out[i + 2 * threads] = c;
        out[i + 3 * threads] = d;
    }
    for (; i < count; i += threads) out[i] = From::load(from + 16 * i);
}

// Bytes of no particular alignment, by `threads` threads of which this is number `thread`.
template <class Loads>
OXSHMEM_OUTLINE void copy_any(char* to, const char* from, u64 bytes, u64 thread, u64 threads) {
    u64 head = (16 - (u64)to % 16) % 16;
    if (head > bytes) head = bytes;
    const u64 vectors = (bytes - head) / 16;
    const u64 tail = head + 16 * vectors;
    if (thread == 0) copy_few<Loads>(to, from, head);
    if (thread == threads - 1) copy_few<Loads>(to + tail, from + tail, bytes - tail);
    to += head;
    from += head;
    if ((u64)from % 16 == 0)
        copy_vectors<Aligned16<Loads>>(to, from, vectors, thread, threads);
    else if ((u64)from % 8 == 0)
        copy_vectors<Aligned8<Loads>>(to, from, vectors, thread, threads);
    else
        copy_vectors<Unaligned<Loads>>(to, from, vectors, thread, threads);
}

// A copy by all threads of a group. It orders nothing. One aligned word is the commonest and is not a call.
template <class Loads, class Scope>
OXSHMEM_DEVICE void copy(Scope scope, char* to, const char* from, u64 bytes) {
    if (bytes == 8 && ((u64)to | (u64)from) % 8 == 0) {
        if (scope.rank() == 0) *(volatile u64*)to = Loads::load((const u64*)from);
    } else {
        copy_any<Loads>(to, from, bytes, scope.rank(), scope.size());
    }
}

}  // namespace copies
}  // namespace oxshmem

// The threads that make a call together: one, a warp, or a block. All threads of the group make the call,
// with the same arguments (G1).

namespace oxshmem {

OXSHMEM_DEVICE u32 thread_in_block() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
OXSHMEM_DEVICE u32 threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }

enum ScopeKind : u32 {
    SCOPE_THREAD,
    SCOPE_WARP,
    SCOPE_BLOCK,
};

struct thread_scope {
    static constexpr ScopeKind KIND = SCOPE_THREAD;
    OXSHMEM_DEVICE u32 rank() { return 0; }
    OXSHMEM_DEVICE u32 size() { return 1; }
    OXSHMEM_DEVICE void sync() {}
};

// The lanes of a warp of so many.
OXSHMEM_DEVICE void sync_warp(u32 lanes) { __syncwarp(0xffffffffu >> (32 - lanes)); }

// A warp is 32 neighbours by thread number; the last of a block may have fewer.
struct warp_scope {
    static constexpr ScopeKind KIND = SCOPE_WARP;
    OXSHMEM_DEVICE u32 rank() { return thread_in_block() % 32; }
    OXSHMEM_DEVICE u32 size() {
        const u32 left = threads_of_block() - thread_in_block() / 32 * 32;
        return left < 32 ? left : 32;
    }
    OXSHMEM_DEVICE void sync() { sync_warp(size()); }
};

struct block_scope {
    static constexpr ScopeKind KIND = SCOPE_BLOCK;
    OXSHMEM_DEVICE u32 rank() { return thread_in_block(); }
    OXSHMEM_DEVICE u32 size() { return threads_of_block(); }
    OXSHMEM_DEVICE void sync() { __syncthreads(); }
};

OXSHMEM_DEVICE thread_scope thread() { return thread_scope(); }
OXSHMEM_DEVICE warp_scope warp() { return warp_scope(); }
OXSHMEM_DEVICE block_scope block() { return block_scope(); }

// A group of any scope, for code of which there is one copy for all scopes.
struct Group {
    ScopeKind kind;
    u32 number;    // of this thread
    u32 threads;

    template <class Scope>
    OXSHMEM_DEVICE Group of(Scope scope) {
        return Group{Scope::KIND, scope.rank(), scope.size()};
    }
    OXSHMEM_MEMBER u32 rank() const { return number; }
    OXSHMEM_MEMBER u32 size() const { return threads; }
    OXSHMEM_MEMBER void sync() const {
        if (kind == SCOPE_BLOCK)
            __syncthreads();
        else if (kind == SCOPE_WARP)
            sync_warp(threads);
    }
};

}  // namespace oxshmem

// Calls to the race detector for nonblocking calls (M37), in code that is built for it: `oxshmem cuda cc --check`.

#ifdef OXSHMEM_RACES
extern "C" __device__ void softcuda_operand(const volatile void* at, size_t bytes, unsigned kind);
extern "C" __device__ void softcuda_moves_operands(unsigned moves);
extern "C" __device__ void softcuda_completes(unsigned by);
#endif

namespace oxshmem {
namespace race {

// In the order of `Completes` in core/emulation/driver/src/race/pending.rs.
enum Completes : u32 { FLUSH, FENCE, QUIET };
// As `Operand` there.
enum Operand : u32 { SOURCE = 1, DEST, SIGNALLED, FETCHED };

#ifdef OXSHMEM_RACES

// The bytes that a call reads and writes until a quiet; null for those that this GPU does not reach: the host moves all then.
template <class Scope>
OXSHMEM_DEVICE void begin(Scope scope, const void* from, Operand from_as, void* to, Operand to_as, u64 bytes) {
    const u32 by_copy = from && to ? 0 : 16;
    if (scope.rank() == 0) {
        if (from) softcuda_operand(from, bytes, from_as | by_copy);
        if (to) softcuda_operand(to, bytes, to_as | 8 | by_copy);
    }
    softcuda_moves_operands(1);
}
OXSHMEM_DEVICE void end() { softcuda_moves_operands(0); }
// The fence is the beginning of that of a quiet: what others have told this thread by an atomic before is complete, too (G2).
OXSHMEM_DEVICE void completes(Completes by) {
    if (by == QUIET) __threadfence_system();
    softcuda_completes(by);
}

#else

template <class Scope>
OXSHMEM_DEVICE void begin(Scope, const void*, Operand, void*, Operand, u64) {}
OXSHMEM_DEVICE void end() {}
OXSHMEM_DEVICE void completes(Completes) {}

#endif

}  // namespace race
}  // namespace oxshmem

// Lanes of a warp that run a place of the code together, as chance has it. They may do once what each would do alone.

namespace oxshmem {

// The lanes that came to `Lanes::now()` at once. All of them come to each call of their group: no branch may lead one of them past it.
struct Lanes {
    u32 mask;
    u32 rank;   // lanes of the group before this one

    OXSHMEM_DEVICE Lanes now() {
        const u32 mask = __activemask();
        // Behind all that each of them did or saw comes what the first one does for all.
        __syncwarp(mask);
        return Lanes{mask, (u32)__popc(mask & before())};
    }
    OXSHMEM_MEMBER u32 count() const { return (u32)__popc(mask); }
    // The first lane's value.
    OXSHMEM_MEMBER u64 of_first(u64 value) const { return __shfl_sync(mask, value, __ffs((int)mask) - 1); }
    OXSHMEM_MEMBER bool all_say(bool yes) const { return __all_sync(mask, yes) != 0; }
    // Orders memory between them. The exchanges above do not.
    OXSHMEM_MEMBER void sync() const { __syncwarp(mask); }

    // A bit for each lane of the warp before this one.
#if OXSHMEM_PTX
    OXSHMEM_DEVICE u32 before() {
        u32 lanes;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes));
        return lanes;
    }
#else
    OXSHMEM_DEVICE u32 before() { return (1u << thread_in_block() % 32) - 1; }
#endif
};

}  // namespace oxshmem

// Requests to the host's progress thread, for PEs whose memory is not mapped for this GPU. One ring for a GPU; its
// requests are begun in the order of their tickets.
//
// A PE is reached in one way only: all by loads and stores, or all by the ring. So the order towards one PE (M17, G3)
// is kept within one way.

namespace oxshmem {
namespace ring {

// In the order of `Operation` in core/device/src/ring.rs.
enum Operation : u32 {
    OP_PUT,
    OP_PUT_VALUE,
    OP_GET,
    OP_GET_VALUE,
    OP_PUT_SIGNAL,
    OP_SIGNAL,
    OP_FETCH,
    OP_SET,
    OP_SWAP,
    OP_COMPARE_SWAP,
    OP_ADD,
    OP_FETCH_ADD,
    OP_AND,
    OP_FETCH_AND,
    OP_OR,
    OP_FETCH_OR,
    OP_XOR,
    OP_FETCH_XOR,
    OP_FENCE,
    OP_QUIET,
    OP_FLUSH,
};

struct Request {
    u32 operation;
    u32 width;       // bytes of a word; or the signal's operation; or whether a put or get is waited for
    u32 pe;
    u64 remote;      // offset in the heap there
    u64 local;       // address here: source of a put, destination of a get
    u64 bytes;
    u64 value;
    u64 compare;     // or the signal's offset
};

OXSHMEM_DEVICE u64 offset_of(const void* symmetric) { return (u64)symmetric - (u64)oxshmem_state.heap; }

// Waits until the host has read so many requests, whose slots are free then. Threads that find the credit used up ask the host; the
// answer serves all later ones. False if the wait was ended.
OXSHMEM_OUTLINE bool ask_for_credit(const Ring* ring, u64 wanted) {
    if (!spin::until_at_least(ring->taken, wanted)) return false;
    words::store_release(ring->credit, words::load_acquire(ring->taken));
    return true;
}
OXSHMEM_DEVICE bool has_credit(const Ring* ring, u64 wanted) {
    return spin::AtLeast{ring->credit, wanted}() || ask_for_credit(ring, wanted);
}

// The head of a request: its operation, width and PE, and how many lanes' requests of values are joined to it.
OXSHMEM_DEVICE u64 head_of(u32 operation, u32 width, u32 pe) { return (u64)operation | (u64)width << 8 | (u64)pe << 32; }
OXSHMEM_DEVICE u64 joined(u32 more) { return (u64)more << 16; }

// A ticket for each of some lanes, taken by the first one; gives the first ticket.
OXSHMEM_DEVICE u64 take_tickets(Ring* ring, const Lanes& lanes) {
    u64 first = 0;
    if (lanes.rank == 0) first = words::fetch_add(ring->head, (u64)lanes.count());
    first = lanes.of_first(first);
    // Each of them may ask at once whether the GPU has queued anything.
    lanes.sync();
    return first;
}

// Whether all lanes ask for neighbouring words of one PE, by the same operation on values.
OXSHMEM_DEVICE bool are_neighbours(const Lanes& lanes, u64 head, u64 remote) {
    const u32 operation = (u32)head & 0xff, width = (u32)(head >> 8) & 0xff;
    const u64 first_head = lanes.of_first(head), first_remote = lanes.of_first(remote);
    const bool follows = head == first_head && remote == first_remote + lanes.rank * width;
    return lanes.all_say(follows && (operation == OP_PUT_VALUE || operation == OP_GET_VALUE));
}

// Queues a request; gives its ticket. The release orders before it what this thread, and a barrier of its
// group, did before.
//
// Lanes that post at the same time take their tickets together, and all wait for room for the last one: until the host has read a
// request of a lap before it. That is older than every ticket of theirs, so none waits for a request that it holds back. Requests for
// neighbouring values become one, the first lane's. The slots of the others have the value at most.
OXSHMEM_OUTLINE u64 post_words(u64 head, u64 remote, u64 local, u64 bytes, u64 value, u64 compare) {
    Ring* ring = oxshmem_state.ring;
    const Lanes lanes = Lanes::now();
    const u64 mask = ring->mask, first = take_tickets(ring, lanes), ticket = first + lanes.rank;
    const u32 more = lanes.count() - 1;
    // A wait that was ended for one of them ends for all.
    if (!lanes.all_say(has_credit(ring, first + more - mask))) return ticket;
    u64* slot = ring->slots[ticket & mask].words;
    if (more && are_neighbours(lanes, head, remote)) {
        if (lanes.rank != 0 && (head & 0xff) == OP_PUT_VALUE) words::store_relaxed(slot + 4, value);
        lanes.sync();
        if (lanes.rank != 0) return ticket;
        head |= joined(more);
    }
    words::store_pair_relaxed(slot, head, remote);
    words::store_pair_relaxed(slot + 2, local, bytes);
    words::store_pair_relaxed(slot + 4, value, compare);
    words::store_release(slot + 7, ticket + 1);
    return ticket;
}
OXSHMEM_DEVICE u64 post(const Request& request) {
    const u64 head = head_of(request.operation, request.width, request.pe);
    return post_words(head, request.remote, request.local, request.bytes, request.value, request.compare);
}

OXSHMEM_DEVICE void await_source(u64 ticket) { spin::until_at_least(oxshmem_state.ring->sources_read, ticket + 1); }
OXSHMEM_DEVICE void await_done(u64 ticket) { spin::until_at_least(oxshmem_state.ring->done, ticket + 1); }

// Waits until the sources of all requests may be changed.
OXSHMEM_DEVICE void await_sources() {
    const Ring* ring = oxshmem_state.ring;
    if (ring) spin::until_at_least(ring->sources_read, words::load_relaxed((const u64*)ring->head));
}

struct AnswerIs {
    const Answer* answer;
    u64 ticket;

    OXSHMEM_MEMBER bool operator()() const { return words::load_acquire(&answer->ticket) == ticket; }
};

// Waits for the word that a request fetches. 0 if the job has failed.
//
// The place of the answer is that of the slot. Whoever used it a lap before frees it when it has read its value.
OXSHMEM_OUTLINE u64 await_answer(u64 ticket) {
    Ring* ring = oxshmem_state.ring;
    Answer* answer = &ring->answers[ticket & ring->mask];
    AnswerIs condition = {answer, ticket + 1};
    if (!spin::until(condition)) return 0;
    const u64 value = words::load_relaxed(&answer->value);
    words::store_release(&answer->ticket, (u64)0);
    return value;
}

OXSHMEM_DEVICE u64 fetch(const Request& request) { return await_answer(post(request)); }

// A request without operands, behind all that were queued before.
OXSHMEM_DEVICE u64 post_order(u32 operation) { return post(Request{operation, 0, 0, 0, 0, 0, 0, 0}); }

// Whether this GPU has queued anything that may not be complete.
OXSHMEM_DEVICE bool is_busy() {
    const Ring* ring = oxshmem_state.ring;
    return ring && words::load_relaxed(ring->done) != words::load_relaxed((const u64*)ring->head);
}

}  // namespace ring
}  // namespace oxshmem

// Put and get, of one thread or a group (M15, M16, G1).
//
// A put to a mapped PE is stores: its source may be changed when it returns. Blocking and nonblocking forms
// differ for PEs that are reached by the ring alone.

namespace oxshmem {

OXSHMEM_DEVICE int my_pe() { return (int)oxshmem_state.me; }
OXSHMEM_DEVICE int n_pes() { return (int)oxshmem_state.n; }

namespace rma {

// The distance from this PE's copies of symmetric objects to PE `pe`'s, where these are mapped for this GPU.
OXSHMEM_DEVICE i64 distance_to(int pe) { return oxshmem_state.distances[pe]; }
// Heaps lie at multiples of a page: the lower half tells.
OXSHMEM_DEVICE bool is_mapped(i64 distance) { return __builtin_expect((u32)distance != UNMAPPED, true); }
template <class T>
OXSHMEM_DEVICE T* at(T* symmetric, i64 distance) {
    return (T*)((u64)symmetric + (u64)distance);
}

// The copy of a symmetric object at PE `pe`, or null.
OXSHMEM_DEVICE void* copy_at(int pe, const void* symmetric) {
    const i64 distance = distance_to(pe);
    return is_mapped(distance) ? at((char*)symmetric, distance) : nullptr;
}

// A put without the group's meetings. The ticket of its request, plus one; 0 where there is none.
template <class Scope>
OXSHMEM_DEVICE u64 put_part(Scope scope, void* dest, const void* source, u64 bytes, int pe, bool is_blocking = false) {
    const i64 distance = distance_to(pe);
    if (is_mapped(distance)) {
        copies::copy<copies::Plain>(scope, at((char*)dest, distance), (const char*)source, bytes);
        return 0;
    }
    if (scope.rank() != 0 || bytes == 0) return 0;
    return 1 + ring::post(ring::Request{ring::OP_PUT, is_blocking, (u32)pe, ring::offset_of(dest), (u64)source, bytes, 0, 0});
}

template <class Scope>
OXSHMEM_DEVICE void put(Scope scope, u32 call, void* dest, const void* source, u64 bytes, u64 align, int pe,
                        bool is_blocking) {
    if (!check::target(call, pe, dest, bytes, align)) return;
    scope.sync();
    if (!is_blocking) race::begin(scope, source, race::SOURCE, copy_at(pe, dest), race::DEST, bytes);
    const u64 ticket = put_part(scope, dest, source, bytes, pe, is_blocking);
    if (!is_blocking) race::end();
    if (ticket && is_blocking) ring::await_source(ticket - 1);
    scope.sync();
}

template <class Scope>
OXSHMEM_DEVICE void get(Scope scope, void* dest, const void* source, u64 bytes, u64 align, int pe, bool is_blocking) {
    if (!check::target(check::CALL_GET, pe, source, bytes, align)) return;
    scope.sync();
    if (!is_blocking) race::begin(scope, copy_at(pe, source), race::FETCHED, dest, race::FETCHED, bytes);
    const i64 distance = distance_to(pe);
    if (is_mapped(distance)) {
        copies::copy<copies::Relaxed>(scope, (char*)dest, at((const char*)source, distance), bytes);
    } else if (scope.rank() == 0 && bytes > 0) {
        const ring::Request request = {ring::OP_GET, is_blocking, (u32)pe, ring::offset_of(source), (u64)dest, bytes, 0, 0};
        if (is_blocking)
            ring::fetch(request);
        else
            ring::post(request);
    }
    if (!is_blocking) race::end();
    scope.sync();
}

}  // namespace rma

// `n` elements to PE `pe`.
template <class Scope, class T>
OXSHMEM_DEVICE void put(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, n * sizeof(T), alignof(T), pe, true);
}
template <class T>
OXSHMEM_DEVICE void put(T* dest, const T* source, size_t n, int pe) {
    put(thread(), dest, source, n, pe);
}
template <class Scope, class T>
OXSHMEM_DEVICE void put_nbi(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, n * sizeof(T), alignof(T), pe, false);
}
template <class T>
OXSHMEM_DEVICE void put_nbi(T* dest, const T* source, size_t n, int pe) {
    put_nbi(thread(), dest, source, n, pe);
}

// `n` elements of PE `pe`.
template <class Scope, class T>
OXSHMEM_DEVICE void get(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::get(scope, dest, source, n * sizeof(T), alignof(T), pe, true);
}
template <class T>
OXSHMEM_DEVICE void get(T* dest, const T* source, size_t n, int pe) {
    get(thread(), dest, source, n, pe);
}
template <class Scope, class T>
OXSHMEM_DEVICE void get_nbi(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::get(scope, dest, source, n * sizeof(T), alignof(T), pe, false);
}
template <class T>
OXSHMEM_DEVICE void get_nbi(T* dest, const T* source, size_t n, int pe) {
    get_nbi(thread(), dest, source, n, pe);
}

// The same by bytes.
template <class Scope>
OXSHMEM_DEVICE void putmem(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, bytes, 1, pe, true);
}
template <class Scope>
OXSHMEM_DEVICE void putmem_nbi(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, bytes, 1, pe, false);
}
template <class Scope>
OXSHMEM_DEVICE void getmem(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::get(scope, dest, source, bytes, 1, pe, true);
}
template <class Scope>
OXSHMEM_DEVICE void getmem_nbi(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::get(scope, dest, source, bytes, 1, pe, false);
}

// One value of 1, 2, 4 or 8 bytes, stored whole.
template <class T>
OXSHMEM_DEVICE void p(T* dest, typename words::Same<T>::Type value, int pe) {
    if (!check::target(check::CALL_P, pe, dest, sizeof(T), sizeof(T))) return;
    const i64 distance = rma::distance_to(pe);
    if (rma::is_mapped(distance))
        words::store_relaxed(words::word_of(rma::at(dest, distance)), words::to_word<T>(value));
    else
        ring::post(ring::Request{ring::OP_PUT_VALUE, sizeof(T), (u32)pe, ring::offset_of(dest), 0, sizeof(T),
                                 words::to_word<T>(value), 0});
}

// One value of PE `pe`, loaded whole.
template <class T>
OXSHMEM_DEVICE T g(const T* source, int pe) {
    if (!check::target(check::CALL_G, pe, source, sizeof(T), sizeof(T))) return T();
    const i64 distance = rma::distance_to(pe);
    typedef typename words::Word<sizeof(T)>::Type Word;
    const Word word = rma::is_mapped(distance)
                          ? words::load_relaxed(words::word_of(rma::at(source, distance)))
                          : (Word)ring::fetch(ring::Request{ring::OP_GET_VALUE, sizeof(T), (u32)pe,
                                                             ring::offset_of(source), 0, sizeof(T), 0, 0});
    return words::from_word<T>(word);
}

// Strided put and get: element i goes from `source[i * source_stride]` to `dest[i * dest_stride]`. Strides are
// at least 1, in elements.
template <class Scope, class T>
OXSHMEM_DEVICE void iput(Scope scope, T* dest, const T* source, i64 dest_stride, i64 source_stride,
                         size_t n, int pe) {
    if (!check::stride(check::CALL_IPUT, dest_stride) || !check::stride(check::CALL_IPUT, source_stride)) return;
    const u64 span = n ? ((n - 1) * dest_stride + 1) * sizeof(T) : 0;
    if (!check::target(check::CALL_IPUT, pe, dest, span, alignof(T))) return;
    scope.sync();
    u64 ticket = 0;
    for (size_t i = scope.rank(); i < n; i += scope.size()) {
        const u64 own = rma::put_part(thread(), dest + i * dest_stride, source + i * source_stride, sizeof(T), pe, true);
        ticket = own ? own : ticket;
    }
    if (ticket) ring::await_source(ticket - 1);
    scope.sync();
}
template <class T>
OXSHMEM_DEVICE void iput(T* dest, const T* source, i64 dest_stride, i64 source_stride, size_t n, int pe) {
    iput(thread(), dest, source, dest_stride, source_stride, n, pe);
}
template <class Scope, class T>
OXSHMEM_DEVICE void iget(Scope scope, T* dest, const T* source, i64 dest_stride, i64 source_stride,
                         size_t n, int pe) {
    if (!check::stride(check::CALL_IGET, dest_stride) || !check::stride(check::CALL_IGET, source_stride)) return;
    const u64 span = n ? ((n - 1) * source_stride + 1) * sizeof(T) : 0;
    if (!check::target(check::CALL_IGET, pe, source, span, alignof(T))) return;
    scope.sync();
    for (size_t i = scope.rank(); i < n; i += scope.size())
        rma::get(thread(), dest + i * dest_stride, source + i * source_stride, sizeof(T), alignof(T), pe, true);
    scope.sync();
}
template <class T>
OXSHMEM_DEVICE void iget(T* dest, const T* source, i64 dest_stride, i64 source_stride, size_t n, int pe) {
    iget(thread(), dest, source, dest_stride, source_stride, n, pe);
}

// PE `pe`'s copy of a symmetric object for plain loads and stores, or null. The result is no symmetric address (M34).
template <class T>
OXSHMEM_DEVICE T* ptr(const T* symmetric, int pe) {
    if ((u32)pe >= oxshmem_state.n) return nullptr;
    const i64 distance = rma::distance_to(pe);
    return rma::is_mapped(distance) ? rma::at((T*)symmetric, distance) : nullptr;
}

}  // namespace oxshmem

// Order and completion. Both cover what the calling thread did, and what the program ordered before it: by a
// barrier of the group, or by a fence and an atomic at GPU scope or wider (G2). One thread may so complete a
// grid's work.

namespace oxshmem {

// Puts, signals and atomics to each PE before it are seen there before those after it, nonblocking ones
// included (M17, G3). Stores through `ptr` count.
OXSHMEM_DEVICE void fence() {
    race::completes(race::FENCE);
    words::fence_all();
    if (ring::is_busy()) ring::post_order(ring::OP_FENCE);
}

// Everything before it is complete: visible at its target, and fetched values have arrived (M19).
OXSHMEM_DEVICE void quiet() {
    if (ring::is_busy()) ring::await_done(ring::post_order(ring::OP_QUIET));
    race::completes(race::QUIET);
    // No later load is performed before it.
    words::fence_sequential();
}

// Sources of everything before it may be changed.
OXSHMEM_DEVICE void flush() {
    ring::await_sources();
    race::completes(race::FLUSH);
}

}  // namespace oxshmem

// Atomics and signals on words of GPU memory (M28 to M30). Every atomic on such a word is performed by the GPU that
// has it, whatever issued it (G5).

namespace oxshmem {
namespace atomics {

template <class T>
OXSHMEM_DEVICE ring::Request request(u32 operation, const T* at, int pe, T value, T compare) {
    return ring::Request{operation, sizeof(T), (u32)pe, ring::offset_of(at), 0, sizeof(T), words::to_word<T>(value),
                         words::to_word<T>(compare)};
}

}  // namespace atomics

// The value of a word.
template <class T>
OXSHMEM_DEVICE T atomic_fetch(const T* source, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, source, sizeof(T), sizeof(T))) return T();
    const i64 distance = rma::distance_to(pe);
    const T* at = rma::at(source, distance);
    typedef typename words::Word<sizeof(T)>::Type Word;
    const Word old = rma::is_mapped(distance) ? words::load_relaxed(words::word_of(at))
                                              : (Word)ring::fetch(atomics::request<T>(ring::OP_FETCH, source, pe, T(), T()));
    return words::from_word<T>(old);
}

template <class T>
OXSHMEM_DEVICE void atomic_set(T* dest, typename words::Same<T>::Type value, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return;
    const i64 distance = rma::distance_to(pe);
    T* at = rma::at(dest, distance);
    if (rma::is_mapped(distance))
        words::store_relaxed(words::word_of(at), words::to_word<T>(value));
    else
        ring::post(atomics::request<T>(ring::OP_SET, dest, pe, value, T()));
}

template <class T>
OXSHMEM_DEVICE T atomic_compare_swap(T* dest, typename words::Same<T>::Type compare, typename words::Same<T>::Type value, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();
    const i64 distance = rma::distance_to(pe);
    T* at = rma::at(dest, distance);
    typedef typename words::Word<sizeof(T)>::Type Word;
    const Word old = rma::is_mapped(distance)
                        ? words::compare_swap(words::word_of(at), words::to_word<T>(compare), words::to_word<T>(value))
                        : (Word)ring::fetch(atomics::request<T>(ring::OP_COMPARE_SWAP, dest, pe, value, compare));
    return words::from_word<T>(old);
}

#define OXSHMEM_FETCHING(name, function, operation)                                                    \
    template <class T>                                                                                 \
    OXSHMEM_DEVICE T name(T* dest, typename words::Same<T>::Type value, int pe) {                       \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();            \
        const i64 distance = rma::distance_to(pe);                                                     \
        T* at = rma::at(dest, distance);                                                               \
        typedef typename words::Word<sizeof(T)>::Type Word;                                            \
        const Word old = rma::is_mapped(distance)                                                      \
                            ? words::function(words::word_of(at), words::to_word<T>(value))            \
                            : (Word)ring::fetch(atomics::request<T>(ring::operation, dest, pe, value, T())); \
        return words::from_word<T>(old);                                                               \
    }
#define OXSHMEM_NOT_FETCHING(name, function, operation)                                                \
    template <class T>                                                                                 \
    OXSHMEM_DEVICE void name(T* dest, typename words::Same<T>::Type value, int pe) {                    \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return;                \
        const i64 distance = rma::distance_to(pe);                                                     \
        T* at = rma::at(dest, distance);                                                               \
        if (rma::is_mapped(distance))                                                                  \
            words::function(words::word_of(at), words::to_word<T>(value));                                \
        else                                                                                           \
            ring::post(atomics::request<T>(ring::operation, dest, pe, value, T()));                       \
    }

// Each gives the old value. Integers wrap; `swap` takes any type of 4 or 8 bytes.
OXSHMEM_FETCHING(atomic_swap, swap, OP_SWAP)
OXSHMEM_FETCHING(atomic_fetch_add, fetch_add, OP_FETCH_ADD)
OXSHMEM_FETCHING(atomic_fetch_and, fetch_and, OP_FETCH_AND)
OXSHMEM_FETCHING(atomic_fetch_or, fetch_or, OP_FETCH_OR)
OXSHMEM_FETCHING(atomic_fetch_xor, fetch_xor, OP_FETCH_XOR)
OXSHMEM_NOT_FETCHING(atomic_add, add, OP_ADD)
OXSHMEM_NOT_FETCHING(atomic_and, and_with, OP_AND)
OXSHMEM_NOT_FETCHING(atomic_or, or_with, OP_OR)
OXSHMEM_NOT_FETCHING(atomic_xor, xor_with, OP_XOR)

#undef OXSHMEM_FETCHING
#undef OXSHMEM_NOT_FETCHING

// The type in which numbers of a type are added and folded: 16-bit floating-point numbers in a wider one, for which whoever has their type
// makes this known. A result is rounded once.
template <class T>
struct Computed {
    typedef T Type;
    OXSHMEM_DEVICE Type of(T value) { return value; }
    OXSHMEM_DEVICE T rounded(Type value) { return value; }
};

namespace atomics {

// Sums of floating-point numbers: the memory's own for those that are mapped, else by swapping the word while nothing comes between.
#if OXSHMEM_PTX
#define OXSHMEM_REAL(T, bits, reg)                                                                     \
    OXSHMEM_DEVICE T fetch_add_mapped(T* at, T value) {                                                \
        T old;                                                                                         \
        asm volatile("atom.relaxed.sys.add.f" bits " %0, [%1], %2;"                                    \
                     : "=" reg(old)                                                                    \
                     : "l"(at), reg(value)                                                             \
                     : "memory");                                                                      \
        return old;                                                                                    \
    }                                                                                                  \
    OXSHMEM_DEVICE void add_mapped(T* at, T value) {                                                   \
        asm volatile("red.relaxed.sys.add.f" bits " [%0], %1;" ::"l"(at), reg(value) : "memory");      \
    }
OXSHMEM_REAL(float, "32", "f")
OXSHMEM_REAL(double, "64", "d")
#undef OXSHMEM_REAL
#endif

template <class T>
OXSHMEM_OUTLINE T fetch_add_by_swaps(T* dest, T value, int pe) {
    typedef typename words::Word<sizeof(T)>::Type Word;
    Word* word = words::word_of(dest);
    for (Word seen = atomic_fetch(word, pe);;) {
        const T old = words::from_word<T>(seen);
        const Word found = atomic_compare_swap(word, seen, words::to_word<T>(old + value), pe);
        if (found == seen) return old;
        seen = found;
    }
}

}  // namespace atomics

// Floating-point numbers.
#if OXSHMEM_PTX
#define OXSHMEM_REAL(T)                                                                                \
    OXSHMEM_DEVICE T atomic_fetch_add(T* dest, T value, int pe) {                                      \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();            \
        const i64 distance = rma::distance_to(pe);                                                     \
        return rma::is_mapped(distance) ? atomics::fetch_add_mapped(rma::at(dest, distance), value)    \
                                        : atomics::fetch_add_by_swaps(dest, value, pe);                \
    }                                                                                                  \
    OXSHMEM_DEVICE void atomic_add(T* dest, T value, int pe) {                                         \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return;                \
        const i64 distance = rma::distance_to(pe);                                                     \
        if (rma::is_mapped(distance))                                                                  \
            atomics::add_mapped(rma::at(dest, distance), value);                                       \
        else                                                                                           \
            (void)atomics::fetch_add_by_swaps(dest, value, pe);                                        \
    }
#else
#define OXSHMEM_REAL(T)                                                                                \
    OXSHMEM_DEVICE T atomic_fetch_add(T* dest, T value, int pe) {                                      \
        return atomics::fetch_add_by_swaps(dest, value, pe);                                           \
    }                                                                                                  \
    OXSHMEM_DEVICE void atomic_add(T* dest, T value, int pe) {                                         \
        (void)atomics::fetch_add_by_swaps(dest, value, pe);                                            \
    }
#endif
OXSHMEM_REAL(float)
OXSHMEM_REAL(double)
#undef OXSHMEM_REAL

// Words of 16 bits: by the word of 32 in which one lies, so that they go with each other's on all ways.
namespace atomics {

OXSHMEM_DEVICE u32* around(const void* at) { return (u32*)((u64)at & ~(u64)3); }
OXSHMEM_DEVICE u32 shift_of(const void* at) { return (u32)((u64)at & 2) * 8; }

template <class T>
struct Put16 {
    T value;
    OXSHMEM_MEMBER T operator()(T) const { return value; }
};
template <class T>
struct Add16 {
    T value;
    OXSHMEM_MEMBER T operator()(T old) const {
        return Computed<T>::rounded(Computed<T>::of(old) + Computed<T>::of(value));
    }
};

// Gives the old value.
template <class T, class Change>
OXSHMEM_OUTLINE T change16(T* dest, Change change, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();
    u32* word = around(dest);
    const u32 shift = shift_of(dest);
    for (u32 seen = atomic_fetch(word, pe);;) {
        const T old = words::from_word<T>((u16)(seen >> shift));
        const u32 next = (seen & ~(0xffffu << shift)) | (u32)words::to_word<T>(change(old)) << shift;
        const u32 found = atomic_compare_swap(word, seen, next, pe);
        if (found == seen) return old;
        seen = found;
    }
}

}  // namespace atomics

template <class T>
OXSHMEM_DEVICE T atomic_fetch16(const T* source, int pe) {
    const u32 seen = atomic_fetch(atomics::around(source), pe);
    return words::from_word<T>((u16)(seen >> atomics::shift_of(source)));
}
template <class T>
OXSHMEM_DEVICE T atomic_swap16(T* dest, typename words::Same<T>::Type value, int pe) {
    return atomics::change16(dest, atomics::Put16<T>{value}, pe);
}
template <class T>
OXSHMEM_DEVICE void atomic_set16(T* dest, typename words::Same<T>::Type value, int pe) {
    (void)atomic_swap16(dest, value, pe);
}
template <class T>
OXSHMEM_DEVICE T atomic_fetch_add16(T* dest, typename words::Same<T>::Type value, int pe) {
    return atomics::change16(dest, atomics::Add16<T>{value}, pe);
}
template <class T>
OXSHMEM_DEVICE void atomic_add16(T* dest, typename words::Same<T>::Type value, int pe) {
    (void)atomic_fetch_add16(dest, value, pe);
}

template <class T>
OXSHMEM_DEVICE void atomic_inc(T* dest, int pe) {
    atomic_add(dest, (T)1, pe);
}
template <class T>
OXSHMEM_DEVICE T atomic_fetch_inc(T* dest, int pe) {
    return atomic_fetch_add(dest, (T)1, pe);
}

// Sets a signal, or adds to it. It orders nothing before it; put_signal does, or a fence.
template <class Signal>
OXSHMEM_DEVICE void signal(Signal* signal, u64 value, SignalOperation operation, int pe) {
    if (!check::target(check::CALL_SIGNAL, pe, signal, 8, 8)) return;
    const i64 distance = rma::distance_to(pe);
    u64* at = words::signal_word(rma::at(signal, distance));
    if (!rma::is_mapped(distance))
        ring::post(ring::Request{ring::OP_SIGNAL, operation, (u32)pe, 0, 0, 0, value, ring::offset_of(signal)});
    else if (operation == SIGNAL_ADD)
        words::add(at, value);
    else
        words::store_relaxed(at, value);
}

namespace rma {

template <class Scope>
OXSHMEM_DEVICE void put_signal(Scope scope, void* dest, const void* source, u64 bytes, u64 align, u64* signal, u64 value,
                               SignalOperation operation, int pe, bool is_blocking) {
    if (!check::target(check::CALL_PUT_SIGNAL, pe, dest, bytes, align) ||
        !check::target(check::CALL_PUT_SIGNAL, pe, signal, 8, 8))
        return;
    scope.sync();
    if (!is_blocking) race::begin(scope, source, race::SOURCE, copy_at(pe, dest), race::SIGNALLED, bytes);
    const i64 distance = distance_to(pe);
    if (is_mapped(distance)) {
        copies::copy<copies::Plain>(scope, at((char*)dest, distance), (const char*)source, bytes);
        if (!is_blocking) race::end();
        // The barrier orders the other threads' stores before this one's release.
        scope.sync();
        if (scope.rank() == 0) {
            u64* word = at(signal, distance);
            if (operation == SIGNAL_ADD)
                words::add_release(word, value);
            else
                words::store_release(word, value);
        }
        return;
    }
    if (scope.rank() == 0) {
        const u64 ticket = ring::post(ring::Request{ring::OP_PUT_SIGNAL, operation, (u32)pe, ring::offset_of(dest),
                                                    (u64)source, bytes, value, ring::offset_of(signal)});
        if (is_blocking) ring::await_source(ticket);
    }
    if (!is_blocking) race::end();
    scope.sync();
}

}  // namespace rma

// A put, and then the signal: whoever sees the signal sees the data of this call (M22).
template <class Scope, class T, class Signal>
OXSHMEM_DEVICE void put_signal(Scope scope, T* dest, const T* source, size_t n, Signal* signal, u64 value,
                               SignalOperation operation, int pe) {
    rma::put_signal(scope, dest, source, n * sizeof(T), alignof(T), words::signal_word(signal), value, operation, pe, true);
}
template <class T, class Signal>
OXSHMEM_DEVICE void put_signal(T* dest, const T* source, size_t n, Signal* signal, u64 value, SignalOperation operation,
                               int pe) {
    put_signal(thread(), dest, source, n, signal, value, operation, pe);
}
template <class Scope, class T, class Signal>
OXSHMEM_DEVICE void put_signal_nbi(Scope scope, T* dest, const T* source, size_t n, Signal* signal, u64 value,
                                   SignalOperation operation, int pe) {
    rma::put_signal(scope, dest, source, n * sizeof(T), alignof(T), words::signal_word(signal), value, operation, pe, false);
}
template <class T, class Signal>
OXSHMEM_DEVICE void put_signal_nbi(T* dest, const T* source, size_t n, Signal* signal, u64 value,
                                   SignalOperation operation, int pe) {
    put_signal_nbi(thread(), dest, source, n, signal, value, operation, pe);
}

}  // namespace oxshmem

// Comparisons of a word with a value, by number.

namespace oxshmem {

// In the order of `Cmp` in core/oxshmem/src/wait_until.rs.
enum Compare : u32 {
    CMP_EQ,
    CMP_NE,
    CMP_GT,
    CMP_GE,
    CMP_LT,
    CMP_LE,
};

namespace waits {

template <class T>
OXSHMEM_DEVICE bool holds(T seen, Compare compare, T value) {
    switch (compare) {
        case CMP_EQ: return seen == value;
        case CMP_NE: return seen != value;
        case CMP_GT: return seen > value;
        case CMP_GE: return seen >= value;
        case CMP_LT: return seen < value;
        default: return seen <= value;
    }
}

}  // namespace waits
}  // namespace oxshmem

// Waits and tests on words of this PE (M22, M23, G6): 2, 4 or 8 bytes, integers. When one succeeds, later reads of its
// thread see what the writer had ordered before the word. A wait ends without success only when the job has failed.

namespace oxshmem {
namespace waits {

template <class T>
OXSHMEM_DEVICE T load(const T* word) {
    return words::from_word<T>(words::load_relaxed(words::word_of(word)));
}

// After a word was seen by a relaxed load: what its writer ordered before it is visible from here on.
OXSHMEM_DEVICE void acquire() {
    words::fence_all();
    // A NIC's writes may be late for the GPU: the host makes them visible.
    if ((oxshmem_state.flags & FLUSH_AFTER_WAIT) && oxshmem_state.ring)
        ring::await_done(ring::post_order(ring::OP_FLUSH));
}

template <class T>
struct Holds {
    const T* word;
    Compare compare;
    T value;
    T seen;

    OXSHMEM_MEMBER bool operator()() {
        seen = load(word);
        return holds(seen, compare, value);
    }
};

// Words, of which those whose status is not 0 are left out, compared with one value or each with its own.
template <class T>
struct Set {
    T* words;
    size_t n;
    const int* status;
    Compare compare;
    const T* values;
    u32 step;   // 0: one value for all; 1: one for each

    OXSHMEM_MEMBER bool has(size_t i) const { return !status || status[i] == 0; }
    OXSHMEM_MEMBER bool holds(size_t i) const { return waits::holds(load(words + i), compare, values[i * step]); }
    OXSHMEM_MEMBER bool is_empty() const {
        for (size_t i = 0; i < n; ++i)
            if (has(i)) return false;
        return true;
    }
    OXSHMEM_MEMBER bool check(u32 call) const {
        return check::range(call, my_pe(), words, n * sizeof(T), sizeof(T));
    }
    // Whether all hold. The first of which it is not known yet is `*from`.
    OXSHMEM_MEMBER bool all(size_t* from) const {
        for (; *from < n; ++*from)
            if (has(*from) && !holds(*from)) return false;
        return true;
    }
    // One that holds, looked for from `start` on; SIZE_MAX if none does.
    OXSHMEM_MEMBER size_t any(size_t start) const {
        for (size_t k = 0; k < n; ++k) {
            const size_t i = (start + k) % n;
            if (has(i) && holds(i)) return i;
        }
        return (size_t)-1;
    }
    OXSHMEM_MEMBER size_t some(size_t* indices) const {
        size_t found = 0;
        for (size_t i = 0; i < n; ++i)
            if (has(i) && holds(i)) indices[found++] = i;
        return found;
    }
};

template <class T>
struct All {
    const Set<T>& set;
    size_t from;
    OXSHMEM_MEMBER bool operator()() { return set.all(&from); }
};
template <class T>
struct Any {
    const Set<T>& set;
    size_t start;
    size_t found;
    OXSHMEM_MEMBER bool operator()() { return (found = set.any(start)) != (size_t)-1; }
};
template <class T>
struct Some {
    const Set<T>& set;
    size_t* indices;
    size_t found;
    OXSHMEM_MEMBER bool operator()() { return (found = set.some(indices)) != 0; }
};

// Another start for each call, so that no word is passed over for ever.
OXSHMEM_DEVICE size_t next_start(size_t n) { return n ? words::fetch_add(&oxshmem_state.shared->turn, 1u) % n : 0; }

template <class T>
OXSHMEM_OUTLINE void wait_all(Set<T> set) {
    if (!set.check(check::CALL_WAIT) || set.is_empty()) return;
    All<T> condition = {set, 0};
    spin::until(condition);
    acquire();
}
template <class T>
OXSHMEM_OUTLINE size_t wait_any(Set<T> set) {
    if (!set.check(check::CALL_WAIT) || set.is_empty()) return (size_t)-1;
    Any<T> condition = {set, next_start(set.n), (size_t)-1};
    spin::until(condition);
    acquire();
    return condition.found;
}
template <class T>
OXSHMEM_OUTLINE size_t wait_some(Set<T> set, size_t* indices) {
    if (!set.check(check::CALL_WAIT) || set.is_empty()) return 0;
    Some<T> condition = {set, indices, 0};
    spin::until(condition);
    acquire();
    return condition.found;
}
template <class T>
OXSHMEM_OUTLINE int test_all(Set<T> set) {
    size_t from = 0;
    if (!set.check(check::CALL_TEST)) return 0;
    if (set.is_empty()) return 1;
    if (!set.all(&from)) return 0;
    acquire();
    return 1;
}
template <class T>
OXSHMEM_OUTLINE size_t test_any(Set<T> set) {
    if (!set.check(check::CALL_TEST) || set.is_empty()) return (size_t)-1;
    const size_t found = set.any(next_start(set.n));
    if (found != (size_t)-1) acquire();
    return found;
}
template <class T>
OXSHMEM_OUTLINE size_t test_some(Set<T> set, size_t* indices) {
    if (!set.check(check::CALL_TEST)) return 0;
    const size_t found = set.some(indices);
    if (found != 0) acquire();
    return found;
}

// The value at which a wait ended.
template <class T>
OXSHMEM_OUTLINE T wait(const T* word, Compare compare, T value) {
    Holds<T> condition = {word, compare, value, T()};
    if (!check::range(check::CALL_WAIT, my_pe(), word, sizeof(T), sizeof(T))) return condition.seen;
    spin::until(condition);
    acquire();
    return condition.seen;
}

}  // namespace waits

template <class T>
OXSHMEM_DEVICE void wait_until(const T* word, Compare compare, typename words::Same<T>::Type value) {
    waits::wait<T>(word, compare, value);
}
template <class T>
OXSHMEM_DEVICE int test(const T* word, Compare compare, typename words::Same<T>::Type value) {
    if (!check::range(check::CALL_TEST, my_pe(), word, sizeof(T), sizeof(T))) return 0;
    if (!waits::holds<T>(waits::load(word), compare, value)) return 0;
    waits::acquire();
    return 1;
}

// The value at which the wait ended.
template <class Signal>
OXSHMEM_DEVICE u64 signal_wait_until(const Signal* signal, Compare compare, u64 value) {
    return waits::wait((const u64*)words::signal_word((Signal*)signal), compare, value);
}
// The value of a signal of this PE. The data of the put_signal that gave it this value is visible (M22).
template <class Signal>
OXSHMEM_DEVICE u64 signal_fetch(const Signal* signal) {
    const u64 seen = waits::load((const u64*)words::signal_word((Signal*)signal));
    waits::acquire();
    return seen;
}

// Forms for several words: `status[i]` other than 0 leaves word i out, and `status` may be null. If all are left
// out, waits return at once: `any` with SIZE_MAX, `some` with 0. The vector forms have a value for each word.
#define OXSHMEM_SEVERAL(suffix, Values, values, step)                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE void wait_until_all##suffix(T* words, size_t n, const int* status, Compare compare, Values) { \
        waits::wait_all(waits::Set<T>{words, n, status, compare, values, step});                               \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t wait_until_any##suffix(T* words, size_t n, const int* status, Compare compare, Values) { \
        return waits::wait_any(waits::Set<T>{words, n, status, compare, values, step});                        \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t wait_until_some##suffix(T* words, size_t n, size_t* indices, const int* status,      \
                                                  Compare compare, Values) {                                   \
        return waits::wait_some(waits::Set<T>{words, n, status, compare, values, step}, indices);              \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE int test_all##suffix(T* words, size_t n, const int* status, Compare compare, Values) {      \
        return waits::test_all(waits::Set<T>{words, n, status, compare, values, step});                        \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t test_any##suffix(T* words, size_t n, const int* status, Compare compare, Values) {   \
        return waits::test_any(waits::Set<T>{words, n, status, compare, values, step});                        \
    }                                                                                                          \
    template <class T>                                                                                         \
    OXSHMEM_DEVICE size_t test_some##suffix(T* words, size_t n, size_t* indices, const int* status,            \
                                            Compare compare, Values) {                                         \
        return waits::test_some(waits::Set<T>{words, n, status, compare, values, step}, indices);              \
    }
OXSHMEM_SEVERAL(, typename words::Same<T>::Type value, &value, 0)
OXSHMEM_SEVERAL(_vector, const T* values, values, 1)
#undef OXSHMEM_SEVERAL

}  // namespace oxshmem

// Teams, barrier and sync. The host makes teams; their numbers are valid in kernels.
//
// One collective call of a team is under way at a time (NVSHMEM's rule): the program orders them, with the same calls
// in the same order on all members (M36). All members' kernels must run at once.

namespace oxshmem {
namespace teams {

OXSHMEM_DEVICE Team* find(team_t team) { return oxshmem_state.teams[team]; }
OXSHMEM_DEVICE int pe_of(const Team* team, u32 member) { return (int)team->members[member]; }

// Tells other members that this one has reached call `epoch`, behind what the group did before.
OXSHMEM_OUTLINE void tell(Group group, const Team* team, u64 epoch) {
    // The first thread alone has queued requests since the group met.
    if (group.rank() == 0 && ring::is_busy()) ring::post_order(ring::OP_FENCE);
    group.sync();
    for (u32 i = group.rank(); i < team->n; i += group.size()) {
        if (i == team->me) continue;
        const int pe = pe_of(team, i);
        u64* word = team->words + team->me;
        const i64 distance = rma::distance_to(pe);
        if (rma::is_mapped(distance))
            words::store_release(rma::at(word, distance), epoch);
        else
            ring::post(ring::Request{ring::OP_SIGNAL, SIGNAL_SET, (u32)pe, 0, 0, 0, epoch, ring::offset_of(word)});
    }
    // The sources may be changed from here on.
    if (group.rank() == 0) ring::await_sources();
}

// Waits until member `i` has told of call `epoch`, for this thread alone.
OXSHMEM_DEVICE void hear(const Team* team, u32 i, u64 epoch) {
    if (i != team->me) spin::until_at_least(team->words + i, epoch);
}

// Waits for all members, for the whole group.
OXSHMEM_OUTLINE void hear_all(Group group, const Team* team, u64 epoch) {
    for (u32 i = group.rank(); i < team->n; i += group.size()) hear(team, i, epoch);
    group.sync();
    if (!(oxshmem_state.flags & FLUSH_AFTER_WAIT)) return;
    if (group.rank() == 0) waits::acquire();
    group.sync();
}

// One collective call of a group, or a round of one: its number, which all members give it alike.
struct Call {
    Group group;
    Team* team;
    u64 epoch;

    // The number is read by all threads before one of them changes it.
    OXSHMEM_DEVICE Call begin(Group group, Team* team) {
        const u64 epoch = words::load_relaxed((const u64*)&team->epoch) + 1;
        group.sync();
        return Call{group, team, epoch};
    }
    OXSHMEM_MEMBER void tell() const { teams::tell(group, team, epoch); }
    OXSHMEM_MEMBER void hear_all() const { teams::hear_all(group, team, epoch); }
    // The end, for a call in which every member has heard of all, or not.
    OXSHMEM_MEMBER void end(bool has_met) const {
        if (group.rank() == 0) {
            words::store_relaxed(&team->epoch, epoch);
            if (has_met) words::store_relaxed(&team->met, epoch);
        }
        group.sync();
    }
};

OXSHMEM_OUTLINE int sync(Group group, team_t team) {
    if (!check::team(check::CALL_BARRIER, team)) return -1;
    const Call call = Call::begin(group, find(team));
    call.tell();
    call.hear_all();
    call.end(true);
    return 0;
}

}  // namespace teams

OXSHMEM_DEVICE int team_my_pe(team_t team) {
    return check::team(check::CALL_TEAM, team) ? (int)teams::find(team)->me : -1;
}
OXSHMEM_DEVICE int team_n_pes(team_t team) {
    return check::team(check::CALL_TEAM, team) ? (int)teams::find(team)->n : -1;
}
// The number in `dest` of PE `pe` of `source`; -1 if it is no member.
OXSHMEM_DEVICE int team_translate_pe(team_t source, int pe, team_t dest) {
    if (!check::team(check::CALL_TEAM, source) || !check::team(check::CALL_TEAM, dest)) return -1;
    const Team *from = teams::find(source), *to = teams::find(dest);
    if (pe < 0 || (u32)pe >= from->n) return -1;
    const int world = teams::pe_of(from, (u32)pe);
    for (u32 i = 0; i < to->n; ++i)
        if (teams::pe_of(to, i) == world) return (int)i;
    return -1;
}

// Waits until all members have called it. It completes nothing (M24).
template <class Scope>
OXSHMEM_DEVICE int sync(Scope scope, team_t team) {
    return teams::sync(Group::of(scope), team);
}
OXSHMEM_DEVICE int sync(team_t team) { return sync(thread(), team); }

// A quiet of each member, and a sync: all see all that was done before (M24, M25).
template <class Scope>
OXSHMEM_DEVICE int barrier(Scope scope, team_t team) {
    scope.sync();
    if (scope.rank() == 0) quiet();
    return sync(scope, team);
}
OXSHMEM_DEVICE int barrier(team_t team) { return barrier(thread(), team); }

template <class Scope>
OXSHMEM_DEVICE void barrier_all(Scope scope) {
    barrier(scope, TEAM_WORLD);
}
OXSHMEM_DEVICE void barrier_all() { barrier(thread(), TEAM_WORLD); }
template <class Scope>
OXSHMEM_DEVICE void sync_all(Scope scope) {
    sync(scope, TEAM_WORLD);
}
OXSHMEM_DEVICE void sync_all() { sync(thread(), TEAM_WORLD); }

}  // namespace oxshmem

// Collective calls on data. Each member pushes what others need: by stores to those that are mapped, by the ring to others.
// Every element of a result is folded in the order of members, so that all members get the same bits.

namespace oxshmem {

// The operations of reductions and scans. A first operand that is NaN stays as least or greatest.
struct Sum {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a + b;
    }
};
struct Product {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a * b;
    }
};
struct Min {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return b < a ? b : a;
    }
};
struct Max {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a < b ? b : a;
    }
};
struct And {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a & b;
    }
};
struct Or {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a | b;
    }
};
struct Xor {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a ^ b;
    }
};

namespace collectives {

using teams::Call;

// A copy of a group to a member's memory, or within its own.
OXSHMEM_OUTLINE void give(Call call, u32 member, void* to, const void* from, u64 bytes) {
    if (member != call.team->me)
        rma::put_part(call.group, to, from, bytes, teams::pe_of(call.team, member));
    else if (to != from)
        copies::copy<copies::Plain>(call.group, (char*)to, (const char*)from, bytes);
}

// The `k`-th member from this one on: each member begins with itself, so that not all push to one.
OXSHMEM_DEVICE u32 from_me(const Team* team, u32 k) { return (team->me + k) % team->n; }

// The two halves of a team's scratch memory are used by turns. A half has a place for each member.
OXSHMEM_DEVICE char* place(const Call& call, u32 member) {
    return call.team->scratch + ((call.epoch & 1) * call.team->n + member) * call.team->place;
}

// Every member has heard of all in this round.
OXSHMEM_DEVICE void note_met(const Call& call) {
    if (call.group.rank() == 0) words::store_relaxed(&call.team->met, call.epoch);
    call.group.sync();
}

// Takes this round's half of the scratch memory; gives the round in which it is free. That is the next one if it is not known yet that
// all members have read what was there: all members know alike, so all wait, or none.
OXSHMEM_OUTLINE u64 take_half(Call call) {
    Team* team = call.team;
    const u64 used = words::load_relaxed((const u64*)&team->half_used[call.epoch & 1]);
    const u64 met = words::load_relaxed((const u64*)&team->met);
    call.group.sync();
    if (used != 0 && met <= used) {
        call.tell();
        call.hear_all();
        note_met(call);
        // The other half is free now, too.
        ++call.epoch;
    }
    if (call.group.rank() == 0) words::store_relaxed(&team->half_used[call.epoch & 1], call.epoch);
    return call.epoch;
}
OXSHMEM_DEVICE u64 take_next_half(Call call) {
    note_met(call);
    ++call.epoch;
    return take_half(call);
}

// Bytes to this member's place at each member, of which member i gets those from `step * i` on; behind them, the word of it.
// The group has met when it took the half.
OXSHMEM_OUTLINE void exchange(Call call, const void* source, u64 step, u64 bytes) {
    for (u32 k = 0; k < call.team->n; ++k) {
        const u32 i = from_me(call.team, k);
        give(call, i, place(call, call.team->me), (const char*)source + step * i, bytes);
    }
    call.tell();
    call.hear_all();
}

// Members `first` to `last` of a half, folded into `out`.
template <class Operation, class T>
OXSHMEM_OUTLINE void fold(Call call, u32 first, u32 last, T* out, u64 elements) {
    for (u64 e = call.group.rank(); e < elements; e += call.group.size()) {
        typedef typename Computed<T>::Type Value;
        Value value = Computed<T>::of(((const T*)place(call, first))[e]);
        for (u32 i = first + 1; i <= last; ++i) value = Operation::of(value, Computed<T>::of(((const T*)place(call, i))[e]));
        out[e] = Computed<T>::rounded(value);
    }
    call.group.sync();
}

OXSHMEM_OUTLINE int broadcast(Group group, team_t number, void* dest, const void* source, u64 bytes, u64 align, int root) {
    if (!check::team(check::CALL_BROADCAST, number)) return -1;
    Team* team = teams::find(number);
    if (!check::root(check::CALL_BROADCAST, root, team->n) || !check::range(check::CALL_BROADCAST, my_pe(), dest, bytes, align))
        return -1;
    const Call call = Call::begin(group, team);
    if (team->me == (u32)root) {
        for (u32 i = 0; i < team->n; ++i) give(call, i, dest, source, bytes);
        call.tell();
    } else {
        if (group.rank() == 0) {
            teams::hear(team, (u32)root, call.epoch);
            waits::acquire();
        }
    }
    // All meet here.
    call.end(false);
    return 0;
}

// `bytes` bytes for each member, from the source's byte `step * i` on for member i, to this member's block of its dest.
OXSHMEM_OUTLINE int spread(u32 call_number, Group group, team_t number, void* dest, const void* source, u64 bytes, u64 step, u64 align) {
    if (!check::team(call_number, number)) return -1;
    Team* team = teams::find(number);
    if (!check::range(call_number, my_pe(), dest, team->n * bytes, align)) return -1;
    const Call call = Call::begin(group, team);
    for (u32 k = 0; k < team->n; ++k) {
        const u32 i = from_me(team, k);
        give(call, i, (char*)dest + team->me * bytes, (const char*)source + step * i, bytes);
    }
    call.tell();
    call.hear_all();
    call.end(true);
    return 0;
}

// Block i of all members' sources, `n` elements from the source's element `step * i` on, folded over members `first` to `last`, at
// member i. Gives the call's last round.
template <class Operation, class T>
OXSHMEM_OUTLINE u64 fold_all(Call call, T* dest, const T* source, u64 n, u64 step, u32 first, u32 last) {
    const u64 most = call.team->place / sizeof(T);
    call.epoch = take_half(call);
    for (u64 done = 0;; done += most) {
        const u64 now = n - done < most ? n - done : most;
        exchange(call, source + done, step * sizeof(T), now * sizeof(T));
        fold<Operation>(call, first, last, dest + done, now);
        if (done + now >= n) return call.epoch;
        call.epoch = take_next_half(call);
    }
}

// A reduction in two steps, for long vectors: each member folds its share and pushes the result to all.
template <class Operation, class T>
OXSHMEM_OUTLINE u64 fold_shares(Call call, T* dest, const T* source, u64 n) {
    Team* team = call.team;
    const u64 share = team->place / sizeof(T);
    call.epoch = take_half(call);
    for (u64 done = 0; done < n; done += share * team->n) {
        if (done) call.epoch = take_next_half(call);
        u64 mine = 0;
        for (u32 k = 0; k < team->n; ++k) {
            const u32 i = from_me(team, k);
            const u64 start = done + i * share;
            const u64 left = start < n ? n - start : 0;
            const u64 now = left < share ? left : share;
            if (i == team->me) mine = now;
            give(call, i, place(call, team->me), source + start, now * sizeof(T));
        }
        call.tell();
        call.hear_all();
        T* at = dest + done + team->me * share;
        if (mine) {
            fold<Operation>(call, 0, team->n - 1, at, mine);
            for (u32 k = 1; k < team->n; ++k) give(call, from_me(team, k), at, at, mine * sizeof(T));
        }
        note_met(call);
        ++call.epoch;
        call.tell();
        call.hear_all();
    }
    return call.epoch;
}

// The team of a call whose dest has `n` elements; null after a bad call.
template <class T>
OXSHMEM_DEVICE Team* checked(u32 call_number, team_t number, const T* dest, u64 n) {
    if (!check::team(call_number, number) || !check::range(call_number, my_pe(), dest, n * sizeof(T), alignof(T))) return nullptr;
    return teams::find(number);
}

template <class Operation, class T>
OXSHMEM_OUTLINE int reduce(Group group, team_t number, T* dest, const T* source, u64 n) {
    Team* team = checked(check::CALL_REDUCE, number, dest, n);
    if (!team) return -1;
    if (n == 0) return 0;
    Call call = Call::begin(group, team);
    call.epoch = n * sizeof(T) <= team->place || team->n == 1
                     ? fold_all<Operation>(call, dest, source, n, 0, 0, team->n - 1)
                     : fold_shares<Operation>(call, dest, source, n);
    call.end(true);
    return 0;
}

template <class Operation, class T>
OXSHMEM_OUTLINE int reduce_scatter(Group group, team_t number, T* dest, const T* source, u64 n) {
    Team* team = checked(check::CALL_REDUCE_SCATTER, number, dest, n);
    if (!team) return -1;
    if (n == 0) return 0;
    Call call = Call::begin(group, team);
    call.epoch = fold_all<Operation>(call, dest, source, n, n, 0, team->n - 1);
    call.end(true);
    return 0;
}

// A prefix fold, with this member's own elements or without.
template <class Operation, class T>
OXSHMEM_OUTLINE int scan(Group group, team_t number, T* dest, const T* source, u64 n, bool is_inclusive) {
    Team* team = checked(check::CALL_SCAN, number, dest, n);
    if (!team) return -1;
    if (n == 0) return 0;
    Call call = Call::begin(group, team);
    const bool is_empty = !is_inclusive && team->me == 0;
    call.epoch = fold_all<Operation>(call, dest, source, n, 0, 0, is_inclusive || is_empty ? team->me : team->me - 1);
    if (is_empty)
        for (u64 e = group.rank(); e < n; e += group.size()) dest[e] = T();
    call.end(true);
    return 0;
}

}  // namespace collectives

// `n` elements of the root's source to every member's dest. The root's own dest is written, too.
template <class Scope, class T>
OXSHMEM_DEVICE int broadcast(Scope scope, team_t team, T* dest, const T* source, size_t n, int root) {
    return collectives::broadcast(Group::of(scope), team, dest, source, n * sizeof(T), alignof(T), root);
}

// Every member's `n` elements, in the order of members, to every member's dest.
template <class Scope, class T>
OXSHMEM_DEVICE int fcollect(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::spread(check::CALL_FCOLLECT, Group::of(scope), team, dest, source, n * sizeof(T), 0, alignof(T));
}

// Element block i of the source, `n` elements, to member i's block of this member.
template <class Scope, class T>
OXSHMEM_DEVICE int alltoall(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    const u64 bytes = n * sizeof(T);
    return collectives::spread(check::CALL_ALLTOALL, Group::of(scope), team, dest, source, bytes, bytes, alignof(T));
}

// Every element of all members' sources, folded, to every member's dest. Dest and source may be one.
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int reduce(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::reduce<Operation>(Group::of(scope), team, dest, source, n);
}

// Block i of all members' sources, `n` elements, folded, to member i's dest.
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int reduce_scatter(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::reduce_scatter<Operation>(Group::of(scope), team, dest, source, n);
}

// Prefix folds over the members: the inclusive one counts this member's own elements. The first member's dest of
// an exclusive scan is zero.
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int inscan(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::scan<Operation>(Group::of(scope), team, dest, source, n, true);
}
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int exscan(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::scan<Operation>(Group::of(scope), team, dest, source, n, false);
}

}  // namespace oxshmem

// The announcement of an image to the host's library, which fills its state in shmemx_cuda_init. Host code of the CUDA runtime
// alone has it. The declarations are there in both halves of a source, since compilers read host functions in both. A program
// without that library fills the state by DeviceLibrary::prepare.

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)

// In the form of `Image` in core/oxshmem/src/bindings/images.rs.
struct oxshmem_image {
    unsigned abi;
    // The state's address on a device, which becomes the thread's own. An error of the runtime, or 0.
    int (*locate)(int device, void** state);
    const char* (*error)(int code);
};

extern "C" {
// Null in programs that are not linked with the library.
__attribute__((weak)) void oxshmem_register_image(const oxshmem_image* image);
__attribute__((weak)) void oxshmem_unregister_image(const oxshmem_image* image);
}

#if !defined(__CUDA_ARCH__)
namespace oxshmem {
namespace {

// By the program's own runtime, which alone knows the variables of its images.
struct ThisImage {
    const oxshmem_image image = {ABI << 16 | sizeof(State), locate, error};

    ThisImage() {
        if (oxshmem_register_image) oxshmem_register_image(&image);
    }
    ~ThisImage() {
        if (oxshmem_unregister_image) oxshmem_unregister_image(&image);
    }
    ThisImage(const ThisImage&) = delete;

    static int locate(int device, void** state) {
        int current = device;
        cudaError_t error = cudaGetDevice(&current);
        // A thread that is at the device already keeps its context, which may be the program's own.
        if (error == cudaSuccess && current != device) error = cudaSetDevice(device);
        return error != cudaSuccess ? error : cudaGetSymbolAddress(state, oxshmem_state);
    }
    static const char* error(int code) { return cudaGetErrorString((cudaError_t)code); }
} this_image;

}  // namespace
}  // namespace oxshmem
#endif

#endif
