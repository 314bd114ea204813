// The threads that make a call together: one, a warp, or a block. All threads of the group make the call,
// with the same arguments (G1).
#pragma once

#include "words.cuh"

namespace oxshmem {

OXSHMEM_DEVICE u32 thread_in_block() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
OXSHMEM_DEVICE u32 threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }

struct thread_scope {
    OXSHMEM_DEVICE u32 rank() { return 0; }
    OXSHMEM_DEVICE u32 size() { return 1; }
    OXSHMEM_DEVICE void sync() {}
};

// A warp is 32 neighbours by thread number; the last of a block may have fewer.
struct warp_scope {
    OXSHMEM_DEVICE u32 rank() { return thread_in_block() % 32; }
    OXSHMEM_DEVICE u32 size() {
        const u32 left = threads_of_block() - thread_in_block() / 32 * 32;
        return left < 32 ? left : 32;
    }
    OXSHMEM_DEVICE void sync() { __syncwarp(0xffffffffu >> (32 - size())); }
};

struct block_scope {
    OXSHMEM_DEVICE u32 rank() { return thread_in_block(); }
    OXSHMEM_DEVICE u32 size() { return threads_of_block(); }
    OXSHMEM_DEVICE void sync() { __syncthreads(); }
};

OXSHMEM_DEVICE thread_scope thread() { return thread_scope(); }
OXSHMEM_DEVICE warp_scope warp() { return warp_scope(); }
OXSHMEM_DEVICE block_scope block() { return block_scope(); }

}  // namespace oxshmem
