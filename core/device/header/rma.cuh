// Put and get, of one thread or a group (M15, M16, G1).
//
// A put to a mapped PE is stores: its source may be changed when it returns. Blocking and nonblocking forms
// differ for PEs that are reached by the ring alone.
#pragma once

#include "check.cuh"
#include "copy.cuh"
#include "race.cuh"
#include "ring.cuh"
#include "scope.cuh"

namespace oxshmem {

OXSHMEM_DEVICE int my_pe() { return (int)oxshmem_state.me; }
OXSHMEM_DEVICE int n_pes() { return (int)oxshmem_state.n; }

namespace rma {

// The distance from this PE's copies of symmetric objects to PE `pe`'s, where these are mapped for this GPU.
OXSHMEM_DEVICE i64 distance_to(int pe) { return oxshmem_state.distances[pe]; }
// Heaps lie at multiples of a page: the lower half tells.
OXSHMEM_DEVICE bool is_mapped(i64 distance) { return __builtin_expect((u32)distance != UNMAPPED, true); }
template <class T>
OXSHMEM_DEVICE T* at(T* symmetric, i64 distance) {
    return (T*)((u64)symmetric + (u64)distance);
}

// The copy of a symmetric object at PE `pe`, or null.
OXSHMEM_DEVICE void* copy_at(int pe, const void* symmetric) {
    const i64 distance = distance_to(pe);
    return is_mapped(distance) ? at((char*)symmetric, distance) : nullptr;
}

// A put without the group's meetings. The ticket of its request, plus one; 0 where there is none.
template <class Scope>
OXSHMEM_DEVICE u64 put_part(Scope scope, void* dest, const void* source, u64 bytes, int pe, bool is_blocking = false) {
    const i64 distance = distance_to(pe);
    if (is_mapped(distance)) {
        copies::copy<copies::Plain>(scope, at((char*)dest, distance), (const char*)source, bytes);
        return 0;
    }
    if (scope.rank() != 0 || bytes == 0) return 0;
    return 1 + ring::post(ring::Request{ring::OP_PUT, is_blocking, (u32)pe, ring::offset_of(dest), (u64)source, bytes, 0, 0});
}

template <class Scope>
OXSHMEM_DEVICE void put(Scope scope, u32 call, void* dest, const void* source, u64 bytes, u64 align, int pe,
                        bool is_blocking) {
    if (!check::target(call, pe, dest, bytes, align)) return;
    scope.sync();
    if (!is_blocking) race::begin(scope, source, race::SOURCE, copy_at(pe, dest), race::DEST, bytes);
    const u64 ticket = put_part(scope, dest, source, bytes, pe, is_blocking);
    if (!is_blocking) race::end();
    if (ticket && is_blocking) ring::await_source(ticket - 1);
    scope.sync();
}

template <class Scope>
OXSHMEM_DEVICE void get(Scope scope, void* dest, const void* source, u64 bytes, u64 align, int pe, bool is_blocking) {
    if (!check::target(check::CALL_GET, pe, source, bytes, align)) return;
    scope.sync();
    if (!is_blocking) race::begin(scope, copy_at(pe, source), race::FETCHED, dest, race::FETCHED, bytes);
    const i64 distance = distance_to(pe);
    if (is_mapped(distance)) {
        copies::copy<copies::Relaxed>(scope, (char*)dest, at((const char*)source, distance), bytes);
    } else if (scope.rank() == 0 && bytes > 0) {
        const ring::Request request = {ring::OP_GET, is_blocking, (u32)pe, ring::offset_of(source), (u64)dest, bytes, 0, 0};
        if (is_blocking)
            ring::fetch(request);
        else
            ring::post(request);
    }
    if (!is_blocking) race::end();
    scope.sync();
}

}  // namespace rma

// `n` elements to PE `pe`.
template <class Scope, class T>
OXSHMEM_DEVICE void put(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, n * sizeof(T), alignof(T), pe, true);
}
template <class T>
OXSHMEM_DEVICE void put(T* dest, const T* source, size_t n, int pe) {
    put(thread(), dest, source, n, pe);
}
template <class Scope, class T>
OXSHMEM_DEVICE void put_nbi(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, n * sizeof(T), alignof(T), pe, false);
}
template <class T>
OXSHMEM_DEVICE void put_nbi(T* dest, const T* source, size_t n, int pe) {
    put_nbi(thread(), dest, source, n, pe);
}

// `n` elements of PE `pe`.
template <class Scope, class T>
OXSHMEM_DEVICE void get(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::get(scope, dest, source, n * sizeof(T), alignof(T), pe, true);
}
template <class T>
OXSHMEM_DEVICE void get(T* dest, const T* source, size_t n, int pe) {
    get(thread(), dest, source, n, pe);
}
template <class Scope, class T>
OXSHMEM_DEVICE void get_nbi(Scope scope, T* dest, const T* source, size_t n, int pe) {
    rma::get(scope, dest, source, n * sizeof(T), alignof(T), pe, false);
}
template <class T>
OXSHMEM_DEVICE void get_nbi(T* dest, const T* source, size_t n, int pe) {
    get_nbi(thread(), dest, source, n, pe);
}

// The same by bytes.
template <class Scope>
OXSHMEM_DEVICE void putmem(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, bytes, 1, pe, true);
}
template <class Scope>
OXSHMEM_DEVICE void putmem_nbi(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::put(scope, check::CALL_PUT, dest, source, bytes, 1, pe, false);
}
template <class Scope>
OXSHMEM_DEVICE void getmem(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::get(scope, dest, source, bytes, 1, pe, true);
}
template <class Scope>
OXSHMEM_DEVICE void getmem_nbi(Scope scope, void* dest, const void* source, size_t bytes, int pe) {
    rma::get(scope, dest, source, bytes, 1, pe, false);
}

// One value of 1, 2, 4 or 8 bytes, stored whole.
template <class T>
OXSHMEM_DEVICE void p(T* dest, typename words::Same<T>::Type value, int pe) {
    if (!check::target(check::CALL_P, pe, dest, sizeof(T), sizeof(T))) return;
    const i64 distance = rma::distance_to(pe);
    if (rma::is_mapped(distance))
        words::store_relaxed(words::word_of(rma::at(dest, distance)), words::to_word<T>(value));
    else
        ring::post(ring::Request{ring::OP_PUT_VALUE, sizeof(T), (u32)pe, ring::offset_of(dest), 0, sizeof(T),
                                 words::to_word<T>(value), 0});
}

// One value of PE `pe`, loaded whole.
template <class T>
OXSHMEM_DEVICE T g(const T* source, int pe) {
    if (!check::target(check::CALL_G, pe, source, sizeof(T), sizeof(T))) return T();
    const i64 distance = rma::distance_to(pe);
    typedef typename words::Word<sizeof(T)>::Type Word;
    const Word word = rma::is_mapped(distance)
                          ? words::load_relaxed(words::word_of(rma::at(source, distance)))
                          : (Word)ring::fetch(ring::Request{ring::OP_GET_VALUE, sizeof(T), (u32)pe,
                                                             ring::offset_of(source), 0, sizeof(T), 0, 0});
    return words::from_word<T>(word);
}

// Strided put and get: element i goes from `source[i * source_stride]` to `dest[i * dest_stride]`. Strides are
// at least 1, in elements.
template <class Scope, class T>
OXSHMEM_DEVICE void iput(Scope scope, T* dest, const T* source, i64 dest_stride, i64 source_stride,
                         size_t n, int pe) {
    if (!check::stride(check::CALL_IPUT, dest_stride) || !check::stride(check::CALL_IPUT, source_stride)) return;
    const u64 span = n ? ((n - 1) * dest_stride + 1) * sizeof(T) : 0;
    if (!check::target(check::CALL_IPUT, pe, dest, span, alignof(T))) return;
    scope.sync();
    u64 ticket = 0;
    for (size_t i = scope.rank(); i < n; i += scope.size()) {
        const u64 own = rma::put_part(thread(), dest + i * dest_stride, source + i * source_stride, sizeof(T), pe, true);
        ticket = own ? own : ticket;
    }
    if (ticket) ring::await_source(ticket - 1);
    scope.sync();
}
template <class T>
OXSHMEM_DEVICE void iput(T* dest, const T* source, i64 dest_stride, i64 source_stride, size_t n, int pe) {
    iput(thread(), dest, source, dest_stride, source_stride, n, pe);
}
template <class Scope, class T>
OXSHMEM_DEVICE void iget(Scope scope, T* dest, const T* source, i64 dest_stride, i64 source_stride,
                         size_t n, int pe) {
    if (!check::stride(check::CALL_IGET, dest_stride) || !check::stride(check::CALL_IGET, source_stride)) return;
    const u64 span = n ? ((n - 1) * source_stride + 1) * sizeof(T) : 0;
    if (!check::target(check::CALL_IGET, pe, source, span, alignof(T))) return;
    scope.sync();
    for (size_t i = scope.rank(); i < n; i += scope.size())
        rma::get(thread(), dest + i * dest_stride, source + i * source_stride, sizeof(T), alignof(T), pe, true);
    scope.sync();
}
template <class T>
OXSHMEM_DEVICE void iget(T* dest, const T* source, i64 dest_stride, i64 source_stride, size_t n, int pe) {
    iget(thread(), dest, source, dest_stride, source_stride, n, pe);
}

// PE `pe`'s copy of a symmetric object for plain loads and stores, or null. The result is no symmetric address (M34).
template <class T>
OXSHMEM_DEVICE T* ptr(const T* symmetric, int pe) {
    if ((u32)pe >= oxshmem_state.n) return nullptr;
    const i64 distance = rma::distance_to(pe);
    return rma::is_mapped(distance) ? rma::at((T*)symmetric, distance) : nullptr;
}

}  // namespace oxshmem
