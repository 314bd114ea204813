// Waiting on a word until it compares as wanted.
#pragma once

#include "compare.cuh"
#include "stoppable.cuh"

template <class Unsigned, class Signed>
struct WordCompares {
    const Unsigned* word;
    u32 compare;
    Unsigned value;
    bool is_signed;

    __device__ bool operator()() const {
        const Unsigned seen = load_acquire(word);
        const Compare by = (Compare)compare;
        return is_signed ? waits::holds((Signed)seen, by, (Signed)value)
                         : waits::holds(seen, by, value);
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
