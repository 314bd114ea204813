// Waiting on a word until it compares as wanted.
#pragma once

#include "stoppable.cuh"

// In the order of `Cmp` in core/oxshmem/src/wait_until.rs.
enum Compare {
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_LT,
    COMPARE_LE,
};

template <class T>
DEVICE bool holds(T seen, u32 compare, T value) {
    switch (compare) {
        case COMPARE_EQ: return seen == value;
        case COMPARE_NE: return seen != value;
        case COMPARE_GT: return seen > value;
        case COMPARE_GE: return seen >= value;
        case COMPARE_LT: return seen < value;
        default: return seen <= value;
    }
}

template <class Unsigned, class Signed>
struct WordCompares {
    const Unsigned* word;
    u32 compare;
    Unsigned value;
    bool is_signed;

    __device__ bool operator()() const {
        const Unsigned seen = load_acquire(word);
        return is_signed ? holds((Signed)seen, compare, (Signed)value)
                         : holds(seen, compare, value);
    }
};

extern "C" __global__ void oxshmem_wait_32(const u32* word, u32 compare, u32 value, u32 is_signed,
                                           const u32* stop, u32* status) {
    if (grid_thread() != 0) return;
    await(WordCompares<u32, i32>{word, compare, value, is_signed != 0}, stop, status);
}

extern "C" __global__ void oxshmem_wait_64(const u64* word, u32 compare, u64 value, u32 is_signed,
                                           const u32* stop, u32* status) {
    if (grid_thread() != 0) return;
    await(WordCompares<u64, i64>{word, compare, value, is_signed != 0}, stop, status);
}
