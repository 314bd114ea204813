// Atomics on this GPU's words that other PEs' hosts ask for (M29: a GPU's words have one domain, the GPU).
//
// The host cannot rely on a kernel of its own: it has no place while waiting kernels fill the GPU, and they may wait for what
// the atomic brings. So every wait performs what is in the inbox.
#pragma once

#include "perform.cuh"

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
