// Floating-point numbers of 16 bits over the compiler's own types: what cuda_fp16.h and cuda_bf16.h share.
#pragma once

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

// `Name`: the type; `Pair`: two of it; `Base`: a type of the same form with the functions above.
#define OXSHMEM_SHORT_FLOAT(Name, Pair, Base)                                                      \
    struct alignas(2) Name {                                                                       \
        Base value;                                                                                \
        Name() = default;                                                                          \
        OXSHMEM_HD Name(float x) : value(oxshmem_rounded((float)x, Base())) {}                     \
        OXSHMEM_HD Name(double x) : value(oxshmem_rounded((float)x, Base())) {}                    \
        OXSHMEM_HD Name(int x) : value(oxshmem_rounded((float)x, Base())) {}                       \
        OXSHMEM_HD Name(unsigned x) : value(oxshmem_rounded((float)x, Base())) {}                  \
        OXSHMEM_HD Name(long long x) : value(oxshmem_rounded((float)x, Base())) {}                 \
        OXSHMEM_HD Name(unsigned long long x) : value(oxshmem_rounded((float)x, Base())) {}        \
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
        return Name(fmaf((float)a, (float)b, (float)c));                                           \
    }                                                                                              \
    OXSHMEM_HD Name __hmin(Name a, Name b) { return Name(fminf((float)a, (float)b)); }             \
    OXSHMEM_HD Name __hmax(Name a, Name b) { return Name(fmaxf((float)a, (float)b)); }             \
    OXSHMEM_HD bool __heq(Name a, Name b) { return a == b; }                                       \
    OXSHMEM_HD bool __hne(Name a, Name b) { return a != b; }                                       \
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
