// The state by which a kernel finds its PE, its peers and the job.
//
// The host fills one state for each loaded image (DeviceLibrary::prepare in Rust). It writes it before
// the kernels that use it, and changes later only what the pointers in it lead to.
#pragma once

#include "inbox.cuh"

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
