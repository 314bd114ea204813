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
OXSHMEM_FUNCTION float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
OXSHMEM_FUNCTION double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
OXSHMEM_FUNCTION float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
OXSHMEM_FUNCTION double rhypot(double a, double b) { return 1.0 / hypot(a, b); }

OXSHMEM_FUNCTION double erfcx(double x) {
    // The square in two parts, of which the first is exact.
    const double high = (float)x;
    if (x < 25) return exp(high * high) * exp((x - high) * (x + high)) * erfc(x);
    // The first terms of a series in 1/x^2; the next one is less than what a double shows.
    const double square = 1 / (x * x);
    return M_2_SQRTPI / 2 / x * (1 - square / 2 * (1 - 1.5 * square * (1 - 2.5 * square * (1 - 3.5 * square * (1 - 4.5 * square * (1 - 5.5 * square))))));
}
OXSHMEM_FUNCTION double oxshmem_norm(int count, const double* of) {
    double largest = 0, sum = 0;
    for (int i = 0; i < count; ++i) {
        if (isinf(of[i])) return INFINITY;
        largest = fmax(largest, fabs(of[i]));
    }
    if (largest == 0) largest = 1;
    for (int i = 0; i < count; ++i) sum += of[i] / largest * (of[i] / largest);
    return largest * sqrt(sum);
}
OXSHMEM_FUNCTION double norm4d(double a, double b, double c, double d) {
    const double all[] = {a, b, c, d};
    return oxshmem_norm(4, all);
}
OXSHMEM_FUNCTION float norm4df(float a, float b, float c, float d) { return (float)norm4d(a, b, c, d); }
OXSHMEM_FUNCTION double norm(int count, const double* of) { return oxshmem_norm(count, of); }
OXSHMEM_FUNCTION float normf(int count, const float* of) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += (double)of[i] * of[i];
    return (float)sqrt(sum);
}
OXSHMEM_FUNCTION double rnorm(int count, const double* of) { return 1 / norm(count, of); }
OXSHMEM_FUNCTION float rnormf(int count, const float* of) { return 1 / normf(count, of); }
OXSHMEM_FUNCTION double rnorm3d(double a, double b, double c) { return 1 / norm4d(a, b, c, 0); }
OXSHMEM_FUNCTION float rnorm3df(float a, float b, float c) { return (float)(1 / norm4d(a, b, c, 0)); }
OXSHMEM_FUNCTION double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
OXSHMEM_FUNCTION float rnorm4df(float a, float b, float c, float d) { return (float)(1 / norm4d(a, b, c, d)); }
// Bessel's functions of an imaginary argument, by their series, whose terms have one sign.
OXSHMEM_FUNCTION double oxshmem_bessel_i(int order, double x) {
    if (isinf(x) || x != x) return order == 1 ? x : fabs(x);
    double term = order == 1 ? x / 2 : 1, sum = term;
    for (int n = 1; fabs(term) > 1e-17 * fabs(sum); ++n) {
        term *= x / 2 / n * (x / 2 / (n + order));
        sum += term;
        if (isinf(sum)) break;
    }
    return sum;
}
OXSHMEM_FUNCTION double cyl_bessel_i0(double x) { return oxshmem_bessel_i(0, x); }
OXSHMEM_FUNCTION double cyl_bessel_i1(double x) { return oxshmem_bessel_i(1, x); }
OXSHMEM_FUNCTION float cyl_bessel_i0f(float x) { return (float)oxshmem_bessel_i(0, x); }
OXSHMEM_FUNCTION float cyl_bessel_i1f(float x) { return (float)oxshmem_bessel_i(1, x); }
// The x whose erfc is `y`, by Halley's steps from a first guess.
OXSHMEM_FUNCTION double erfcinv(double y) {
    if (!(y > 0 && y < 2)) return y == 0 ? INFINITY : y == 2 ? -INFINITY : NAN;
    if (y > 1) return -erfcinv(2 - y);
    if (y == 1) return 0;
    const double t = sqrt(-2 * log(y / 2));
    double x = M_SQRT1_2 * (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)));
    for (int i = 0; i < 4; ++i) {
        const double far = erfc(x) - y, step = far / (M_2_SQRTPI * exp(-x * x));
        if (far == 0 || step != step) break;
        x += step / (1 + x * step);
    }
    return x;
}
OXSHMEM_FUNCTION double erfinv(double y) {
    if (fabs(y) >= 0.5) return y < 0 ? -erfcinv(1 + y) : erfcinv(1 - y);
    if (y == 0 || y != y) return y;
    double x = y / M_2_SQRTPI;
    for (int i = 0; i < 5; ++i) {
        const double step = (erf(x) - y) / (M_2_SQRTPI * exp(-x * x));
        x -= step / (1 + x * step);
    }
    return x;
}
OXSHMEM_FUNCTION float erfinvf(float y) { return (float)erfinv((double)y); }
OXSHMEM_FUNCTION float erfcinvf(float y) { return (float)erfcinv((double)y); }
OXSHMEM_FUNCTION double normcdfinv(double y) { return -M_SQRT2 * erfcinv(2 * y); }
OXSHMEM_FUNCTION float normcdfinvf(float y) { return (float)normcdfinv((double)y); }
OXSHMEM_FUNCTION float erfcxf(float x) { return (float)erfcx((double)x); }

// The C library's header declares __expf and its kin; support.c has their bodies.
OXSHMEM_FUNCTION float __fdividef(float x, float y) { return x / y; }
OXSHMEM_FUNCTION float fdivide(float x, float y) { return x / y; }
OXSHMEM_FUNCTION float fdividef(float x, float y) { return x / y; }
OXSHMEM_FUNCTION float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// Operations that are not joined with others, rounded to nearest. support.c has those for other directions.
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
// `Result`, the name without a direction, and the types in brackets.
#define OXSHMEM_DIRECTED(Result, name, types)                                                      \
    extern "C" __device__ Result name##_rz types;                                                  \
    extern "C" __device__ Result name##_ru types;                                                  \
    extern "C" __device__ Result name##_rd types;
OXSHMEM_DIRECTED(float, __fadd, (float, float))
OXSHMEM_DIRECTED(float, __fsub, (float, float))
OXSHMEM_DIRECTED(float, __fmul, (float, float))
OXSHMEM_DIRECTED(float, __fdiv, (float, float))
OXSHMEM_DIRECTED(float, __fsqrt, (float))
OXSHMEM_DIRECTED(float, __frcp, (float))
OXSHMEM_DIRECTED(float, __fmaf, (float, float, float))
OXSHMEM_DIRECTED(double, __dadd, (double, double))
OXSHMEM_DIRECTED(double, __dsub, (double, double))
OXSHMEM_DIRECTED(double, __dmul, (double, double))
OXSHMEM_DIRECTED(double, __ddiv, (double, double))
OXSHMEM_DIRECTED(double, __dsqrt, (double))
OXSHMEM_DIRECTED(double, __drcp, (double))
OXSHMEM_DIRECTED(double, __fma, (double, double, double))
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
OXSHMEM_DIRECTED(float, __int2float, (int))
OXSHMEM_DIRECTED(float, __uint2float, (unsigned))
OXSHMEM_DIRECTED(float, __ll2float, (long long))
OXSHMEM_DIRECTED(float, __ull2float, (unsigned long long))
OXSHMEM_DIRECTED(double, __ll2double, (long long))
OXSHMEM_DIRECTED(double, __ull2double, (unsigned long long))
OXSHMEM_DIRECTED(float, __double2float, (double))
#undef OXSHMEM_DIRECTED
