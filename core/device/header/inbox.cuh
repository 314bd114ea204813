// Atomics on this GPU's words that other PEs' hosts ask for (M29: a GPU's words have one domain, the GPU).
//
// The host cannot rely on a kernel of its own: it has no place while waiting kernels fill the GPU, and they may wait for what
// the atomic brings. So every wait performs what is in the inbox.
#pragma once

#include "words.cuh"

namespace oxshmem {
namespace inbox {

template <class T>
OXSHMEM_DEVICE u64 perform(T* word, u32 operation, T operand, T compare) {
    switch (operation) {
        case 0: return words::load_relaxed(word);
        case 1: words::store_relaxed(word, operand); return 0;
        case 2: return words::fetch_add(word, operand);
        case 3: return words::fetch_and(word, operand);
        case 4: return words::fetch_or(word, operand);
        case 5: return words::fetch_xor(word, operand);
        case 6: return words::swap(word, operand);
        default: return words::compare_swap(word, compare, operand);
    }
}

// Performs what is there and what no other thread has begun.
OXSHMEM_OUTLINE void serve(Inbox* inbox) {
    u64 next = words::load_relaxed((const u64*)inbox->claimed);
    while (next != words::load_acquire(inbox->posted)) {
        const u64 seen = words::compare_swap(inbox->claimed, next, next + 1);
        if (seen != next) {
            next = seen;
            continue;
        }
        Errand* errand = &inbox->errands[next & inbox->mask];
        const u32 operation = words::load_relaxed(&errand->operation);
        const u64 word = words::load_relaxed(&errand->word), operand = words::load_relaxed(&errand->operand);
        const u64 compare = words::load_relaxed(&errand->compare);
        const u64 old = words::load_relaxed(&errand->width) == 4
                            ? perform((u32*)word, operation, (u32)operand, (u32)compare)
                            : perform((u64*)word, operation, operand, compare);
        words::store_relaxed(&errand->old, old);
        words::store_release(&errand->done, ++next);
    }
}

}  // namespace inbox
}  // namespace oxshmem
