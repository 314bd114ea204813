// Cooperative groups: the block, the grid, tiles of a warp, and the lanes that run together.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {

class thread_block {
public:
    __device__ static void sync() { __syncthreads(); }
    __device__ static unsigned thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __device__ static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ static unsigned num_threads() { return size(); }
    __device__ static dim3 group_index() { return blockIdx; }
    __device__ static dim3 thread_index() { return threadIdx; }
    __device__ static dim3 group_dim() { return blockDim; }
    __device__ static dim3 dim_threads() { return blockDim; }
};
__device__ inline thread_block this_thread_block() { return thread_block(); }

class grid_group {
public:
    __device__ static bool is_valid() { return true; }
    // All writes of the grid before it are seen by all of the grid after it.
    __device__ static void sync() {
        __threadfence();
        __syncthreads();
        if (thread_block::thread_rank() == 0) softcuda_grid_barrier();
        __syncthreads();
        __threadfence();
    }
    __device__ static unsigned long long thread_rank() {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    __device__ static unsigned long long block_rank() {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    __device__ static unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    __device__ static unsigned long long size() { return num_blocks() * thread_block::size(); }
    __device__ static unsigned long long num_threads() { return size(); }
    __device__ static dim3 group_dim() { return gridDim; }
    __device__ static dim3 dim_blocks() { return gridDim; }
    __device__ static dim3 block_index() { return blockIdx; }
};
__device__ inline grid_group this_grid() { return grid_group(); }

template <unsigned Size, class Parent = void>
class thread_block_tile {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
    __device__ static unsigned first() { return oxshmem_lane() / Size * Size; }

public:
    __device__ static unsigned mask() {
        return (Size == 32 ? 0xffffffffu : (1u << (Size & 31)) - 1) << first();
    }
    __device__ static void sync() { __syncwarp(mask()); }
    __device__ static unsigned thread_rank() { return oxshmem_lane() % Size; }
    __device__ static unsigned size() { return Size; }
    __device__ static unsigned num_threads() { return Size; }
    __device__ static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
    __device__ static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
    template <class T> __device__ T shfl(T value, int source) const {
        return __shfl_sync(mask(), value, source, Size);
    }
    template <class T> __device__ T shfl_up(T value, unsigned delta) const {
        return __shfl_up_sync(mask(), value, delta, Size);
    }
    template <class T> __device__ T shfl_down(T value, unsigned delta) const {
        return __shfl_down_sync(mask(), value, delta, Size);
    }
    template <class T> __device__ T shfl_xor(T value, int bits) const {
        return __shfl_xor_sync(mask(), value, bits, Size);
    }
    __device__ int any(int predicate) const { return __any_sync(mask(), predicate); }
    __device__ int all(int predicate) const { return __all_sync(mask(), predicate); }
    __device__ unsigned ballot(int predicate) const { return __ballot_sync(mask(), predicate) >> first(); }
    template <class T> __device__ unsigned match_any(T value) const {
        return __match_any_sync(mask(), value) >> first();
    }
};
template <unsigned Size, class Group>
__device__ inline thread_block_tile<Size, Group> tiled_partition(const Group&) {
    return thread_block_tile<Size, Group>();
}

// The lanes that run together: one alone here, which CUDA allows.
class coalesced_group {
public:
    __device__ static void sync() {}
    __device__ static unsigned thread_rank() { return 0; }
    __device__ static unsigned size() { return 1; }
    __device__ static unsigned num_threads() { return 1; }
    template <class T> __device__ T shfl(T value, int) const { return value; }
    __device__ int any(int predicate) const { return predicate != 0; }
    __device__ int all(int predicate) const { return predicate != 0; }
    __device__ unsigned ballot(int predicate) const { return predicate != 0; }
};
__device__ inline coalesced_group coalesced_threads() { return coalesced_group(); }

template <class Group> __device__ inline void sync(const Group& group) { group.sync(); }

}
