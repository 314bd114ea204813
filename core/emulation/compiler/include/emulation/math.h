// Mathematical functions that the C library lacks, and the fast and rounded forms. The fast forms are
// exact here: a program must not rely on more than a GPU gives.
#pragma once

OXSHMEM_FUNCTION float rsqrtf(float x) { return 1.0f / sqrtf(x); }
OXSHMEM_FUNCTION double rsqrt(double x) { return 1.0 / sqrt(x); }
OXSHMEM_FUNCTION float rsqrt(float x) { return rsqrtf(x); }
OXSHMEM_FUNCTION float rcbrtf(float x) { return 1.0f / cbrtf(x); }
OXSHMEM_FUNCTION double rcbrt(double x) { return 1.0 / cbrt(x); }
OXSHMEM_FUNCTION float sinpif(float x) { return (float)sin(M_PI * fmod((double)x, 2.0)); }
OXSHMEM_FUNCTION float cospif(float x) { return (float)cos(M_PI * fmod((double)x, 2.0)); }
OXSHMEM_FUNCTION double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
OXSHMEM_FUNCTION double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
OXSHMEM_FUNCTION void sincospif(float x, float* s, float* c) {
    *s = sinpif(x);
    *c = cospif(x);
}
OXSHMEM_FUNCTION void sincospi(double x, double* s, double* c) {
    *s = sinpi(x);
    *c = cospi(x);
}
OXSHMEM_FUNCTION float normcdff(float x) { return 0.5f * erfcf(-x * (float)M_SQRT1_2); }
OXSHMEM_FUNCTION double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
OXSHMEM_FUNCTION float erfcxf(float x) { return (float)(exp((double)x * x) * erfc((double)x)); }
OXSHMEM_FUNCTION float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
OXSHMEM_FUNCTION double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
OXSHMEM_FUNCTION float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
OXSHMEM_FUNCTION double rhypot(double a, double b) { return 1.0 / hypot(a, b); }

// The C library's header declares __expf and its kin; support.c has their bodies.
OXSHMEM_FUNCTION float __fdividef(float x, float y) { return x / y; }
OXSHMEM_FUNCTION float fdividef(float x, float y) { return x / y; }
OXSHMEM_FUNCTION float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// Operations that are not joined with others, rounded to nearest. CPUs change the direction of rounding
// by a mode and not by instruction: the forms for other directions are left out.
#define OXSHMEM_ROUNDED(T, add, sub, mul, div, root, reciprocal, fused, fma_function, sqrt_function)      \
    OXSHMEM_FUNCTION T add(T x, T y) {                                                             \
        _Pragma("clang fp contract(off)") return x + y;                                            \
    }                                                                                              \
    OXSHMEM_FUNCTION T sub(T x, T y) {                                                             \
        _Pragma("clang fp contract(off)") return x - y;                                            \
    }                                                                                              \
    OXSHMEM_FUNCTION T mul(T x, T y) {                                                             \
        _Pragma("clang fp contract(off)") return x * y;                                            \
    }                                                                                              \
    OXSHMEM_FUNCTION T div(T x, T y) { return x / y; }                                             \
    OXSHMEM_FUNCTION T root(T x) { return sqrt_function(x); }                                      \
    OXSHMEM_FUNCTION T reciprocal(T x) { return (T)1 / x; }                                        \
    OXSHMEM_FUNCTION T fused(T x, T y, T z) { return fma_function(x, y, z); }
OXSHMEM_ROUNDED(float, __fadd_rn, __fsub_rn, __fmul_rn, __fdiv_rn, __fsqrt_rn, __frcp_rn, __fmaf_rn,
                fmaf, sqrtf)
OXSHMEM_ROUNDED(double, __dadd_rn, __dsub_rn, __dmul_rn, __ddiv_rn, __dsqrt_rn, __drcp_rn, __fma_rn,
                fma, sqrt)
#undef OXSHMEM_ROUNDED
OXSHMEM_FUNCTION float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }

// Conversions, which keep to the range of the result as a GPU does.
template <class To, class From> OXSHMEM_FUNCTION To oxshmem_clamped(From x) {
    if (x != x) return sizeof(To) == 8 ? (To)(1ull << 63) : (To)0;
    constexpr double low = (double)std::numeric_limits<To>::min();
    constexpr double high = (double)std::numeric_limits<To>::max();
    if ((double)x <= low) return std::numeric_limits<To>::min();
    if ((double)x >= high) return std::numeric_limits<To>::max();
    return (To)x;
}
#define OXSHMEM_CONVERSIONS(name, To, From, suffix)                                                \
    OXSHMEM_FUNCTION To name##_rn(From x) { return oxshmem_clamped<To>(rint##suffix(x)); }         \
    OXSHMEM_FUNCTION To name##_rz(From x) { return oxshmem_clamped<To>(trunc##suffix(x)); }        \
    OXSHMEM_FUNCTION To name##_ru(From x) { return oxshmem_clamped<To>(ceil##suffix(x)); }         \
    OXSHMEM_FUNCTION To name##_rd(From x) { return oxshmem_clamped<To>(floor##suffix(x)); }
OXSHMEM_CONVERSIONS(__float2int, int, float, f)
OXSHMEM_CONVERSIONS(__float2uint, unsigned, float, f)
OXSHMEM_CONVERSIONS(__float2ll, long long, float, f)
OXSHMEM_CONVERSIONS(__float2ull, unsigned long long, float, f)
OXSHMEM_CONVERSIONS(__double2int, int, double, )
OXSHMEM_CONVERSIONS(__double2uint, unsigned, double, )
OXSHMEM_CONVERSIONS(__double2ll, long long, double, )
OXSHMEM_CONVERSIONS(__double2ull, unsigned long long, double, )
#undef OXSHMEM_CONVERSIONS
OXSHMEM_FUNCTION float __int2float_rn(int x) { return (float)x; }
OXSHMEM_FUNCTION float __uint2float_rn(unsigned x) { return (float)x; }
OXSHMEM_FUNCTION float __ll2float_rn(long long x) { return (float)x; }
OXSHMEM_FUNCTION float __ull2float_rn(unsigned long long x) { return (float)x; }
OXSHMEM_FUNCTION double __int2double_rn(int x) { return x; }
OXSHMEM_FUNCTION double __uint2double_rn(unsigned x) { return x; }
OXSHMEM_FUNCTION double __ll2double_rn(long long x) { return (double)x; }
OXSHMEM_FUNCTION double __ull2double_rn(unsigned long long x) { return (double)x; }
OXSHMEM_FUNCTION float __double2float_rn(double x) { return (float)x; }
