// A put of this GPU's.
#pragma once

#include "atomic.cuh"
#include "copy.cuh"

#ifdef SOFTCUDA
#pragma softcuda uses_barriers oxshmem_copy_signal
#endif

// A copy by one block, then the signal: one launch where a put-with-signal is small.
extern "C" __global__ void oxshmem_copy_signal(char* to, const char* from, u64 bytes, u64* word,
                                               u64 value, u32 op) {
    copies::copy_any<copies::Plain>(to, from, bytes, threadIdx.x, blockDim.x);
    __syncthreads();
    // The block's barrier puts the other threads' stores before this one's release.
    if (threadIdx.x == 0) signal(word, value, op);
}
