// Calls of a whole block, for languages whose programs are blocks (Triton). All threads of a block make them with the same
// arguments, and get the same result.
//
// A call of one thread (a value, an atomic, a signal, a wait, an order) is made once, by the block's first thread: what the
// block's threads did before comes before it, and what they do afterwards comes after it (G2).
//
// Parameters and results are integers and floating-point numbers of the widths that Triton has, addresses too: then a caller's
// types are those of the function, and a call is linked as it is. core/nvshmem/python/oxshmem_triton/symbols.py lists them.
#pragma once

#include "device/oxshmem_calls.cuh"

#define OXSHMEM_OF_BLOCK extern "C" __device__ __attribute__((always_inline))

namespace oxshmem {
namespace blocks {

OXSHMEM_DEVICE bool is_first() { return thread_in_block() == 0; }

// The place of a result: one, since all threads have read it when they come to the next call.
OXSHMEM_DEVICE u64* result_of_first() {
    __shared__ u64 result;
    return &result;
}
// Has the first thread make a call. Its result is the block's.
template <class Function>
OXSHMEM_DEVICE u64 once(Function function) {
    __syncthreads();
    if (is_first()) *result_of_first() = (u64)function();
    __syncthreads();
    return *result_of_first();
}
// The same without a result.
template <class Function>
OXSHMEM_DEVICE int do_once(Function function) {
    __syncthreads();
    if (is_first()) function();
    __syncthreads();
    return 0;
}

// Operations on words, in the order of symbols.py.
enum Atomic : int { FETCH, SET, SWAP, COMPARE_SWAP, FETCH_ADD, FETCH_AND, FETCH_OR, FETCH_XOR, ADD, AND, OR, XOR };

template <class T>
OXSHMEM_DEVICE T atomic(int operation, T* word, T value, T old, int pe) {
    switch (operation) {
        case FETCH: return atomic_fetch(word, pe);
        case SET: atomic_set(word, value, pe); return 0;
        case SWAP: return atomic_swap(word, value, pe);
        case COMPARE_SWAP: return atomic_compare_swap(word, old, value, pe);
        case FETCH_ADD: return atomic_fetch_add(word, value, pe);
        case FETCH_AND: return atomic_fetch_and(word, value, pe);
        case FETCH_OR: return atomic_fetch_or(word, value, pe);
        case FETCH_XOR: return atomic_fetch_xor(word, value, pe);
        case ADD: atomic_add(word, value, pe); return 0;
        case AND: atomic_and(word, value, pe); return 0;
        case OR: atomic_or(word, value, pe); return 0;
        default: atomic_xor(word, value, pe); return 0;
    }
}

}  // namespace blocks
}  // namespace oxshmem

OXSHMEM_OF_BLOCK int oxshmem_block_my_pe() { return oxshmem::my_pe(); }
OXSHMEM_OF_BLOCK int oxshmem_block_n_pes() { return oxshmem::n_pes(); }
OXSHMEM_OF_BLOCK int oxshmem_block_team_my_pe(int team) { return oxshmem::team_my_pe(team); }
OXSHMEM_OF_BLOCK int oxshmem_block_team_n_pes(int team) { return oxshmem::team_n_pes(team); }
OXSHMEM_OF_BLOCK int oxshmem_block_team_translate_pe(int team, int pe, int to) {
    return oxshmem::team_translate_pe(team, pe, to);
}
OXSHMEM_OF_BLOCK oxshmem::u64 oxshmem_block_ptr(oxshmem::u64 at, int pe) { return (oxshmem::u64)oxshmem::ptr((char*)at, pe); }

#define OXSHMEM_COPY(name)                                                                                                     \
    OXSHMEM_OF_BLOCK int oxshmem_block_##name(oxshmem::u64 dest, oxshmem::u64 source, oxshmem::u64 bytes, int pe) {            \
        oxshmem::name(oxshmem::block(), (void*)dest, (const void*)source, bytes, pe);                                          \
        return 0;                                                                                                              \
    }
OXSHMEM_COPY(putmem)
OXSHMEM_COPY(putmem_nbi)
OXSHMEM_COPY(getmem)
OXSHMEM_COPY(getmem_nbi)

#define OXSHMEM_PUT_SIGNAL(name)                                                                                               \
    OXSHMEM_OF_BLOCK int oxshmem_block_##name(oxshmem::u64 dest, oxshmem::u64 source, oxshmem::u64 bytes, oxshmem::u64 signal, \
                                           oxshmem::u64 value, int operation, int pe) {                                        \
        oxshmem::name(oxshmem::block(), (char*)dest, (const char*)source, bytes, (oxshmem::u64*)signal, value,                 \
                      nvshmem_ox::operation(operation), pe);                                                                   \
        return 0;                                                                                                              \
    }
OXSHMEM_PUT_SIGNAL(put_signal)
OXSHMEM_PUT_SIGNAL(put_signal_nbi)

// Strided copies and single values, by the width of elements.
#define OXSHMEM_WIDTH(bits, Element, Value)                                                                                    \
    OXSHMEM_OF_BLOCK int oxshmem_block_iput##bits(oxshmem::u64 dest, oxshmem::u64 source, oxshmem::u64 dest_stride,            \
                                               oxshmem::u64 source_stride, oxshmem::u64 n, int pe) {                           \
        oxshmem::iput(oxshmem::block(), (Element*)dest, (const Element*)source, dest_stride, source_stride, n, pe);            \
        return 0;                                                                                                              \
    }                                                                                                                          \
    OXSHMEM_OF_BLOCK int oxshmem_block_iget##bits(oxshmem::u64 dest, oxshmem::u64 source, oxshmem::u64 dest_stride,            \
                                               oxshmem::u64 source_stride, oxshmem::u64 n, int pe) {                           \
        oxshmem::iget(oxshmem::block(), (Element*)dest, (const Element*)source, dest_stride, source_stride, n, pe);            \
        return 0;                                                                                                              \
    }                                                                                                                          \
    OXSHMEM_OF_BLOCK int oxshmem_block_p##bits(oxshmem::u64 dest, Value value, int pe) {                                       \
        return oxshmem::blocks::do_once([=] { oxshmem::p((Element*)dest, (Element)value, pe); });                              \
    }                                                                                                                          \
    OXSHMEM_OF_BLOCK Value oxshmem_block_g##bits(oxshmem::u64 source, int pe) {                                                \
        return (Value)oxshmem::blocks::once([=] { return oxshmem::g((const Element*)source, pe); });                           \
    }
OXSHMEM_WIDTH(8, oxshmem::u8, oxshmem::u32)
OXSHMEM_WIDTH(16, oxshmem::u16, oxshmem::u32)
OXSHMEM_WIDTH(32, oxshmem::u32, oxshmem::u32)
OXSHMEM_WIDTH(64, oxshmem::u64, oxshmem::u64)

// Signals, and atomics by the width of words.
OXSHMEM_OF_BLOCK int oxshmem_block_signal_op(oxshmem::u64 signal, oxshmem::u64 value, int operation, int pe) {
    return oxshmem::blocks::do_once(
        [=] { oxshmem::signal((oxshmem::u64*)signal, value, nvshmem_ox::operation(operation), pe); });
}
OXSHMEM_OF_BLOCK oxshmem::u64 oxshmem_block_signal_fetch(oxshmem::u64 signal) {
    return oxshmem::blocks::once([=] { return oxshmem::signal_fetch((oxshmem::u64*)signal); });
}
OXSHMEM_OF_BLOCK oxshmem::u64 oxshmem_block_signal_wait_until(oxshmem::u64 signal, int compare, oxshmem::u64 value) {
    return oxshmem::blocks::once(
        [=] { return oxshmem::signal_wait_until((oxshmem::u64*)signal, nvshmem_ox::compare(compare), value); });
}
#define OXSHMEM_ATOMIC(bits, Word)                                                                                             \
    OXSHMEM_OF_BLOCK Word oxshmem_block_atomic##bits(int operation, oxshmem::u64 word, Word value, Word old, int pe) {         \
        return (Word)oxshmem::blocks::once([=] { return oxshmem::blocks::atomic(operation, (Word*)word, value, old, pe); });   \
    }
OXSHMEM_ATOMIC(32, oxshmem::u32)
OXSHMEM_ATOMIC(64, oxshmem::u64)

// Waits for words of this PE, by their type.
#define OXSHMEM_WAIT(type, Word)                                                                                               \
    OXSHMEM_OF_BLOCK int oxshmem_block_##type##_wait_until(oxshmem::u64 word, int compare, Word value) {                       \
        return oxshmem::blocks::do_once(                                                                                       \
            [=] { oxshmem::wait_until((Word*)word, nvshmem_ox::compare(compare), value); });                                   \
    }                                                                                                                          \
    OXSHMEM_OF_BLOCK int oxshmem_block_##type##_test(oxshmem::u64 word, int compare, Word value) {                             \
        return (int)oxshmem::blocks::once(                                                                                     \
            [=] { return oxshmem::test((Word*)word, nvshmem_ox::compare(compare), value); });                                  \
    }                                                                                                                          \
    OXSHMEM_OF_BLOCK int oxshmem_block_##type##_wait_until_all(oxshmem::u64 words, oxshmem::u64 n, int compare, Word value) {  \
        return oxshmem::blocks::do_once(                                                                                       \
            [=] { oxshmem::wait_until_all((Word*)words, n, nullptr, nvshmem_ox::compare(compare), value); });                  \
    }                                                                                                                          \
    OXSHMEM_OF_BLOCK oxshmem::u64 oxshmem_block_##type##_wait_until_any(oxshmem::u64 words, oxshmem::u64 n, int compare,       \
                                                                     Word value) {                                             \
        return oxshmem::blocks::once(                                                                                          \
            [=] { return oxshmem::wait_until_any((Word*)words, n, nullptr, nvshmem_ox::compare(compare), value); });           \
    }
OXSHMEM_WAIT(int32, int)
OXSHMEM_WAIT(uint32, oxshmem::u32)
OXSHMEM_WAIT(int64, oxshmem::i64)
OXSHMEM_WAIT(uint64, oxshmem::u64)

OXSHMEM_OF_BLOCK int oxshmem_block_fence() { return oxshmem::blocks::do_once([] { oxshmem::fence(); }); }
OXSHMEM_OF_BLOCK int oxshmem_block_quiet() { return oxshmem::blocks::do_once([] { oxshmem::quiet(); }); }
OXSHMEM_OF_BLOCK int oxshmem_block_flush() { return oxshmem::blocks::do_once([] { oxshmem::flush(); }); }

OXSHMEM_OF_BLOCK int oxshmem_block_barrier(int team) { return oxshmem::barrier(oxshmem::block(), team); }
OXSHMEM_OF_BLOCK int oxshmem_block_sync(int team) { return oxshmem::sync(oxshmem::block(), team); }
OXSHMEM_OF_BLOCK int oxshmem_block_broadcastmem(int team, oxshmem::u64 dest, oxshmem::u64 source, oxshmem::u64 bytes, int root) {
    return oxshmem::broadcast(oxshmem::block(), team, (char*)dest, (const char*)source, bytes, root);
}
OXSHMEM_OF_BLOCK int oxshmem_block_fcollectmem(int team, oxshmem::u64 dest, oxshmem::u64 source, oxshmem::u64 bytes) {
    return oxshmem::fcollect(oxshmem::block(), team, (char*)dest, (const char*)source, bytes);
}
OXSHMEM_OF_BLOCK int oxshmem_block_alltoallmem(int team, oxshmem::u64 dest, oxshmem::u64 source, oxshmem::u64 bytes) {
    return oxshmem::alltoall(oxshmem::block(), team, (char*)dest, (const char*)source, bytes);
}

#define OXSHMEM_REDUCE(type, Element, name, Operation)                                                                         \
    OXSHMEM_OF_BLOCK int oxshmem_block_##type##_##name##_reduce(int team, oxshmem::u64 dest, oxshmem::u64 source,              \
                                                             oxshmem::u64 n) {                                                 \
        return oxshmem::reduce<oxshmem::Operation>(oxshmem::block(), team, (Element*)dest, (const Element*)source, n);         \
    }                                                                                                                          \
    OXSHMEM_OF_BLOCK int oxshmem_block_##type##_##name##_reducescatter(int team, oxshmem::u64 dest, oxshmem::u64 source,       \
                                                                    oxshmem::u64 n) {                                          \
        return oxshmem::reduce_scatter<oxshmem::Operation>(oxshmem::block(), team, (Element*)dest, (const Element*)source, n); \
    }
#define OXSHMEM_ARITHMETIC(type, Element)                                                                                      \
    OXSHMEM_REDUCE(type, Element, sum, Sum)                                                                                    \
    OXSHMEM_REDUCE(type, Element, prod, Product)                                                                               \
    OXSHMEM_REDUCE(type, Element, min, Min)                                                                                    \
    OXSHMEM_REDUCE(type, Element, max, Max)
#define OXSHMEM_BITWISE(type, Element)                                                                                         \
    OXSHMEM_ARITHMETIC(type, Element)                                                                                          \
    OXSHMEM_REDUCE(type, Element, and, And)                                                                                    \
    OXSHMEM_REDUCE(type, Element, or, Or)                                                                                      \
    OXSHMEM_REDUCE(type, Element, xor, Xor)
OXSHMEM_BITWISE(int8, signed char)
OXSHMEM_BITWISE(int16, short)
OXSHMEM_BITWISE(int32, int)
OXSHMEM_BITWISE(int64, oxshmem::i64)
OXSHMEM_BITWISE(uint8, oxshmem::u8)
OXSHMEM_BITWISE(uint16, oxshmem::u16)
OXSHMEM_BITWISE(uint32, oxshmem::u32)
OXSHMEM_BITWISE(uint64, oxshmem::u64)
OXSHMEM_ARITHMETIC(half, __half)
OXSHMEM_ARITHMETIC(bfloat16, __nv_bfloat16)
OXSHMEM_ARITHMETIC(float, float)
OXSHMEM_ARITHMETIC(double, double)
