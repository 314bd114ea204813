/* Tiles: tensors of a few dimensions in symmetric memory, and calls on them. */
#ifndef NVSHMEM_TENSOR_H
#define NVSHMEM_TENSOR_H

#include "nvshmem_types.h"

#ifdef __cplusplus

#if defined(__CUDACC__) || defined(__CUDA__)
#define NVSHMEMI_TILE_INLINE __host__ __device__ __forceinline__
#else
#define NVSHMEMI_TILE_INLINE inline
#endif

/* A number that the compiler knows. */
template <int v>
struct ConstInt {
    static constexpr int value = v;
    NVSHMEMI_TILE_INLINE constexpr operator int() const { return v; }
};

namespace nvshmemx {

/* Numbers, one for each dimension. */
template <class... Ts>
struct Numbers {
    static constexpr int rank = 0;
    NVSHMEMI_TILE_INLINE constexpr long long at(int) const { return 0; }
};
template <class First, class... Rest>
struct Numbers<First, Rest...> {
    static constexpr int rank = 1 + sizeof...(Rest);
    First first;
    Numbers<Rest...> rest;

    NVSHMEMI_TILE_INLINE constexpr Numbers() : first(), rest() {}
    NVSHMEMI_TILE_INLINE constexpr Numbers(const First &first, const Rest &...rest) : first(first), rest(rest...) {}
    NVSHMEMI_TILE_INLINE constexpr long long at(int dimension) const {
        return dimension == 0 ? (long long)(int)first : rest.at(dimension - 1);
    }
};
template <int I, class First, class... Rest>
NVSHMEMI_TILE_INLINE constexpr auto get(const Numbers<First, Rest...> &numbers) {
    if constexpr (I == 0)
        return numbers.first;
    else
        return get<I - 1>(numbers.rest);
}
template <class... Shapes>
using shape = Numbers<Shapes...>;
template <class... Strides>
using stride = Numbers<Strides...>;
template <class... Ts>
NVSHMEMI_TILE_INLINE constexpr shape<Ts...> make_shape(const Ts &...t) {
    return shape<Ts...>(t...);
}
template <class... Ts>
NVSHMEMI_TILE_INLINE constexpr stride<Ts...> make_stride(const Ts &...t) {
    return stride<Ts...>(t...);
}

template <class Shape, class Stride>
class Layout {
    Shape shape_;
    Stride stride_;

  public:
    NVSHMEMI_TILE_INLINE constexpr Layout(const Shape &shape, const Stride &stride) : shape_(shape), stride_(stride) {}
    NVSHMEMI_TILE_INLINE constexpr Shape shape() const { return shape_; }
    NVSHMEMI_TILE_INLINE constexpr Stride stride() const { return stride_; }
};
template <class Shape, class Stride>
NVSHMEMI_TILE_INLINE constexpr Layout<Shape, Stride> make_layout(const Shape &shape, const Stride &stride) {
    return Layout<Shape, Stride>(shape, stride);
}

template <class T, class Layout>
struct Tensor {
    typedef T value_type;
    typedef Layout layout_type;
    T *_data;
    const Layout _layout;

    NVSHMEMI_TILE_INLINE constexpr Tensor(T *data, Layout layout) : _data(data), _layout(layout) {}
    NVSHMEMI_TILE_INLINE constexpr Tensor(Layout layout) : _data(nullptr), _layout(layout) {}
    NVSHMEMI_TILE_INLINE constexpr Layout layout() const { return _layout; }
    NVSHMEMI_TILE_INLINE constexpr T *data() { return _data; }
    NVSHMEMI_TILE_INLINE constexpr auto shape() const { return _layout.shape(); }
    NVSHMEMI_TILE_INLINE constexpr auto stride() const { return _layout.stride(); }
};

/* Ways of collective calls on tiles. All give the same results, and all go by loads and stores, or by requests to the host: there is
   no multicast memory. */
enum tile_coll_algo_t {
    NVLS_ONE_SHOT_PUSH_NBI = 0,
    NVLS_ONE_SHOT_PULL_NBI = 1,
    NVLS_TWO_SHOT_PUSH_NBI = 2,
    NVLS_TWO_SHOT_PULL_NBI = 3,
};
/* Ways of puts and gets of tiles: one. */
enum tile_algo_t {
    PEER_PUSH_NBI = 0,
    PEER_PULL_NBI = 0,
    REMOTE_PUSH_NBI = 1,
    REMOTE_PULL_NBI = 1,
};

}

#if NVSHMEMI_IN_KERNELS
#include "../device/nvshmem_tiles.cuh"
#endif

#endif

#endif
