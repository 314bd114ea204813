// Floating-point numbers of 16 bits over the compiler's own types: what cuda_fp16.h and cuda_bf16.h share.
#pragma once

#include <limits>
#include <math.h>

#if defined(__CUDA__)
#define OXSHMEM_HD __host__ __device__ __forceinline__
#else
// A source of the host alone has the same types, so that objects of both kinds agree.
#define OXSHMEM_HD inline __attribute__((always_inline))
#endif

// The bits of a __nv_bfloat16. The compiler's own type __bf16 would call functions that compilers' libraries have only since GCC 13.
struct oxshmem_bfloat16 {
    unsigned short bits;
};

// A number as a float, and one rounded to the nearest of a type, to even in the middle.
OXSHMEM_HD float oxshmem_widened(_Float16 x) { return (float)x; }
OXSHMEM_HD float oxshmem_widened(oxshmem_bfloat16 x) { return __builtin_bit_cast(float, (unsigned)x.bits << 16); }
OXSHMEM_HD _Float16 oxshmem_rounded(float x, _Float16) { return (_Float16)x; }
OXSHMEM_HD oxshmem_bfloat16 oxshmem_rounded(float x, oxshmem_bfloat16) {
    const unsigned bits = __builtin_bit_cast(unsigned, x);
    const unsigned rounded = x != x ? bits | 1u << 22 : bits + 0x7fff + (bits >> 16 & 1);
    return {(unsigned short)(rounded >> 16)};
}

// Numbers whose last bit is 1 if bits were cut off: one that is rounded again is rounded as if it had all of them.
OXSHMEM_HD float oxshmem_odd(double x) {
    float nearest = (float)x;
    if ((double)nearest == x || x != x) return nearest;
    unsigned bits = __builtin_bit_cast(unsigned, nearest);
    // Toward zero, and then the bit.
    if (fabs((double)nearest) > fabs(x)) --bits;
    return __builtin_bit_cast(float, bits | 1);
}
OXSHMEM_HD double oxshmem_odd64(bool negative, unsigned long long x) {
    if (x >> 53) x = (x & ~0x7ffull) | ((x & 0x7ff) != 0) << 11;
    return negative ? -(double)x : (double)x;
}
OXSHMEM_HD double oxshmem_fused(double product, double c) {
    const double sum = product + c, back = sum - product, rest = (product - (sum - back)) + (c - back);
    unsigned long long bits = __builtin_bit_cast(unsigned long long, sum);
    if (rest == 0 || rest != rest || (bits & 1)) return sum;
    return __builtin_bit_cast(double, (rest > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
// A whole number in the range of its type, as a GPU gives.
template <class To> OXSHMEM_HD To oxshmem_whole(float x) {
    if (x != x) return sizeof(To) == 8 ? (To)(1ull << 63) : (To)0;
    constexpr To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    return x <= (float)low ? low : x >= (float)high ? high : (To)x;
}

// `Name`: the type; `Pair`: two of it; `Base`: a type of the same form with the functions above.
#define OXSHMEM_SHORT_FLOAT(Name, Pair, Base)                                                      \
    struct alignas(2) Name {                                                                       \
        Base value;                                                                                \
        Name() = default;                                                                          \
        OXSHMEM_HD Name(float x) : value(oxshmem_rounded((float)x, Base())) {}                     \
        OXSHMEM_HD Name(double x) : value(oxshmem_rounded(oxshmem_odd(x), Base())) {}              \
        OXSHMEM_HD Name(short x) : value(oxshmem_rounded((float)x, Base())) {}                     \
        OXSHMEM_HD Name(unsigned short x) : value(oxshmem_rounded((float)x, Base())) {}            \
        OXSHMEM_HD Name(int x) : value(oxshmem_rounded(oxshmem_odd((double)x), Base())) {}         \
        OXSHMEM_HD Name(unsigned x) : value(oxshmem_rounded(oxshmem_odd((double)x), Base())) {}    \
        OXSHMEM_HD Name(long long x) : value(oxshmem_rounded(oxshmem_odd(oxshmem_odd64(x < 0, x < 0 ? -(unsigned long long)x : x)), Base())) {} \
        OXSHMEM_HD Name(unsigned long long x) : value(oxshmem_rounded(oxshmem_odd(oxshmem_odd64(false, x)), Base())) {} \
        OXSHMEM_HD operator float() const { return oxshmem_widened(value); }                       \
        OXSHMEM_HD Name& operator+=(Name x) { return *this = Name((float)*this + (float)x); }      \
        OXSHMEM_HD Name& operator-=(Name x) { return *this = Name((float)*this - (float)x); }      \
        OXSHMEM_HD Name& operator*=(Name x) { return *this = Name((float)*this * (float)x); }      \
        OXSHMEM_HD Name& operator/=(Name x) { return *this = Name((float)*this / (float)x); }      \
    };                                                                                             \
    OXSHMEM_HD Name operator+(Name a, Name b) { return Name((float)a + (float)b); }                \
    OXSHMEM_HD Name operator-(Name a, Name b) { return Name((float)a - (float)b); }                \
    OXSHMEM_HD Name operator*(Name a, Name b) { return Name((float)a * (float)b); }                \
    OXSHMEM_HD Name operator/(Name a, Name b) { return Name((float)a / (float)b); }                \
    OXSHMEM_HD Name operator-(Name a) { return Name(-(float)a); }                                  \
    OXSHMEM_HD bool operator==(Name a, Name b) { return (float)a == (float)b; }                    \
    OXSHMEM_HD bool operator!=(Name a, Name b) { return (float)a != (float)b; }                    \
    OXSHMEM_HD bool operator<(Name a, Name b) { return (float)a < (float)b; }                      \
    OXSHMEM_HD bool operator>(Name a, Name b) { return (float)a > (float)b; }                      \
    OXSHMEM_HD bool operator<=(Name a, Name b) { return (float)a <= (float)b; }                    \
    OXSHMEM_HD bool operator>=(Name a, Name b) { return (float)a >= (float)b; }                    \
    struct alignas(4) Pair {                                                                       \
        Name x, y;                                                                                 \
        Pair() = default;                                                                          \
        OXSHMEM_HD Pair(Name a, Name b) : x(a), y(b) {}                                            \
    };                                                                                             \
    OXSHMEM_HD Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }                   \
    OXSHMEM_HD Pair operator-(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }                   \
    OXSHMEM_HD Pair operator*(Pair a, Pair b) { return {a.x * b.x, a.y * b.y}; }                   \
    OXSHMEM_HD Pair operator/(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }                   \
    OXSHMEM_HD Name __hadd(Name a, Name b) { return a + b; }                                       \
    OXSHMEM_HD Name __hsub(Name a, Name b) { return a - b; }                                       \
    OXSHMEM_HD Name __hmul(Name a, Name b) { return a * b; }                                       \
    OXSHMEM_HD Name __hdiv(Name a, Name b) { return a / b; }                                       \
    OXSHMEM_HD Name __hneg(Name a) { return -a; }                                                  \
    OXSHMEM_HD Name __habs(Name a) { return Name(fabsf((float)a)); }                               \
    OXSHMEM_HD Name __hfma(Name a, Name b, Name c) {                                               \
        return Name(oxshmem_fused((double)(float)a * (double)(float)b, (double)(float)c));         \
    }                                                                                              \
    OXSHMEM_HD Name __hmin(Name a, Name b) { return Name(fminf((float)a, (float)b)); }             \
    OXSHMEM_HD Name __hmax(Name a, Name b) { return Name(fmaxf((float)a, (float)b)); }             \
    OXSHMEM_HD bool __heq(Name a, Name b) { return a == b; }                                       \
    OXSHMEM_HD bool __hne(Name a, Name b) { return a < b || a > b; }                               \
    OXSHMEM_HD bool __hlt(Name a, Name b) { return a < b; }                                        \
    OXSHMEM_HD bool __hle(Name a, Name b) { return a <= b; }                                       \
    OXSHMEM_HD bool __hgt(Name a, Name b) { return a > b; }                                        \
    OXSHMEM_HD bool __hge(Name a, Name b) { return a >= b; }                                       \
    OXSHMEM_HD bool __hisnan(Name a) { return (float)a != (float)a; }                              \
    OXSHMEM_HD Name hsqrt(Name a) { return Name(sqrtf((float)a)); }                                \
    OXSHMEM_HD Name hexp(Name a) { return Name(expf((float)a)); }                                  \
    OXSHMEM_HD Name hlog(Name a) { return Name(logf((float)a)); }                                  \
    OXSHMEM_HD Pair __hadd2(Pair a, Pair b) { return a + b; }                                      \
    OXSHMEM_HD Pair __hsub2(Pair a, Pair b) { return a - b; }                                      \
    OXSHMEM_HD Pair __hmul2(Pair a, Pair b) { return a * b; }                                      \
    OXSHMEM_HD Pair __hfma2(Pair a, Pair b, Pair c) {                                              \
        return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                                     \
    }

// The rest of the functions. `name`: the type's part of their names.
#define OXSHMEM_SHORT_EACH(Name, Pair, name, value)                                                \
    OXSHMEM_HD Name h##name(Name a) {                                                              \
        const float x = (float)a;                                                                  \
        return Name(value);                                                                        \
    }                                                                                              \
    OXSHMEM_HD Pair h2##name(Pair a) { return Pair(h##name(a.x), h##name(a.y)); }
// A comparison that is false for numbers that are none, and one that is true for them.
#define OXSHMEM_SHORT_COMPARISON(Name, Pair, name, comparison)                                     \
    OXSHMEM_SHORT_COMPARED(Name, Pair, name, (float)a comparison (float)b)                         \
    OXSHMEM_SHORT_COMPARED(Name, Pair, name##u, (float)a comparison (float)b || __hisnan(a) || __hisnan(b))
#define OXSHMEM_SHORT_COMPARED(Name, Pair, name, value)                                            \
    OXSHMEM_HD bool oxshmem_h##name(Name a, Name b) { return value; }                              \
    OXSHMEM_HD Pair __h##name##2(Pair a, Pair b) {                                                 \
        return Pair(Name((float)oxshmem_h##name(a.x, b.x)), Name((float)oxshmem_h##name(a.y, b.y))); \
    }                                                                                              \
    OXSHMEM_HD unsigned __h##name##2_mask(Pair a, Pair b) {                                        \
        return (oxshmem_h##name(a.x, b.x) ? 0xffff : 0) | (oxshmem_h##name(a.y, b.y) ? 0xffff0000 : 0); \
    }                                                                                              \
    OXSHMEM_HD bool __hb##name##2(Pair a, Pair b) { return oxshmem_h##name(a.x, b.x) && oxshmem_h##name(a.y, b.y); }
#define OXSHMEM_SHORT_BINARY(Name, Pair, name, name2, value)                                       \
    OXSHMEM_HD Name __h##name(Name a, Name b) { return value; }                                    \
    OXSHMEM_HD Pair __h##name2(Pair a, Pair b) { return Pair(__h##name(a.x, b.x), __h##name(a.y, b.y)); }
#define OXSHMEM_SHORT_TERNARY(Name, Pair, name, name2, value)                                      \
    OXSHMEM_HD Name __h##name(Name a, Name b, Name c) { return value; }                            \
    OXSHMEM_HD Pair __h##name2(Pair a, Pair b, Pair c) {                                           \
        return Pair(__h##name(a.x, b.x, c.x), __h##name(a.y, b.y, c.y));                           \
    }
#define OXSHMEM_SHORT_FUNCTIONS(Name, Pair)                                                        \
    OXSHMEM_HD Name oxshmem_saturated(Name a) { return Name(fminf(fmaxf((float)a, 0.0f), 1.0f)); } \
    OXSHMEM_HD Name oxshmem_not_negative(Name a) { return (float)a < 0 ? Name(0.0f) : a; }         \
    OXSHMEM_HD bool __hequ(Name a, Name b) { return !((float)a < (float)b || (float)a > (float)b); } \
    OXSHMEM_HD bool __hneu(Name a, Name b) { return !((float)a == (float)b); }                     \
    OXSHMEM_HD bool __hltu(Name a, Name b) { return !((float)a >= (float)b); }                     \
    OXSHMEM_HD bool __hleu(Name a, Name b) { return !((float)a > (float)b); }                      \
    OXSHMEM_HD bool __hgtu(Name a, Name b) { return !((float)a <= (float)b); }                     \
    OXSHMEM_HD bool __hgeu(Name a, Name b) { return !((float)a < (float)b); }                      \
    OXSHMEM_HD int __hisinf(Name a) { return (float)a == INFINITY ? 1 : (float)a == -INFINITY ? -1 : 0; } \
    OXSHMEM_HD Pair __hisnan2(Pair a) { return Pair(Name((float)__hisnan(a.x)), Name((float)__hisnan(a.y))); } \
    OXSHMEM_SHORT_COMPARISON(Name, Pair, eq, ==)                                                   \
    OXSHMEM_SHORT_COMPARED(Name, Pair, ne, (float)a < (float)b || (float)a > (float)b)             \
    OXSHMEM_SHORT_COMPARED(Name, Pair, neu, !((float)a == (float)b))                               \
    OXSHMEM_SHORT_COMPARISON(Name, Pair, lt, <)                                                    \
    OXSHMEM_SHORT_COMPARISON(Name, Pair, le, <=)                                                   \
    OXSHMEM_SHORT_COMPARISON(Name, Pair, gt, >)                                                    \
    OXSHMEM_SHORT_COMPARISON(Name, Pair, ge, >=)                                                   \
    OXSHMEM_SHORT_BINARY(Name, Pair, add_rn, add2_rn, a + b)                                       \
    OXSHMEM_SHORT_BINARY(Name, Pair, sub_rn, sub2_rn, a - b)                                       \
    OXSHMEM_SHORT_BINARY(Name, Pair, mul_rn, mul2_rn, a * b)                                       \
    OXSHMEM_SHORT_BINARY(Name, Pair, add_sat, add2_sat, oxshmem_saturated(a + b))                  \
    OXSHMEM_SHORT_BINARY(Name, Pair, sub_sat, sub2_sat, oxshmem_saturated(a - b))                  \
    OXSHMEM_SHORT_BINARY(Name, Pair, mul_sat, mul2_sat, oxshmem_saturated(a * b))                  \
    OXSHMEM_SHORT_BINARY(Name, Pair, max_nan, max2_nan, __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b)) \
    OXSHMEM_SHORT_BINARY(Name, Pair, min_nan, min2_nan, __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b)) \
    OXSHMEM_SHORT_TERNARY(Name, Pair, fma_sat, fma2_sat, oxshmem_saturated(__hfma(a, b, c)))       \
    OXSHMEM_SHORT_TERNARY(Name, Pair, fma_relu, fma2_relu, oxshmem_not_negative(__hfma(a, b, c)))  \
    OXSHMEM_HD Pair __hmax2(Pair a, Pair b) { return Pair(__hmax(a.x, b.x), __hmax(a.y, b.y)); }   \
    OXSHMEM_HD Pair __hmin2(Pair a, Pair b) { return Pair(__hmin(a.x, b.x), __hmin(a.y, b.y)); }   \
    OXSHMEM_HD Pair __h2div(Pair a, Pair b) { return a / b; }                                      \
    OXSHMEM_HD Pair __habs2(Pair a) { return Pair(__habs(a.x), __habs(a.y)); }                     \
    OXSHMEM_HD Pair __hneg2(Pair a) { return Pair(-a.x, -a.y); }                                   \
    OXSHMEM_HD Pair __hcmadd(Pair a, Pair b, Pair c) {                                             \
        return Pair(__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))); \
    }                                                                                              \
    OXSHMEM_HD Pair& operator+=(Pair& a, Pair b) { return a = a + b; }                             \
    OXSHMEM_HD Pair& operator-=(Pair& a, Pair b) { return a = a - b; }                             \
    OXSHMEM_HD Pair& operator*=(Pair& a, Pair b) { return a = a * b; }                             \
    OXSHMEM_HD Pair& operator/=(Pair& a, Pair b) { return a = a / b; }                             \
    OXSHMEM_HD Pair operator-(Pair a) { return __hneg2(a); }                                       \
    OXSHMEM_HD bool operator==(Pair a, Pair b) { return __hbeq2(a, b); }                           \
    OXSHMEM_HD bool operator!=(Pair a, Pair b) { return __hbneu2(a, b); }                          \
    OXSHMEM_HD bool operator<(Pair a, Pair b) { return __hblt2(a, b); }                            \
    OXSHMEM_HD bool operator>(Pair a, Pair b) { return __hbgt2(a, b); }                            \
    OXSHMEM_HD bool operator<=(Pair a, Pair b) { return __hble2(a, b); }                           \
    OXSHMEM_HD bool operator>=(Pair a, Pair b) { return __hbge2(a, b); }                           \
    OXSHMEM_HD Pair h2sqrt(Pair a) { return Pair(hsqrt(a.x), hsqrt(a.y)); }                        \
    OXSHMEM_HD Pair h2exp(Pair a) { return Pair(hexp(a.x), hexp(a.y)); }                           \
    OXSHMEM_HD Pair h2log(Pair a) { return Pair(hlog(a.x), hlog(a.y)); }                           \
    OXSHMEM_SHORT_EACH(Name, Pair, rcp, 1.0f / x)                                                  \
    OXSHMEM_SHORT_EACH(Name, Pair, rsqrt, 1.0 / sqrt((double)x))                                   \
    OXSHMEM_SHORT_EACH(Name, Pair, exp2, exp2f(x))                                                 \
    OXSHMEM_SHORT_EACH(Name, Pair, exp10, pow(10.0, (double)x))                                    \
    OXSHMEM_SHORT_EACH(Name, Pair, log2, log2f(x))                                                 \
    OXSHMEM_SHORT_EACH(Name, Pair, log10, log10f(x))                                               \
    OXSHMEM_SHORT_EACH(Name, Pair, sin, sinf(x))                                                   \
    OXSHMEM_SHORT_EACH(Name, Pair, cos, cosf(x))                                                   \
    OXSHMEM_SHORT_EACH(Name, Pair, tanh, tanhf(x))                                                 \
    OXSHMEM_SHORT_EACH(Name, Pair, tanh_approx, tanhf(x))                                          \
    OXSHMEM_SHORT_EACH(Name, Pair, ceil, ceilf(x))                                                 \
    OXSHMEM_SHORT_EACH(Name, Pair, floor, floorf(x))                                               \
    OXSHMEM_SHORT_EACH(Name, Pair, trunc, truncf(x))                                               \
    OXSHMEM_SHORT_EACH(Name, Pair, rint, rintf(x))

// Conversions. `part`: the type's part of their names.
#define OXSHMEM_SHORT_TO(Name, part, to, To)                                                       \
    OXSHMEM_HD To __##part##2##to##_rn(Name x) { return oxshmem_whole<To>(rintf((float)x)); }      \
    OXSHMEM_HD To __##part##2##to##_rz(Name x) { return oxshmem_whole<To>(truncf((float)x)); }     \
    OXSHMEM_HD To __##part##2##to##_ru(Name x) { return oxshmem_whole<To>(ceilf((float)x)); }      \
    OXSHMEM_HD To __##part##2##to##_rd(Name x) { return oxshmem_whole<To>(floorf((float)x)); }
#define OXSHMEM_SHORT_OF(Name, part, from, From, odd)                                              \
    OXSHMEM_HD Name __##from##2##part##_rz(From x) { return oxshmem_directed(Name(x), odd, (odd) < 0); } \
    OXSHMEM_HD Name __##from##2##part##_ru(From x) { return oxshmem_directed(Name(x), odd, true); } \
    OXSHMEM_HD Name __##from##2##part##_rd(From x) { return oxshmem_directed(Name(x), odd, false); }
#define OXSHMEM_SHORT_OF_WHOLE(Name, part, from, From, odd)                                        \
    OXSHMEM_HD Name __##from##2##part##_rn(From x) { return Name(x); }                             \
    OXSHMEM_SHORT_OF(Name, part, from, From, odd)
#define OXSHMEM_SHORT_CONVERSIONS(Name, part)                                                      \
    /* The neighbour of the nearest number where that is on the wrong side of the exact one. */    \
    OXSHMEM_HD Name oxshmem_directed(Name nearest, double exact, bool up) {                        \
        unsigned short bits = __builtin_bit_cast(unsigned short, nearest);                         \
        const double near = (double)(float)nearest;                                                \
        if (up ? !(near < exact) : !(near > exact)) return nearest;                                \
        /* Away from zero, or toward it. */                                                        \
        const bool negative = bits >> 15;                                                          \
        if ((bits & 0x7fff) == 0) bits = up ? 1 : 0x8001;                                          \
        else bits += up != negative ? 1 : -1;                                                      \
        return __builtin_bit_cast(Name, bits);                                                     \
    }                                                                                              \
    OXSHMEM_SHORT_TO(Name, part, short, short)                                                     \
    OXSHMEM_SHORT_TO(Name, part, ushort, unsigned short)                                           \
    OXSHMEM_SHORT_TO(Name, part, int, int)                                                         \
    OXSHMEM_SHORT_TO(Name, part, uint, unsigned)                                                   \
    OXSHMEM_SHORT_TO(Name, part, ll, long long)                                                    \
    OXSHMEM_SHORT_TO(Name, part, ull, unsigned long long)                                          \
    OXSHMEM_HD signed char __##part##2char_rz(Name x) { return oxshmem_whole<signed char>(truncf((float)x)); } \
    OXSHMEM_HD unsigned char __##part##2uchar_rz(Name x) { return oxshmem_whole<unsigned char>(truncf((float)x)); } \
    OXSHMEM_SHORT_OF(Name, part, float, float, (double)x)                                          \
    OXSHMEM_SHORT_OF_WHOLE(Name, part, short, short, (double)x)                                    \
    OXSHMEM_SHORT_OF_WHOLE(Name, part, ushort, unsigned short, (double)x)                          \
    OXSHMEM_SHORT_OF_WHOLE(Name, part, int, int, (double)x)                                        \
    OXSHMEM_SHORT_OF_WHOLE(Name, part, uint, unsigned, (double)x)                                  \
    OXSHMEM_SHORT_OF_WHOLE(Name, part, ll, long long, oxshmem_odd64(x < 0, x < 0 ? -(unsigned long long)x : x)) \
    OXSHMEM_SHORT_OF_WHOLE(Name, part, ull, unsigned long long, oxshmem_odd64(false, x))           \
    OXSHMEM_HD short __##part##_as_short(Name x) { return __builtin_bit_cast(short, x); }          \
    OXSHMEM_HD Name __short_as_##part(short x) { return __builtin_bit_cast(Name, x); }    

#if defined(__CUDA__)
// Atomic additions by exchanges of the word. A pair's halves are each added as a whole.
#define OXSHMEM_SHORT_ATOMIC_IN(scope, T, Word, name)                                              \
    static __device__ __forceinline__ T name(T* at, T value) {                                     \
        OXSHMEM_SCOPE(scope);                                                                      \
        Word old = __atomic_load_n((Word*)at, __ATOMIC_RELAXED);                                   \
        bool done;                                                                                 \
        do {                                                                                       \
            const T sum = __builtin_bit_cast(T, old) + value;                                      \
            OXSHMEM_SCOPE(scope);                                                                  \
            done = __atomic_compare_exchange_n((Word*)at, &old, __builtin_bit_cast(Word, sum), false, \
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED);                \
        } while (!done);                                                                           \
        return __builtin_bit_cast(T, old);                                                         \
    }
#define OXSHMEM_SHORT_ATOMIC(T, Word)                                                              \
    OXSHMEM_SHORT_ATOMIC_IN(OXSHMEM_WHOLE_DEVICE, T, Word, atomicAdd)                              \
    OXSHMEM_SHORT_ATOMIC_IN(OXSHMEM_BLOCK, T, Word, atomicAdd_block)                               \
    OXSHMEM_SHORT_ATOMIC_IN(OXSHMEM_SYSTEM, T, Word, atomicAdd_system)
#else
#define OXSHMEM_SHORT_ATOMIC(T, Word)
#endif
