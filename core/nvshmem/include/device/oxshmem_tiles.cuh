/* NVSHMEM's calls on tiles in the terms of oxshmem.cuh. */
#ifndef NVSHMEM_OXSHMEM_TILES_CUH
#define NVSHMEM_OXSHMEM_TILES_CUH

#include "../device_host/nvshmem_tensor.h"
#include "oxshmem_calls.cuh"

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
        typedef oxshmem::Computed<T> As;
        typename As::Type value = As::of(oxshmem::g(source + from, oxshmem::teams::pe_of(team, 0)));
        for (u32 i = 1; i < team->n; ++i)
            value = Operation::of(value, As::of(oxshmem::g(source + from, oxshmem::teams::pe_of(team, i))));
        dest[to] = As::rounded(value);
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

#endif
