// out[i] = the fold of sources[0][i], sources[1][i], … by one operation, in that order: PEs that
// name the sources alike get equal results. Each source begins `offset` bytes into what the table names, so
// that one table of heaps serves every launch.
//
// A module of its own: making machine code of it takes a driver most of a second the first time, which
// a program that reduces nothing need not wait for.

#include "kernel.cuh"
#include "half.cuh"

// The type that elements are folded in: at least 32 bits; f16 and bf16 are rounded once, at the end.
template <class T>
struct Folded {
    typedef T Wide;
    DEVICE Wide widen(T value) { return value; }
    DEVICE T narrow(Wide wide) { return wide; }
};
template <class T, class W>
struct FoldedAs {
    typedef W Wide;
    DEVICE Wide widen(T value) { return (Wide)value; }
    DEVICE T narrow(Wide wide) { return (T)wide; }
};
template <> struct Folded<i8> : FoldedAs<i8, i32> {};
template <> struct Folded<u8> : FoldedAs<u8, u32> {};
template <> struct Folded<i16> : FoldedAs<i16, i32> {};
template <> struct Folded<u16> : FoldedAs<u16, u32> {};
template <>
struct Folded<f16> {
    typedef float Wide;
    DEVICE float widen(f16 value) { return to_float(value); }
    DEVICE f16 narrow(float wide) { return to_f16(wide); }
};
template <>
struct Folded<bf16> {
    typedef float Wide;
    DEVICE float widen(bf16 value) { return to_float(value); }
    DEVICE bf16 narrow(float wide) { return to_bf16(wide); }
};

// Integers wrap.
struct Sum {
    template <class T> DEVICE T fold(T a, T b) { return a + b; }
};
struct Product {
    template <class T> DEVICE T fold(T a, T b) { return a * b; }
};
// Where the first of the sources is a NaN, it stays; a later NaN is passed over.
struct Min {
    template <class T> DEVICE T fold(T a, T b) { return b < a ? b : a; }
};
struct Max {
    template <class T> DEVICE T fold(T a, T b) { return a < b ? b : a; }
};
struct And {
    template <class T> DEVICE T fold(T a, T b) { return a & b; }
};
struct Or {
    template <class T> DEVICE T fold(T a, T b) { return a | b; }
};
struct Xor {
    template <class T> DEVICE T fold(T a, T b) { return a ^ b; }
};

// `LANES` neighbouring elements, read and written by one access.
template <class T, u32 LANES>
struct alignas(sizeof(T) * LANES) Pack {
    T lane[LANES];
};

template <class Op, class T, u32 LANES>
DEVICE void fold_pack(T* out, const char* const* sources, u32 count, u64 offset, u64 at) {
    typedef Pack<T, LANES> Packed;
    typedef Folded<T> Element;
    typename Element::Wide wide[LANES];
    Packed pack = *(const Packed*)(sources[0] + offset + at * sizeof(T));
#pragma unroll
    for (u32 i = 0; i < LANES; ++i) wide[i] = Element::widen(pack.lane[i]);
#pragma unroll 1
    for (u32 source = 1; source < count; ++source) {
        pack = *(const Packed*)(sources[source] + offset + at * sizeof(T));
#pragma unroll
        for (u32 i = 0; i < LANES; ++i)
            wide[i] = Op::fold(wide[i], Element::widen(pack.lane[i]));
    }
#pragma unroll
    for (u32 i = 0; i < LANES; ++i) pack.lane[i] = Element::narrow(wide[i]);
    *(Packed*)(out + at) = pack;
}

// `out` may be one of the sources: each element is read everywhere before it is written. A function
// of its own, since several entries share it.
template <class Op, class T>
__device__ __noinline__ void reduce(T* out, const char* const* sources, u32 count, u64 offset,
                                     u64 elements) {
    if (count == 0) return;
    const u32 LANES = sizeof(T) == 8 ? 2 : 4;
    u64 addresses = (u64)out;
#pragma unroll 1
    for (u32 source = 0; source < count; ++source) addresses |= (u64)sources[source] + offset;
    const u64 packs = addresses % (sizeof(T) * LANES) == 0 ? elements / LANES : 0;
#pragma unroll 1
    for (u64 i = grid_thread(); i < packs; i += grid_threads())
        fold_pack<Op, T, LANES>(out, sources, count, offset, i * LANES);
#pragma unroll 1
    for (u64 i = packs * LANES + grid_thread(); i < elements; i += grid_threads())
        fold_pack<Op, T, 1>(out, sources, count, offset, i);
}

// `as` is the type that the work is done in, `type` the one that the caller names.
#define REDUCE(op, Op, type, as)                                                                   \
    extern "C" __global__ void oxshmem_reduce_##op##_##type(as* out, const char* const* sources,   \
                                                            u32 count, u64 offset, u64 elements) { \
        reduce<Op>(out, sources, count, offset, elements);                                         \
    }
#define REDUCE_UNSIGNED(op, Op)                                                                    \
    REDUCE(op, Op, u8, u8)                                                                         \
    REDUCE(op, Op, u16, u16)                                                                       \
    REDUCE(op, Op, u32, u32)                                                                       \
    REDUCE(op, Op, u64, u64)
// Bits do not differ, whether signed or not.
#define REDUCE_SIGNED_ALIKE(op, Op)                                                                \
    REDUCE(op, Op, i8, u8)                                                                         \
    REDUCE(op, Op, i16, u16)                                                                       \
    REDUCE(op, Op, i32, u32)                                                                       \
    REDUCE(op, Op, i64, u64)
#define REDUCE_SIGNED(op, Op)                                                                      \
    REDUCE(op, Op, i8, i8)                                                                         \
    REDUCE(op, Op, i16, i16)                                                                       \
    REDUCE(op, Op, i32, i32)                                                                       \
    REDUCE(op, Op, i64, i64)
#define REDUCE_FLOATS(op, Op)                                                                      \
    REDUCE(op, Op, f16, f16)                                                                       \
    REDUCE(op, Op, bf16, bf16)                                                                     \
    REDUCE(op, Op, f32, f32)                                                                       \
    REDUCE(op, Op, f64, f64)

REDUCE_UNSIGNED(sum, Sum)
REDUCE_SIGNED_ALIKE(sum, Sum)
REDUCE_FLOATS(sum, Sum)
REDUCE_UNSIGNED(prod, Product)
REDUCE_SIGNED_ALIKE(prod, Product)
REDUCE_FLOATS(prod, Product)
REDUCE_UNSIGNED(min, Min)
REDUCE_SIGNED(min, Min)
REDUCE_FLOATS(min, Min)
REDUCE_UNSIGNED(max, Max)
REDUCE_SIGNED(max, Max)
REDUCE_FLOATS(max, Max)
REDUCE_UNSIGNED(and, And)
REDUCE_SIGNED_ALIKE(and, And)
REDUCE_UNSIGNED(or, Or)
REDUCE_SIGNED_ALIKE(or, Or)
REDUCE_UNSIGNED(xor, Xor)
REDUCE_SIGNED_ALIKE(xor, Xor)
