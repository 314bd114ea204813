// Reductions over a tile, or over lanes in any places.
#pragma once
#include "operations.h"

namespace cooperative_groups {

template <unsigned Size, class Parent, class T, class Operation>
__device__ inline auto reduce(const thread_block_tile<Size, Parent>& tile, T&& value, Operation&& operation)
    -> details::result<T, Operation> {
    details::result<T, Operation> all = value;
    for (unsigned bits = Size / 2; bits > 0; bits /= 2) all = operation(all, tile.shfl_xor(all, bits));
    return all;
}
template <class T, class Operation>
__device__ inline auto reduce(const coalesced_group& group, T&& value, Operation&& operation)
    -> details::result<T, Operation> {
    details::result<T, Operation> all = value;
    const unsigned rank = group.thread_rank(), size = group.size();
    for (unsigned step = 1; step < size; step *= 2) {
        const auto other = group.shfl_down(all, step);
        if (rank + step < size) all = operation(all, other);
    }
    return group.shfl(all, 0);
}

// They take a cuda::atomic.
template <class... All> __device__ void reduce_update_async(All&&...) {
    static_assert(sizeof...(All) == 0, "the emulation has no cuda::atomic and no reduce_update_async: use reduce and atomicAdd");
}
template <class... All> __device__ void reduce_store_async(All&&...) {
    static_assert(sizeof...(All) == 0, "the emulation has no cuda::atomic and no reduce_store_async: use reduce and a store");
}

}
