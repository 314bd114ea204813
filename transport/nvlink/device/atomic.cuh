// One atomic operation on one word, and the update of a signal word.
#pragma once

// In the order of `AtomicOp::ALL` in transport/api/src/op.rs; ci/test-kernels compares them.
enum AtomicOp {
    ATOMIC_FETCH,
    ATOMIC_SET,
    ATOMIC_ADD,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_SWAP,
    ATOMIC_COMPARE_SWAP,
};

template <class Word>
DEVICE void atomic(u32 op, Word* word, Word operand, Word compare, Word* result) {
    if (grid_thread() != 0) return;
    Word old;
    switch (op) {
        case ATOMIC_FETCH: old = load_relaxed(word); break;
        case ATOMIC_SET: store_relaxed(word, operand); return;
        case ATOMIC_ADD: old = fetch_add(word, operand); break;
        case ATOMIC_AND: old = fetch_and(word, operand); break;
        case ATOMIC_OR: old = fetch_or(word, operand); break;
        case ATOMIC_XOR: old = fetch_xor(word, operand); break;
        case ATOMIC_SWAP: old = swap(word, operand); break;
        case ATOMIC_COMPARE_SWAP: old = compare_swap(word, compare, operand); break;
        default: return;
    }
    if (result) store_relaxed(result, old);
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
