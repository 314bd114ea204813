// One atomic operation on one word, and the update of a signal word.
#pragma once

#include "perform.cuh"

template <class Word>
DEVICE void atomic(u32 op, Word* word, Word operand, Word compare, Word* result) {
    if (grid_thread() != 0) return;
    const Word old = perform(word, op, operand, compare);
    if (result && op != ATOMIC_SET && op <= ATOMIC_COMPARE_SWAP) store_relaxed(result, old);
}

extern "C" __global__ void oxshmem_atomic_32(u32 op, u32* word, u32 operand, u32 compare,
                                             u32* result) {
    atomic(op, word, operand, compare, result);
}

extern "C" __global__ void oxshmem_atomic_64(u32 op, u64* word, u64 operand, u64 compare,
                                             u64* result) {
    atomic(op, word, operand, compare, result);
}

// In the order of `SignalOp` in transport/api/src/op.rs.
enum SignalOp {
    SIGNAL_SET,
    SIGNAL_ADD,
};

// Whoever acquires the new value sees everything that came before on this thread, on threads that
// it synchronized with and on its stream.
DEVICE void signal(u64* word, u64 value, u32 op) {
    if (op == SIGNAL_ADD)
        add_release(word, value);
    else
        store_release(word, value);
}

extern "C" __global__ void oxshmem_signal(u64* word, u64 value, u32 op) {
    if (grid_thread() == 0) signal(word, value, op);
}
