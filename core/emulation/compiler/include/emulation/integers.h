// Integer functions, and casts of bits.
#pragma once

#define OXSHMEM_FUNCTION static __host__ __device__ __forceinline__

OXSHMEM_FUNCTION int __popc(unsigned x) { return __builtin_popcount(x); }
OXSHMEM_FUNCTION int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
OXSHMEM_FUNCTION int __clz(int x) { return x ? __builtin_clz(x) : 32; }
OXSHMEM_FUNCTION int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
OXSHMEM_FUNCTION int __ffs(int x) { return __builtin_ffs(x); }
OXSHMEM_FUNCTION int __ffsll(long long x) { return __builtin_ffsll(x); }
OXSHMEM_FUNCTION unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
OXSHMEM_FUNCTION unsigned long long __brevll(unsigned long long x) {
    return __builtin_bitreverse64(x);
}
// The n-th bit set, counted from `base` upward or downward.
OXSHMEM_FUNCTION unsigned __fns(unsigned mask, unsigned base, int offset) {
    if (offset == 0) return (mask >> base) & 1 ? base : 0xffffffffu;
    int left = offset > 0 ? offset : -offset;
    for (int at = base; at >= 0 && at < 32; at += offset > 0 ? 1 : -1) {
        if ((mask >> at) & 1 && --left == 0) return at;
    }
    return 0xffffffffu;
}
OXSHMEM_FUNCTION unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned long long bytes = ((unsigned long long)y << 32) | x;
    unsigned result = 0;
    for (int at = 0; at < 4; ++at) {
        result |= (unsigned)((bytes >> (8 * ((selector >> (4 * at)) & 7))) & 0xff) << (8 * at);
    }
    return result;
}
OXSHMEM_FUNCTION int __mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
OXSHMEM_FUNCTION unsigned __umul24(unsigned x, unsigned y) {
    return (x & 0xffffff) * (y & 0xffffff);
}
OXSHMEM_FUNCTION int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
OXSHMEM_FUNCTION unsigned __umulhi(unsigned x, unsigned y) {
    return (unsigned)(((unsigned long long)x * y) >> 32);
}
OXSHMEM_FUNCTION long long __mul64hi(long long x, long long y) {
    return (long long)(((__int128)x * y) >> 64);
}
OXSHMEM_FUNCTION unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
OXSHMEM_FUNCTION unsigned __sad(int x, int y, unsigned z) {
    return (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x) + z;
}
OXSHMEM_FUNCTION unsigned __usad(unsigned x, unsigned y, unsigned z) {
    return (x > y ? x - y : y - x) + z;
}
OXSHMEM_FUNCTION int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
OXSHMEM_FUNCTION int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
OXSHMEM_FUNCTION unsigned __uhadd(unsigned x, unsigned y) {
    return (unsigned)(((unsigned long long)x + y) >> 1);
}
OXSHMEM_FUNCTION unsigned __urhadd(unsigned x, unsigned y) {
    return (unsigned)(((unsigned long long)x + y + 1) >> 1);
}
OXSHMEM_FUNCTION unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((((unsigned long long)high << 32) | low) << (shift & 31)) >> 32);
}
OXSHMEM_FUNCTION unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32) | low) >> (shift & 31));
}
// Those whose shift is at most 32.
OXSHMEM_FUNCTION unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
OXSHMEM_FUNCTION unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
OXSHMEM_FUNCTION int __dp4a(int x, int y, int sum) {
    for (int at = 0; at < 4; ++at) {
        sum += (int)(signed char)(x >> (8 * at)) * (int)(signed char)(y >> (8 * at));
    }
    return sum;
}
OXSHMEM_FUNCTION unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
    for (int at = 0; at < 4; ++at) sum += ((x >> (8 * at)) & 0xff) * ((y >> (8 * at)) & 0xff);
    return sum;
}
// Two numbers of 16 bits with two of 8, of which `y` has four.
#define OXSHMEM_DOT(name, first)                                                                   \
    OXSHMEM_FUNCTION int name(int x, int y, int sum) {                                             \
        return sum + (short)x * (signed char)(y >> first) + (x >> 16) * (signed char)(y >> (first + 8)); \
    }                                                                                              \
    OXSHMEM_FUNCTION unsigned name(unsigned x, unsigned y, unsigned sum) {                         \
        return sum + (x & 0xffff) * (y >> first & 0xff) + (x >> 16) * (y >> (first + 8) & 0xff);   \
    }
OXSHMEM_DOT(__dp2a_lo, 0)
OXSHMEM_DOT(__dp2a_hi, 16)
#undef OXSHMEM_DOT

#define OXSHMEM_CAST(name, To, From)                                                               \
    OXSHMEM_FUNCTION To name(From x) { return __builtin_bit_cast(To, x); }
OXSHMEM_CAST(__float_as_int, int, float)
OXSHMEM_CAST(__float_as_uint, unsigned, float)
OXSHMEM_CAST(__int_as_float, float, int)
OXSHMEM_CAST(__uint_as_float, float, unsigned)
OXSHMEM_CAST(__double_as_longlong, long long, double)
OXSHMEM_CAST(__longlong_as_double, double, long long)
#undef OXSHMEM_CAST
OXSHMEM_FUNCTION int __double2loint(double x) { return (int)__double_as_longlong(x); }
OXSHMEM_FUNCTION int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
OXSHMEM_FUNCTION double __hiloint2double(int high, int low) {
    return __longlong_as_double(((long long)high << 32) | (unsigned)low);
}

// `min` and `max` of numbers of one type or of two.
template <class _First, class _Second>
OXSHMEM_FUNCTION typename std::enable_if<std::is_arithmetic<_First>::value && std::is_arithmetic<_Second>::value,
                                         typename std::common_type<_First, _Second>::type>::type
min(_First a, _Second b) {
    typedef typename std::common_type<_First, _Second>::type T;
    if constexpr (std::is_floating_point<T>::value) {
        return (T)a != (T)a ? (T)b : (T)b < (T)a ? (T)b : (T)a;
    } else {
        return (T)b < (T)a ? (T)b : (T)a;
    }
}
template <class _First, class _Second>
OXSHMEM_FUNCTION typename std::enable_if<std::is_arithmetic<_First>::value && std::is_arithmetic<_Second>::value,
                                         typename std::common_type<_First, _Second>::type>::type
max(_First a, _Second b) {
    typedef typename std::common_type<_First, _Second>::type T;
    if constexpr (std::is_floating_point<T>::value) {
        return (T)a != (T)a ? (T)b : (T)a < (T)b ? (T)b : (T)a;
    } else {
        return (T)a < (T)b ? (T)b : (T)a;
    }
}
#define OXSHMEM_MINMAX(T, prefix)                                                                  \
    OXSHMEM_FUNCTION T prefix##min(T a, T b) { return b < a ? b : a; }                             \
    OXSHMEM_FUNCTION T prefix##max(T a, T b) { return a < b ? b : a; }
OXSHMEM_MINMAX(unsigned, u)
OXSHMEM_MINMAX(long long, ll)
OXSHMEM_MINMAX(unsigned long long, ull)
#undef OXSHMEM_MINMAX
