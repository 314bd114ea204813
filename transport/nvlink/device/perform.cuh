// An atomic on a word, by number.
#pragma once

#include "words.cuh"

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
