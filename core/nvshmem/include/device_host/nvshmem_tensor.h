/* Tiles: tensors of a few dimensions in symmetric memory, and calls on them. */
#ifndef NVSHMEM_TENSOR_H
#define NVSHMEM_TENSOR_H

#include "nvshmem_types.h"

#ifdef __cplusplus

#if defined(__CUDACC__)
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

#if NVSHMEMI_IN_KERNELS

}  // namespace nvshmemx

#include "../device/oxshmem_calls.cuh"

namespace nvshmem_ox {

struct Sync {
    nvshmem_team_t team;
    OXSHMEM_MEMBER void operator()() const { oxshmem::sync(oxshmem::thread(), team); }
};

// Each element of a tile that lies within `boundary`, counted from the tile's own place `start` in its tensor: its offsets in both
// tensors. Coordinates of no dimension leave no element out.
template <class Scope, class Source, class Dest, class Tuple, class Each>
OXSHMEM_DEVICE void each_of(Scope scope, const Source &source, const Dest &dest, const Tuple &start, const Tuple &boundary, Each each) {
    const auto shape = source.shape();
    const auto steps = source.stride(), to_steps = dest.stride();
    constexpr int rank = decltype(source.shape())::rank;
    static_assert(rank == decltype(dest.shape())::rank, "both tiles of a call have as many dimensions");
    static_assert(Tuple::rank == 0 || Tuple::rank == rank, "start and boundary have a number for each dimension of the tile, or none");
    oxshmem::i64 total = 1;
    for (int d = 0; d < rank; ++d) total *= shape.at(d);
    for (oxshmem::i64 e = scope.rank(); e < total; e += scope.size()) {
        oxshmem::i64 left = e, from = 0, to = 0;
        bool is_within = true;
        for (int d = 0; d < rank; ++d) {
            const oxshmem::i64 at = left % shape.at(d);
            left /= shape.at(d);
            from += at * steps.at(d);
            to += at * to_steps.at(d);
            if (Tuple::rank != 0 && start.at(d) + at >= boundary.at(d)) is_within = false;
        }
        if (is_within) each(from, to);
    }
}

template <class T>
struct PutElement {
    T *dest;
    const T *source;
    int pe;
    OXSHMEM_MEMBER void operator()(oxshmem::i64 from, oxshmem::i64 to) const {
        oxshmem::rma::put_part(oxshmem::thread(), dest + to, source + from, sizeof(T), pe);
    }
};
template <class T>
struct GetElement {
    T *dest;
    const T *source;
    int pe;
    OXSHMEM_MEMBER void operator()(oxshmem::i64 from, oxshmem::i64 to) const {
        oxshmem::get_nbi(oxshmem::thread(), dest + to, source + from, 1, pe);
    }
};
template <class Operation, class T>
struct FoldElement {
    T *dest;
    const T *source;
    const oxshmem::Team *team;
    OXSHMEM_MEMBER void operator()(oxshmem::i64 from, oxshmem::i64 to) const {
        typedef typename oxshmem::Computed<T>::Type Value;
        Value value = (Value)oxshmem::g(source + from, oxshmem::teams::pe_of(team, 0));
        for (u32 i = 1; i < team->n; ++i)
            value = Operation::of(value, (Value)oxshmem::g(source + from, oxshmem::teams::pe_of(team, i)));
        dest[to] = (T)value;
    }
};

template <class Source, class Dest>
struct OneType {
    typedef typename Source::value_type T;
    static_assert(sizeof(T) == sizeof(typename Dest::value_type), "both tiles of a call have elements of one type");
};

// Puts and gets are complete behind a quiet.
template <class Scope, class Source, class Dest, class Tuple>
OXSHMEM_DEVICE int tile_put(Scope scope, Source source, Dest dest, Tuple start, Tuple boundary, int pe) {
    typedef typename OneType<Source, Dest>::T T;
    scope.sync();
    each_of(scope, source, dest, start, boundary, PutElement<T>{dest.data(), source.data(), pe});
    scope.sync();
    return NVSHMEMX_SUCCESS;
}
template <class Scope, class Source, class Dest, class Tuple>
OXSHMEM_DEVICE int tile_get(Scope scope, Source source, Dest dest, Tuple start, Tuple boundary, int pe) {
    typedef typename OneType<Source, Dest>::T T;
    scope.sync();
    each_of(scope, source, dest, start, boundary, GetElement<T>{dest.data(), source.data(), pe});
    scope.sync();
    return NVSHMEMX_SUCCESS;
}
// The caller's tile to all members. It is there, everywhere, behind tile_collective_wait.
template <class Scope, class Source, class Dest, class Tuple>
OXSHMEM_DEVICE int tile_broadcast(Scope scope, nvshmem_team_t number, Source source, Dest dest, Tuple start, Tuple boundary) {
    const oxshmem::Team *team = oxshmem::teams::find(number);
    for (u32 i = 0; i < team->n; ++i) tile_put(scope, source, dest, start, boundary, oxshmem::teams::pe_of(team, i));
    return NVSHMEMX_SUCCESS;
}
// All members' tiles, folded, to the tile of `root`, or of each member for -1. Members meet before. Sources may be changed behind
// tile_collective_wait.
template <class Operation, class Scope, class Source, class Dest, class Tuple>
OXSHMEM_DEVICE int tile_reduce(Scope scope, nvshmem_team_t number, Source source, Dest dest, Tuple start, Tuple boundary, int root) {
    typedef typename OneType<Source, Dest>::T T;
    const oxshmem::Team *team = oxshmem::teams::find(number);
    by_one(scope, Sync{number});
    if (root < 0 || (u32)root == team->me)
        each_of(scope, source, dest, start, boundary, FoldElement<Operation, T>{dest.data(), source.data(), team});
    scope.sync();
    return NVSHMEMX_SUCCESS;
}
template <class Scope>
OXSHMEM_DEVICE int tile_collective_wait(Scope scope, nvshmem_team_t team) {
    by_one(scope, Barrier{team});
    return NVSHMEMX_SUCCESS;
}
template <class T>
struct Never {
    static constexpr bool value = false;
};

}  // namespace nvshmem_ox

namespace nvshmemx {

/* `flag` is for what may come, in NVSHMEM, too. A team has one collective call under way at a time. */
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_put(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_put(oxshmem::thread(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_get(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_get(oxshmem::thread(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_broadcast(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_broadcast(oxshmem::thread(), team, src, dst, start_coord, boundary); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::thread(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::thread(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_rooted_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::thread(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::thread(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::thread(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_rooted_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::thread(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::thread(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::thread(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_rooted_reduce(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::thread(), team, src, dst, start_coord, boundary, root); }
template <tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_collective_wait(nvshmem_team_t team, uint64_t flag) { (void)flag; return nvshmem_ox::tile_collective_wait(oxshmem::thread(), team); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_allgather(nvshmem_team_t, src_tensor_t, dst_tensor_t, tuple_t, tuple_t, uint64_t) { static_assert(nvshmem_ox::Never<src_tensor_t>::value, "oxshmem has no nvshmemx::tile_allgather: let each PE make nvshmemx::tile_broadcast of its tile to its place in the tensor"); return NVSHMEMX_ERROR_NOT_SUPPORTED; }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_put_warp(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_put(oxshmem::warp(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_get_warp(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_get(oxshmem::warp(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_broadcast_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_broadcast(oxshmem::warp(), team, src, dst, start_coord, boundary); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::warp(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::warp(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_rooted_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::warp(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::warp(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::warp(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_rooted_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::warp(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::warp(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::warp(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_rooted_reduce_warp(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::warp(), team, src, dst, start_coord, boundary, root); }
template <tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_collective_wait_warp(nvshmem_team_t team, uint64_t flag) { (void)flag; return nvshmem_ox::tile_collective_wait(oxshmem::warp(), team); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_allgather_warp(nvshmem_team_t, src_tensor_t, dst_tensor_t, tuple_t, tuple_t, uint64_t) { static_assert(nvshmem_ox::Never<src_tensor_t>::value, "oxshmem has no nvshmemx::tile_allgather_warp: let each PE make nvshmemx::tile_broadcast_warp of its tile to its place in the tensor"); return NVSHMEMX_ERROR_NOT_SUPPORTED; }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_put_warpgroup(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_put(nvshmem_ox::warpgroup(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_get_warpgroup(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_get(nvshmem_ox::warpgroup(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_broadcast_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_broadcast(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_rooted_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_rooted_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_rooted_reduce_warpgroup(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(nvshmem_ox::warpgroup(), team, src, dst, start_coord, boundary, root); }
template <tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_collective_wait_warpgroup(nvshmem_team_t team, uint64_t flag) { (void)flag; return nvshmem_ox::tile_collective_wait(nvshmem_ox::warpgroup(), team); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_allgather_warpgroup(nvshmem_team_t, src_tensor_t, dst_tensor_t, tuple_t, tuple_t, uint64_t) { static_assert(nvshmem_ox::Never<src_tensor_t>::value, "oxshmem has no nvshmemx::tile_allgather_warpgroup: let each PE make nvshmemx::tile_broadcast_warpgroup of its tile to its place in the tensor"); return NVSHMEMX_ERROR_NOT_SUPPORTED; }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_put_block(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_put(oxshmem::block(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_algo_t algo>
NVSHMEMI_DEVICE int tile_get_block(src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int pe, uint64_t flag) { (void)flag; return nvshmem_ox::tile_get(oxshmem::block(), src, dst, start_coord, boundary, pe); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_broadcast_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_broadcast(oxshmem::block(), team, src, dst, start_coord, boundary); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::block(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::block(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_sum_rooted_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Sum>(oxshmem::block(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::block(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::block(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_min_rooted_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Min>(oxshmem::block(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::block(), team, src, dst, start_coord, boundary, -1); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::block(), team, src, dst, start_coord, boundary, root); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_max_rooted_reduce_block(nvshmem_team_t team, src_tensor_t src, dst_tensor_t dst, tuple_t start_coord, tuple_t boundary, int root, uint64_t flag) { (void)flag; return nvshmem_ox::tile_reduce<oxshmem::Max>(oxshmem::block(), team, src, dst, start_coord, boundary, root); }
template <tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_collective_wait_block(nvshmem_team_t team, uint64_t flag) { (void)flag; return nvshmem_ox::tile_collective_wait(oxshmem::block(), team); }
template <class src_tensor_t, class dst_tensor_t, class tuple_t, tile_coll_algo_t algo>
NVSHMEMI_DEVICE int tile_allgather_block(nvshmem_team_t, src_tensor_t, dst_tensor_t, tuple_t, tuple_t, uint64_t) { static_assert(nvshmem_ox::Never<src_tensor_t>::value, "oxshmem has no nvshmemx::tile_allgather_block: let each PE make nvshmemx::tile_broadcast_block of its tile to its place in the tensor"); return NVSHMEMX_ERROR_NOT_SUPPORTED; }

#endif

}  // namespace nvshmemx

#endif

#endif
