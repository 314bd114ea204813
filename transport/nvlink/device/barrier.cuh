// The barrier of a team, on a stream.
#pragma once

#include "stoppable.cuh"

#ifdef SOFTCUDA
#pragma softcuda uses_barriers oxshmem_barrier
#endif

struct Arrived {
    const u64* word;
    u64 epoch;

    // Words wrap; a member is at most one barrier ahead.
    __device__ bool operator()() const { return (i64)(load_acquire(word) - epoch) >= 0; }
};

// `words[j]` is member j's array of `members` words, as mapped here; its word i is written by member
// i alone. `epoch` counts the barriers that this team has passed: it lies in memory, not among the
// arguments, so that a captured launch can be replayed. One block; its threads share the members.
extern "C" __global__ void oxshmem_barrier(u64* const* words, u32 members, u32 me, u64* epoch,
                                           const u32* stop, u32* status) {
    const u64 next = *epoch + 1;
    for (u32 peer = threadIdx.x; peer < members; peer += blockDim.x)
        if (peer != me) store_release(words[peer] + me, next);
    for (u32 peer = threadIdx.x; peer < members; peer += blockDim.x)
        if (peer != me) await(Arrived{words[me] + peer, next}, stop, status);
    __syncthreads();
    if (threadIdx.x == 0) *epoch = next;
}
