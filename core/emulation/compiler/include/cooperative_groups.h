// Cooperative groups: the block, the grid, tiles of a warp, lanes that run together, and parts of them.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {

namespace details {
enum kind : unsigned { of_block, of_grid, of_lanes };

// A lane's value of any size, in parts of eight bytes.
template <class T> __device__ inline T shuffle(unsigned mask, T value, unsigned source) {
    static_assert(std::is_trivially_copyable<T>::value, "a shuffle moves types that can be copied byte by byte");
    constexpr unsigned parts = (sizeof(T) + 7) / 8;
    unsigned long long words[parts] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    for (unsigned part = 0; part < parts; ++part) words[part] = oxshmem_shuffle(mask, words[part], source);
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
}
// The lane of `mask` that has so many before it.
__device__ inline unsigned nth_lane(unsigned mask, unsigned rank) {
    for (; rank > 0; --rank) mask &= mask - 1;
    return mask ? __builtin_ctz(mask) : 31;
}
__device__ inline unsigned lanes_before(unsigned mask) { return __popc(mask & ((1u << oxshmem_lane()) - 1)); }
__device__ inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
__device__ inline unsigned block_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ inline unsigned long long grid_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
__device__ inline unsigned long long grid_block_rank() {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
}
// All writes of the grid before it are seen by all of the grid after it.
__device__ inline void grid_sync() {
    __threadfence();
    __syncthreads();
    if (block_rank() == 0) softcuda_grid_barrier();
    __syncthreads();
    __threadfence();
}
// A part of a warp: its lanes, its number among its parent's parts, and how many there are.
struct part {
    unsigned mask, meta_rank, meta_size;
};
struct access;
}

// A group of any kind.
class thread_group {
    friend struct details::access;

protected:
    details::kind kind;
    details::part part;
    __device__ thread_group(details::kind kind, details::part part) : kind(kind), part(part) {}

public:
    __device__ void sync() const {
        switch (kind) {
        case details::of_block: __syncthreads(); break;
        case details::of_grid: details::grid_sync(); break;
        default: __syncwarp(part.mask);
        }
    }
    __device__ unsigned long long size() const {
        switch (kind) {
        case details::of_block: return details::block_size();
        case details::of_grid: return details::grid_blocks() * details::block_size();
        default: return __popc(part.mask);
        }
    }
    __device__ unsigned long long num_threads() const { return size(); }
    __device__ unsigned long long thread_rank() const {
        switch (kind) {
        case details::of_block: return details::block_rank();
        case details::of_grid: return details::grid_block_rank() * details::block_size() + details::block_rank();
        default: return details::lanes_before(part.mask);
        }
    }
};

class thread_block : public thread_group {
    friend __device__ thread_block this_thread_block();
    __device__ thread_block() : thread_group(details::of_block, {}) {}

public:
    class arrival_token {};
    __device__ static void sync() { __syncthreads(); }
    // The wait is for the others' waits, which come behind their arrivals.
    __device__ static arrival_token barrier_arrive() { return {}; }
    __device__ static void barrier_wait(arrival_token&&) { __syncthreads(); }
    __device__ static unsigned thread_rank() { return details::block_rank(); }
    __device__ static unsigned size() { return details::block_size(); }
    __device__ static unsigned num_threads() { return size(); }
    __device__ static dim3 group_index() { return blockIdx; }
    __device__ static dim3 thread_index() { return threadIdx; }
    __device__ static dim3 group_dim() { return blockDim; }
    __device__ static dim3 dim_threads() { return blockDim; }
};
__device__ inline thread_block this_thread_block() { return thread_block(); }

class grid_group : public thread_group {
    friend __device__ grid_group this_grid();
    __device__ grid_group() : thread_group(details::of_grid, {}) {}

public:
    class arrival_token {};
    __device__ static bool is_valid() { return true; }
    __device__ static void sync() { details::grid_sync(); }
    __device__ static arrival_token barrier_arrive() { return {}; }
    __device__ static void barrier_wait(arrival_token&&) { details::grid_sync(); }
    __device__ static unsigned long long thread_rank() {
        return block_rank() * details::block_size() + details::block_rank();
    }
    __device__ static unsigned long long block_rank() { return details::grid_block_rank(); }
    __device__ static unsigned long long num_blocks() { return details::grid_blocks(); }
    __device__ static unsigned long long size() { return num_blocks() * details::block_size(); }
    __device__ static unsigned long long num_threads() { return size(); }
    __device__ static dim3 group_dim() { return gridDim; }
    __device__ static dim3 dim_blocks() { return gridDim; }
    __device__ static dim3 dim_threads() {
        return dim3(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
    }
    __device__ static dim3 block_index() { return blockIdx; }
    __device__ static dim3 thread_index() {
        return dim3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                    blockIdx.z * blockDim.z + threadIdx.z);
    }
};
__device__ inline grid_group this_grid() { return grid_group(); }

namespace details {
struct access {
    __device__ static details::kind kind(const thread_group& group) { return group.kind; }
    __device__ static details::part part(const thread_group& group) { return group.part; }
    __device__ static unsigned mask(const thread_group& group) { return group.part.mask; }
    template <class Group> __device__ static Group make(details::part part) { return Group(part); }
    __device__ static thread_group any(details::part part) { return thread_group(of_lanes, part); }
};

// The operations of lanes. `Self` has `lane_of`, a member's lane, and `packed`, bits of lanes as bits of ranks.
template <class Self> class lanes : public thread_group {
    __device__ const Self& self() const { return static_cast<const Self&>(*this); }

protected:
    __device__ lanes(details::part part) : thread_group(of_lanes, part) {}

public:
    __device__ void sync() const { __syncwarp(part.mask); }
    __device__ unsigned meta_group_rank() const { return part.meta_rank; }
    __device__ unsigned meta_group_size() const { return part.meta_size; }
    template <class T> __device__ T shfl(T value, int source) const {
        return shuffle(part.mask, value, self().lane_of((unsigned)source % self().size()));
    }
    template <class T> __device__ T shfl_up(T value, unsigned delta) const {
        const unsigned rank = self().thread_rank();
        return shuffle(part.mask, value, self().lane_of(rank < delta ? rank : rank - delta));
    }
    template <class T> __device__ T shfl_down(T value, unsigned delta) const {
        const unsigned rank = self().thread_rank();
        return shuffle(part.mask, value, self().lane_of(delta >= self().size() - rank ? rank : rank + delta));
    }
    __device__ int any(int predicate) const { return __any_sync(part.mask, predicate); }
    __device__ int all(int predicate) const { return __all_sync(part.mask, predicate); }
    __device__ unsigned ballot(int predicate) const { return self().packed(__ballot_sync(part.mask, predicate)); }
    template <class T> __device__ unsigned match_any(T value) const {
        return self().packed(__match_any_sync(part.mask, value));
    }
    template <class T> __device__ unsigned match_all(T value, int& predicate) const {
        return self().packed(__match_all_sync(part.mask, value, &predicate));
    }
};
}

// A tile. Every tile of so many threads is one of this type, too, whatever its parent.
template <unsigned Size, class Parent = void> class thread_block_tile;
template <unsigned Size> class thread_block_tile<Size, void> : public details::lanes<thread_block_tile<Size, void>> {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                  "the emulation has tiles of 1, 2, 4, 8, 16 and 32 threads (docs/cuda-emulation.md, limits)");
    typedef details::lanes<thread_block_tile> base;
    friend base;
    friend struct details::access;
    __device__ static unsigned first() { return oxshmem_lane() / Size * Size; }
    __device__ static unsigned lane_of(unsigned rank) { return first() + rank; }
    __device__ static unsigned packed(unsigned lanes) { return lanes >> first(); }

protected:
    __device__ thread_block_tile(details::part part) : base(part) {}

public:
    __device__ static unsigned thread_rank() { return oxshmem_lane() % Size; }
    __device__ static constexpr unsigned size() { return Size; }
    __device__ static constexpr unsigned num_threads() { return Size; }
    template <class T> __device__ T shfl_xor(T value, unsigned bits) const {
        const unsigned rank = thread_rank(), other = rank ^ bits;
        return details::shuffle(this->part.mask, value, lane_of(other < Size ? other : rank));
    }
};
template <unsigned Size, class Parent> class thread_block_tile : public thread_block_tile<Size, void> {
    friend struct details::access;
    __device__ thread_block_tile(details::part part) : thread_block_tile<Size, void>(part) {}
};

// Lanes in any places: those that run together, or a part of a group of lanes.
class coalesced_group : public details::lanes<coalesced_group> {
    friend details::lanes<coalesced_group>;
    friend struct details::access;
    __device__ coalesced_group(details::part part) : details::lanes<coalesced_group>(part) {}
    __device__ unsigned lane_of(unsigned rank) const { return details::nth_lane(part.mask, rank); }
    __device__ unsigned packed(unsigned lanes) const {
        unsigned bits = 0, rank = 0;
        for (unsigned left = part.mask; left; left &= left - 1) bits |= (lanes >> __builtin_ctz(left) & 1) << rank++;
        return bits;
    }

public:
    __device__ unsigned thread_rank() const { return details::lanes_before(part.mask); }
    __device__ unsigned size() const { return __popc(part.mask); }
    __device__ unsigned num_threads() const { return size(); }
};
// By default each lane is alone, which CUDA allows; with SOFTCUDA_SEED some are together.
__device__ inline coalesced_group coalesced_threads() {
    return details::access::make<coalesced_group>({__activemask(), 0, 1});
}

namespace details {
__device__ inline part part_of(unsigned parents, unsigned rank, unsigned size, unsigned of) {
    const unsigned number = rank / of;
    unsigned mask = 0;
    for (unsigned at = number * of; at < (number + 1) * of && at < size; ++at) mask |= 1u << nth_lane(parents, at);
    return {mask, number, (size + of - 1) / of};
}
// The part of a warp that has the thread, if a block or lanes are cut into parts of so many threads.
__device__ inline part part_of(const thread_group& parent, unsigned of) {
    if (of == 0 || of > 32 || (of & (of - 1)) != 0 || access::kind(parent) == of_grid) __trap();
    if (access::kind(parent) == of_lanes) {
        return part_of(access::mask(parent), parent.thread_rank(), parent.size(), of);
    }
    const unsigned warp = block_rank() / 32 * 32, there = block_size() - warp < 32 ? block_size() - warp : 32;
    const part own = part_of(~0u, block_rank() - warp, there, of);
    return {own.mask, block_rank() / of, (block_size() + of - 1) / of};
}
template <unsigned Size> __device__ inline part tile_of(const thread_block&) {
    const unsigned lanes = Size == 32 ? ~0u : (1u << (Size & 31)) - 1;
    return {lanes << oxshmem_lane() / Size * Size, block_rank() / Size, (block_size() + Size - 1) / Size};
}
template <unsigned Size, unsigned Parents> __device__ inline part tile_of(const thread_block_tile<Parents>& parent) {
    static_assert(Size <= Parents, "a tile has no more threads than its parent");
    return part_of(parent, Size);
}
}

// Tiles, whose size is known when the program is built.
template <unsigned Size, class Parent>
__device__ inline thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
    return details::access::make<thread_block_tile<Size, Parent>>(details::tile_of<Size>(parent));
}
// And those whose size is known when it runs.
__device__ inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
    return details::access::any(details::part_of(parent, size));
}
__device__ inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
    return details::access::make<coalesced_group>(details::part_of(parent, size));
}

namespace details {
template <class T> __device__ inline coalesced_group labeled(const thread_group& parent, T label) {
    const unsigned mask = access::mask(parent), own = __match_any_sync(mask, label);
    const unsigned first = __builtin_ctz(own), firsts = __ballot_sync(mask, first == oxshmem_lane());
    const unsigned before = __popc(firsts & ((1u << first) - 1));
    return access::make<coalesced_group>({own, before, (unsigned)__popc(firsts)});
}
__device__ inline coalesced_group binary(const thread_group& parent, bool predicate) {
    const unsigned mask = access::mask(parent), set = __ballot_sync(mask, predicate);
    if (set == mask || set == 0) return access::make<coalesced_group>({mask, 0, 1});
    return access::make<coalesced_group>({predicate ? set : mask & ~set, predicate, 2});
}
}

// The lanes of a group with the same label, or with the same predicate.
template <class T> __device__ inline coalesced_group labeled_partition(const coalesced_group& parent, T label) {
    return details::labeled(parent, label);
}
template <class T, unsigned Size, class Parent>
__device__ inline coalesced_group labeled_partition(const thread_block_tile<Size, Parent>& parent, T label) {
    return details::labeled(parent, label);
}
__device__ inline coalesced_group labeled_partition(const coalesced_group& parent, bool label) {
    return details::binary(parent, label);
}
template <unsigned Size, class Parent>
__device__ inline coalesced_group labeled_partition(const thread_block_tile<Size, Parent>& parent, bool label) {
    return details::binary(parent, label);
}
__device__ inline coalesced_group binary_partition(const coalesced_group& parent, bool predicate) {
    return details::binary(parent, predicate);
}
template <unsigned Size, class Parent>
__device__ inline coalesced_group binary_partition(const thread_block_tile<Size, Parent>& parent, bool predicate) {
    return details::binary(parent, predicate);
}

// One of the group's threads calls a function.
template <class Group, class Function, class... Arguments>
__device__ inline void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
    if (group.thread_rank() == 0) std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
}
// And all have the result.
template <class Group, class Function, class... Arguments>
__device__ inline auto invoke_one_broadcast(const Group& group, Function&& function, Arguments&&... arguments)
    -> typename std::decay<decltype(std::forward<Function>(function)(std::forward<Arguments>(arguments)...))>::type {
    typename std::decay<decltype(std::forward<Function>(function)(std::forward<Arguments>(arguments)...))>::type result;
    if (group.thread_rank() == 0) result = std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
    return group.shfl(result, 0);
}

template <class Group> __device__ inline void sync(const Group& group) { group.sync(); }
template <class Group> __device__ inline auto thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group> __device__ inline auto group_size(const Group& group) { return group.size(); }

}
