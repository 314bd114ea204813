// The threads that make a call together: one, a warp, or a block. All threads of the group make the call,
// with the same arguments (G1).
#pragma once

#include "words.cuh"

namespace oxshmem {

OXSHMEM_DEVICE u32 thread_in_block() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
OXSHMEM_DEVICE u32 threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }

enum ScopeKind : u32 {
    SCOPE_THREAD,
    SCOPE_WARP,
    SCOPE_BLOCK,
};

struct thread_scope {
    static constexpr ScopeKind KIND = SCOPE_THREAD;
    OXSHMEM_DEVICE u32 rank() { return 0; }
    OXSHMEM_DEVICE u32 size() { return 1; }
    OXSHMEM_DEVICE void sync() {}
};

// The lanes of a warp of so many.
OXSHMEM_DEVICE void sync_warp(u32 lanes) { __syncwarp(0xffffffffu >> (32 - lanes)); }

// A warp is 32 neighbours by thread number; the last of a block may have fewer.
struct warp_scope {
    static constexpr ScopeKind KIND = SCOPE_WARP;
    OXSHMEM_DEVICE u32 rank() { return thread_in_block() % 32; }
    OXSHMEM_DEVICE u32 size() {
        const u32 left = threads_of_block() - thread_in_block() / 32 * 32;
        return left < 32 ? left : 32;
    }
    OXSHMEM_DEVICE void sync() { sync_warp(size()); }
};

struct block_scope {
    static constexpr ScopeKind KIND = SCOPE_BLOCK;
    OXSHMEM_DEVICE u32 rank() { return thread_in_block(); }
    OXSHMEM_DEVICE u32 size() { return threads_of_block(); }
    OXSHMEM_DEVICE void sync() { __syncthreads(); }
};

OXSHMEM_DEVICE thread_scope thread() { return thread_scope(); }
OXSHMEM_DEVICE warp_scope warp() { return warp_scope(); }
OXSHMEM_DEVICE block_scope block() { return block_scope(); }

// A group of any scope, for code of which there is one copy for all scopes.
struct Group {
    ScopeKind kind;
    u32 number;    // of this thread
    u32 threads;

    template <class Scope>
    OXSHMEM_DEVICE Group of(Scope scope) {
        return Group{Scope::KIND, scope.rank(), scope.size()};
    }
    OXSHMEM_MEMBER u32 rank() const { return number; }
    OXSHMEM_MEMBER u32 size() const { return threads; }
    OXSHMEM_MEMBER void sync() const {
        if (kind == SCOPE_BLOCK)
            __syncthreads();
        else if (kind == SCOPE_WARP)
            sync_warp(threads);
    }
};

}  // namespace oxshmem
