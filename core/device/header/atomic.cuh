// Atomics and signals on words of GPU memory (M28 to M30). Every atomic on such a word is performed by the GPU that
// has it, whatever issued it (G5).
#pragma once

#include "order.cuh"

namespace oxshmem {
namespace atomics {

template <class T>
OXSHMEM_DEVICE ring::Request request(u32 operation, const T* at, int pe, T value, T compare) {
    return ring::Request{operation, sizeof(T), (u32)pe, ring::offset_of(at), 0, sizeof(T), words::to_word<T>(value),
                         words::to_word<T>(compare)};
}

}  // namespace atomics

// The value of a word.
template <class T>
OXSHMEM_DEVICE T atomic_fetch(const T* source, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, source, sizeof(T), sizeof(T))) return T();
    const i64 distance = rma::distance_to(pe);
    const T* at = rma::at(source, distance);
    typedef typename words::Word<sizeof(T)>::Type Word;
    const Word old = rma::is_mapped(distance) ? words::load_relaxed(words::word_of(at))
                                              : (Word)ring::fetch(atomics::request<T>(ring::OP_FETCH, source, pe, T(), T()));
    return words::from_word<T>(old);
}

template <class T>
OXSHMEM_DEVICE void atomic_set(T* dest, typename words::Same<T>::Type value, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return;
    const i64 distance = rma::distance_to(pe);
    T* at = rma::at(dest, distance);
    if (rma::is_mapped(distance))
        words::store_relaxed(words::word_of(at), words::to_word<T>(value));
    else
        ring::post(atomics::request<T>(ring::OP_SET, dest, pe, value, T()));
}

template <class T>
OXSHMEM_DEVICE T atomic_compare_swap(T* dest, typename words::Same<T>::Type compare, typename words::Same<T>::Type value, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();
    const i64 distance = rma::distance_to(pe);
    T* at = rma::at(dest, distance);
    typedef typename words::Word<sizeof(T)>::Type Word;
    const Word old = rma::is_mapped(distance)
                        ? words::compare_swap(words::word_of(at), words::to_word<T>(compare), words::to_word<T>(value))
                        : (Word)ring::fetch(atomics::request<T>(ring::OP_COMPARE_SWAP, dest, pe, value, compare));
    return words::from_word<T>(old);
}

#define OXSHMEM_FETCHING(name, function, operation)                                                    \
    template <class T>                                                                                 \
    OXSHMEM_DEVICE T name(T* dest, typename words::Same<T>::Type value, int pe) {                       \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();            \
        const i64 distance = rma::distance_to(pe);                                                     \
        T* at = rma::at(dest, distance);                                                               \
        typedef typename words::Word<sizeof(T)>::Type Word;                                            \
        const Word old = rma::is_mapped(distance)                                                      \
                            ? words::function(words::word_of(at), words::to_word<T>(value))            \
                            : (Word)ring::fetch(atomics::request<T>(ring::operation, dest, pe, value, T())); \
        return words::from_word<T>(old);                                                               \
    }
#define OXSHMEM_NOT_FETCHING(name, function, operation)                                                \
    template <class T>                                                                                 \
    OXSHMEM_DEVICE void name(T* dest, typename words::Same<T>::Type value, int pe) {                    \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return;                \
        const i64 distance = rma::distance_to(pe);                                                     \
        T* at = rma::at(dest, distance);                                                               \
        if (rma::is_mapped(distance))                                                                  \
            words::function(words::word_of(at), words::to_word<T>(value));                                \
        else                                                                                           \
            ring::post(atomics::request<T>(ring::operation, dest, pe, value, T()));                       \
    }

// Each gives the old value. Integers wrap; `swap` takes any type of 4 or 8 bytes.
OXSHMEM_FETCHING(atomic_swap, swap, OP_SWAP)
OXSHMEM_FETCHING(atomic_fetch_add, fetch_add, OP_FETCH_ADD)
OXSHMEM_FETCHING(atomic_fetch_and, fetch_and, OP_FETCH_AND)
OXSHMEM_FETCHING(atomic_fetch_or, fetch_or, OP_FETCH_OR)
OXSHMEM_FETCHING(atomic_fetch_xor, fetch_xor, OP_FETCH_XOR)
OXSHMEM_NOT_FETCHING(atomic_add, add, OP_ADD)
OXSHMEM_NOT_FETCHING(atomic_and, and_with, OP_AND)
OXSHMEM_NOT_FETCHING(atomic_or, or_with, OP_OR)
OXSHMEM_NOT_FETCHING(atomic_xor, xor_with, OP_XOR)

#undef OXSHMEM_FETCHING
#undef OXSHMEM_NOT_FETCHING

// The type in which numbers of a type are added and folded: 16-bit floating-point numbers in a wider one, for which whoever has their type
// makes this known. A result is rounded once.
template <class T>
struct Computed {
    typedef T Type;
    OXSHMEM_DEVICE Type of(T value) { return value; }
    OXSHMEM_DEVICE T rounded(Type value) { return value; }
};

namespace atomics {

// Sums of floating-point numbers: the memory's own for those that are mapped, else by swapping the word while nothing comes between.
#if OXSHMEM_PTX
#define OXSHMEM_REAL(T, bits, reg)                                                                     \
    OXSHMEM_DEVICE T fetch_add_mapped(T* at, T value) {                                                \
        T old;                                                                                         \
        asm volatile("atom.relaxed.sys.add.f" bits " %0, [%1], %2;"                                    \
                     : "=" reg(old)                                                                    \
                     : "l"(at), reg(value)                                                             \
                     : "memory");                                                                      \
        return old;                                                                                    \
    }                                                                                                  \
    OXSHMEM_DEVICE void add_mapped(T* at, T value) {                                                   \
        asm volatile("red.relaxed.sys.add.f" bits " [%0], %1;" ::"l"(at), reg(value) : "memory");      \
    }
OXSHMEM_REAL(float, "32", "f")
OXSHMEM_REAL(double, "64", "d")
#undef OXSHMEM_REAL
#endif

template <class T>
OXSHMEM_OUTLINE T fetch_add_by_swaps(T* dest, T value, int pe) {
    typedef typename words::Word<sizeof(T)>::Type Word;
    Word* word = words::word_of(dest);
    for (Word seen = atomic_fetch(word, pe);;) {
        const T old = words::from_word<T>(seen);
        const Word found = atomic_compare_swap(word, seen, words::to_word<T>(old + value), pe);
        if (found == seen) return old;
        seen = found;
    }
}

}  // namespace atomics

// Floating-point numbers.
#if OXSHMEM_PTX
#define OXSHMEM_REAL(T)                                                                                \
    OXSHMEM_DEVICE T atomic_fetch_add(T* dest, T value, int pe) {                                      \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();            \
        const i64 distance = rma::distance_to(pe);                                                     \
        return rma::is_mapped(distance) ? atomics::fetch_add_mapped(rma::at(dest, distance), value)    \
                                        : atomics::fetch_add_by_swaps(dest, value, pe);                \
    }                                                                                                  \
    OXSHMEM_DEVICE void atomic_add(T* dest, T value, int pe) {                                         \
        if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return;                \
        const i64 distance = rma::distance_to(pe);                                                     \
        if (rma::is_mapped(distance))                                                                  \
            atomics::add_mapped(rma::at(dest, distance), value);                                       \
        else                                                                                           \
            (void)atomics::fetch_add_by_swaps(dest, value, pe);                                        \
    }
#else
#define OXSHMEM_REAL(T)                                                                                \
    OXSHMEM_DEVICE T atomic_fetch_add(T* dest, T value, int pe) {                                      \
        return atomics::fetch_add_by_swaps(dest, value, pe);                                           \
    }                                                                                                  \
    OXSHMEM_DEVICE void atomic_add(T* dest, T value, int pe) {                                         \
        (void)atomics::fetch_add_by_swaps(dest, value, pe);                                            \
    }
#endif
OXSHMEM_REAL(float)
OXSHMEM_REAL(double)
#undef OXSHMEM_REAL

// Words of 16 bits: by the word of 32 in which one lies, so that they go with each other's on all ways.
namespace atomics {

OXSHMEM_DEVICE u32* around(const void* at) { return (u32*)((u64)at & ~(u64)3); }
OXSHMEM_DEVICE u32 shift_of(const void* at) { return (u32)((u64)at & 2) * 8; }

template <class T>
struct Put16 {
    T value;
    OXSHMEM_MEMBER T operator()(T) const { return value; }
};
template <class T>
struct Add16 {
    T value;
    OXSHMEM_MEMBER T operator()(T old) const {
        return Computed<T>::rounded(Computed<T>::of(old) + Computed<T>::of(value));
    }
};

// Gives the old value.
template <class T, class Change>
OXSHMEM_OUTLINE T change16(T* dest, Change change, int pe) {
    if (!check::target(check::CALL_ATOMIC, pe, dest, sizeof(T), sizeof(T))) return T();
    u32* word = around(dest);
    const u32 shift = shift_of(dest);
    for (u32 seen = atomic_fetch(word, pe);;) {
        const T old = words::from_word<T>((u16)(seen >> shift));
        const u32 next = (seen & ~(0xffffu << shift)) | (u32)words::to_word<T>(change(old)) << shift;
        const u32 found = atomic_compare_swap(word, seen, next, pe);
        if (found == seen) return old;
        seen = found;
    }
}

}  // namespace atomics

template <class T>
OXSHMEM_DEVICE T atomic_fetch16(const T* source, int pe) {
    const u32 seen = atomic_fetch(atomics::around(source), pe);
    return words::from_word<T>((u16)(seen >> atomics::shift_of(source)));
}
template <class T>
OXSHMEM_DEVICE T atomic_swap16(T* dest, typename words::Same<T>::Type value, int pe) {
    return atomics::change16(dest, atomics::Put16<T>{value}, pe);
}
template <class T>
OXSHMEM_DEVICE void atomic_set16(T* dest, typename words::Same<T>::Type value, int pe) {
    (void)atomic_swap16(dest, value, pe);
}
template <class T>
OXSHMEM_DEVICE T atomic_fetch_add16(T* dest, typename words::Same<T>::Type value, int pe) {
    return atomics::change16(dest, atomics::Add16<T>{value}, pe);
}
template <class T>
OXSHMEM_DEVICE void atomic_add16(T* dest, typename words::Same<T>::Type value, int pe) {
    (void)atomic_fetch_add16(dest, value, pe);
}

template <class T>
OXSHMEM_DEVICE void atomic_inc(T* dest, int pe) {
    atomic_add(dest, (T)1, pe);
}
template <class T>
OXSHMEM_DEVICE T atomic_fetch_inc(T* dest, int pe) {
    return atomic_fetch_add(dest, (T)1, pe);
}

// Sets a signal, or adds to it. It orders nothing before it; put_signal does, or a fence.
template <class Signal>
OXSHMEM_DEVICE void signal(Signal* signal, u64 value, SignalOperation operation, int pe) {
    if (!check::target(check::CALL_SIGNAL, pe, signal, 8, 8)) return;
    const i64 distance = rma::distance_to(pe);
    u64* at = words::signal_word(rma::at(signal, distance));
    if (!rma::is_mapped(distance))
        ring::post(ring::Request{ring::OP_SIGNAL, operation, (u32)pe, 0, 0, 0, value, ring::offset_of(signal)});
    else if (operation == SIGNAL_ADD)
        words::add(at, value);
    else
        words::store_relaxed(at, value);
}

namespace rma {

template <class Scope>
OXSHMEM_DEVICE void put_signal(Scope scope, void* dest, const void* source, u64 bytes, u64 align, u64* signal, u64 value,
                               SignalOperation operation, int pe, bool is_blocking) {
    if (!check::target(check::CALL_PUT_SIGNAL, pe, dest, bytes, align) ||
        !check::target(check::CALL_PUT_SIGNAL, pe, signal, 8, 8))
        return;
    scope.sync();
    if (!is_blocking) race::begin(scope, source, race::SOURCE, copy_at(pe, dest), race::SIGNALLED, bytes);
    const i64 distance = distance_to(pe);
    if (is_mapped(distance)) {
        copies::copy<copies::Plain>(scope, at((char*)dest, distance), (const char*)source, bytes);
        if (!is_blocking) race::end();
        // The barrier orders the other threads' stores before this one's release.
        scope.sync();
        if (scope.rank() == 0) {
            u64* word = at(signal, distance);
            if (operation == SIGNAL_ADD)
                words::add_release(word, value);
            else
                words::store_release(word, value);
        }
        return;
    }
    if (scope.rank() == 0) {
        const u64 ticket = ring::post(ring::Request{ring::OP_PUT_SIGNAL, operation, (u32)pe, ring::offset_of(dest),
                                                    (u64)source, bytes, value, ring::offset_of(signal)});
        if (is_blocking) ring::await_source(ticket);
    }
    if (!is_blocking) race::end();
    scope.sync();
}

}  // namespace rma

// A put, and then the signal: whoever sees the signal sees the data of this call (M22).
template <class Scope, class T, class Signal>
OXSHMEM_DEVICE void put_signal(Scope scope, T* dest, const T* source, size_t n, Signal* signal, u64 value,
                               SignalOperation operation, int pe) {
    rma::put_signal(scope, dest, source, n * sizeof(T), alignof(T), words::signal_word(signal), value, operation, pe, true);
}
template <class T, class Signal>
OXSHMEM_DEVICE void put_signal(T* dest, const T* source, size_t n, Signal* signal, u64 value, SignalOperation operation,
                               int pe) {
    put_signal(thread(), dest, source, n, signal, value, operation, pe);
}
template <class Scope, class T, class Signal>
OXSHMEM_DEVICE void put_signal_nbi(Scope scope, T* dest, const T* source, size_t n, Signal* signal, u64 value,
                                   SignalOperation operation, int pe) {
    rma::put_signal(scope, dest, source, n * sizeof(T), alignof(T), words::signal_word(signal), value, operation, pe, false);
}
template <class T, class Signal>
OXSHMEM_DEVICE void put_signal_nbi(T* dest, const T* source, size_t n, Signal* signal, u64 value,
                                   SignalOperation operation, int pe) {
    put_signal_nbi(thread(), dest, source, n, signal, value, operation, pe);
}

}  // namespace oxshmem
