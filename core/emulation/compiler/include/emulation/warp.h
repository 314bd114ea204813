// Warps: synchronisation, shuffles, votes, matches and reductions.
#pragma once

struct oxshmem_exchange {
    unsigned lanes, unused;
    unsigned long long values[32];
};
// Returns when all lanes of `mask` that have not ended have come with the same `kind`.
extern "C" __device__ const oxshmem_exchange* softcuda_warp(unsigned mask, unsigned kind,
                                                            unsigned long long value);

// The lanes that are at this place of the code at once.
extern "C" __device__ unsigned softcuda_active();

enum { OXSHMEM_WARP_SYNC = 1, OXSHMEM_WARP_SHUFFLE, OXSHMEM_WARP_VOTE, OXSHMEM_WARP_MATCH, OXSHMEM_WARP_REDUCE };

static __device__ __forceinline__ unsigned oxshmem_lane() {
    const unsigned* at = softcuda_position();
    return (at[0] + at[6] * (at[1] + at[7] * at[2])) % 32;
}
static __device__ __forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) {
    softcuda_warp(mask, OXSHMEM_WARP_SYNC, 0);
}

template <class T>
static __device__ __forceinline__ T oxshmem_shuffle(unsigned mask, T value, unsigned source) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most eight bytes");
    unsigned long long word = 0;
    __builtin_memcpy(&word, &value, sizeof(T));
    const oxshmem_exchange* all = softcuda_warp(mask, OXSHMEM_WARP_SHUFFLE, word);
    // The value of a lane that does not take part is undefined.
    word = (all->lanes >> source) & 1 ? all->values[source] : 0xa5a5a5a5a5a5a5a5ull;
    __builtin_memcpy(&value, &word, sizeof(T));
    return value;
}
template <class T>
static __device__ __forceinline__ T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const unsigned lane = oxshmem_lane();
    return oxshmem_shuffle(mask, value, (lane & ~(width - 1u)) | ((unsigned)source & (width - 1u)));
}
template <class T>
static __device__ __forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta,
                                                   int width = 32) {
    const unsigned lane = oxshmem_lane();
    const int source = (int)lane - (int)delta;
    return oxshmem_shuffle(mask, value, source < (int)(lane & ~(width - 1u)) ? lane : source);
}
template <class T>
static __device__ __forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta,
                                                     int width = 32) {
    const unsigned lane = oxshmem_lane();
    const unsigned source = lane + delta;
    return oxshmem_shuffle(mask, value, source > (lane | (width - 1u)) ? lane : source);
}
template <class T>
static __device__ __forceinline__ T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    const unsigned lane = oxshmem_lane();
    const unsigned source = lane ^ (unsigned)bits;
    return oxshmem_shuffle(mask, value, source > (lane | (width - 1u)) ? lane : source);
}

static __device__ __forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
    const oxshmem_exchange* all = softcuda_warp(mask, OXSHMEM_WARP_VOTE, predicate != 0);
    unsigned set = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        set |= ((all->lanes >> lane) & 1 & (unsigned)all->values[lane]) << lane;
    }
    return set;
}
static __device__ __forceinline__ int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
static __device__ __forceinline__ int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}
// Lanes need not run together unless they synchronise. With a seed some do, by chance; without, each is alone.
static __device__ __forceinline__ unsigned __activemask() { return softcuda_active(); }

template <class T>
static __device__ __forceinline__ unsigned __match_any_sync(unsigned mask, T value) {
    unsigned long long word = 0;
    __builtin_memcpy(&word, &value, sizeof(T));
    const oxshmem_exchange* all = softcuda_warp(mask, OXSHMEM_WARP_MATCH, word);
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if ((all->lanes >> lane) & 1 && all->values[lane] == word) same |= 1u << lane;
    }
    return same;
}
template <class T>
static __device__ __forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* all) {
    const unsigned same = __match_any_sync(mask, value);
    const unsigned whole = __ballot_sync(mask, 1);
    *all = same == whole;
    return same == whole ? whole : 0;
}

#define OXSHMEM_REDUCE(name, T, expression)                                                        \
    static __device__ __forceinline__ T name(unsigned mask, T value) {                             \
        const oxshmem_exchange* all =                                                              \
            softcuda_warp(mask, OXSHMEM_WARP_REDUCE, (unsigned long long)value);                   \
        T a = value;                                                                               \
        const unsigned own = oxshmem_lane();                                                       \
        for (unsigned lane = 0; lane < 32; ++lane) {                                               \
            if (lane == own || !((all->lanes >> lane) & 1)) continue;                              \
            const T b = (T)all->values[lane];                                                      \
            a = (expression);                                                                      \
        }                                                                                          \
        return a;                                                                                  \
    }
OXSHMEM_REDUCE(__reduce_add_sync, int, a + b)
OXSHMEM_REDUCE(__reduce_add_sync, unsigned, a + b)
OXSHMEM_REDUCE(__reduce_min_sync, int, b < a ? b : a)
OXSHMEM_REDUCE(__reduce_min_sync, unsigned, b < a ? b : a)
OXSHMEM_REDUCE(__reduce_max_sync, int, b > a ? b : a)
OXSHMEM_REDUCE(__reduce_max_sync, unsigned, b > a ? b : a)
OXSHMEM_REDUCE(__reduce_and_sync, unsigned, a & b)
OXSHMEM_REDUCE(__reduce_or_sync, unsigned, a | b)
OXSHMEM_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef OXSHMEM_REDUCE
