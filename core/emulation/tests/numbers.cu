// Functions of numbers in kernels: parts of words, directions of rounding, conversions, half precision, atomic additions of short
// numbers and of vectors, spaces of addresses. The host computes each by other means.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <random>
#include <vector>
#define CHECK(x, ...)                                                                              \
    do {                                                                                           \
        if (!(x)) return printf("line %d: %s is wrong: ", __LINE__, #x), printf(__VA_ARGS__), puts(""), 1; \
    } while (0)

enum { PAIRS = 512 };

// Parts of words: the functions of two and of four parts, by number.
#define SIMD(F)                                                                                    \
    F(vadd, x + y, 0) F(vsub, x - y, 0) F(vaddss, clamp(x + y), 1) F(vaddus, clamp(x + y), 0)      \
    F(vsubss, clamp(x - y), 1) F(vsubus, clamp(x - y), 0) F(vabsdiffs, abs(x - y), 1) F(vabsdiffu, abs(x - y), 0) \
    F(vavgs, (int)round((x + y) / 2.0), 1) F(vavgu, (x + y + 1) / 2, 0) F(vhaddu, (x + y) / 2, 0)  \
    F(vmaxs, x < y ? y : x, 1) F(vmaxu, x < y ? y : x, 0) F(vmins, x < y ? x : y, 1) F(vminu, x < y ? x : y, 0) \
    F(vcmpeq, -(x == y), 0) F(vcmpne, -(x != y), 0) F(vcmpges, -(x >= y), 1) F(vcmpgeu, -(x >= y), 0) \
    F(vcmpgts, -(x > y), 1) F(vcmpgtu, -(x > y), 0) F(vcmples, -(x <= y), 1) F(vcmpleu, -(x <= y), 0) \
    F(vcmplts, -(x < y), 1) F(vcmpltu, -(x < y), 0) F(vseteq, x == y, 0) F(vsetne, x != y, 0) F(vsetges, x >= y, 1) \
    F(vsetgeu, x >= y, 0) F(vsetgts, x > y, 1) F(vsetgtu, x > y, 0) F(vsetles, x <= y, 1) F(vsetleu, x <= y, 0) \
    F(vsetlts, x < y, 1) F(vsetltu, x < y, 0)
enum {
#define NAME(name, value, is_signed) AT_##name,
    SIMD(NAME) FUNCTIONS
};
struct Words {
    unsigned two[FUNCTIONS], four[FUNCTIONS], sums[4], ones[8], extremes[12];
    int wide[6];
};
__global__ void simd(const unsigned* in, Words* out) {
    const unsigned a = in[2 * threadIdx.x], b = in[2 * threadIdx.x + 1];
    Words& words = out[threadIdx.x];
#define CALL(name, value, is_signed) words.two[AT_##name] = __##name##2(a, b), words.four[AT_##name] = __##name##4(a, b);
    SIMD(CALL)
    words.sums[0] = __vsads2(a, b), words.sums[1] = __vsads4(a, b);
    words.sums[2] = __vsadu2(a, b), words.sums[3] = __vsadu4(a, b);
    words.ones[0] = __vabs2(a), words.ones[1] = __vabs4(a), words.ones[2] = __vabsss2(a), words.ones[3] = __vabsss4(a);
    words.ones[4] = __vneg2(a), words.ones[5] = __vneg4(a), words.ones[6] = __vnegss2(a), words.ones[7] = __vnegss4(a);
    bool high, low;
    words.extremes[0] = __vimax3_s16x2(a, b, 0x12345678), words.extremes[1] = __vimin3_u16x2(a, b, 0x12345678);
    words.extremes[2] = __viaddmax_s16x2(a, b, 0x12345678), words.extremes[3] = __vimin_s16x2_relu(a, b);
    words.extremes[4] = __vibmax_u16x2(a, b, &high, &low), words.extremes[5] = high * 2 + low;
    words.wide[0] = __vimax3_s32(a, b, 77), words.wide[1] = __viaddmin_s32_relu(a, b, 1000);
    words.wide[2] = __dp2a_lo((int)a, (int)b, 5), words.wide[3] = __dp2a_hi(a, b, 5u);
    words.wide[4] = __funnelshift_lc(a, b, b % 40), words.wide[5] = __funnelshift_rc(a, b, b % 40);
}
template <class T, int Bits> unsigned parts(unsigned a, unsigned b, int (*f)(int x, int y, int low, int high)) {
    unsigned result = 0;
    for (int at = 0; at < 32; at += Bits) {
        const T x = (T)(a >> at), y = (T)(b >> at);
        const unsigned part = f(x, y, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
        result |= (part & ((1u << Bits) - 1)) << at;
    }
    return result;
}
int check_simd() {
    std::mt19937 random(1);
    std::vector<unsigned> in(2 * PAIRS);
    for (auto& word : in) word = random();
    // Corners, and equal parts.
    const unsigned corners[] = {0x80007fff, 0x7fff8000, 0x80808080, 0x7f7f7f7f, 0, 0xffffffff, 0x8000ff01, 0x80ff0001, 0x00010001, 0xffff0001};
    memcpy(in.data(), corners, sizeof corners);
    for (int i = 20; i < 60; i += 2) in[i + 1] = (in[i] & 0xffff00ff) | (in[i + 1] & 0xff00);
    unsigned* given;
    Words* made;
    std::vector<Words> got(PAIRS);
    cudaMalloc(&given, in.size() * 4);
    cudaMalloc(&made, PAIRS * sizeof(Words));
    cudaMemcpy(given, in.data(), in.size() * 4, cudaMemcpyHostToDevice);
    simd<<<1, PAIRS>>>(given, made);
    CHECK(!cudaMemcpy(got.data(), made, PAIRS * sizeof(Words), cudaMemcpyDeviceToHost), "the copy");
    for (int i = 0; i < PAIRS; ++i) {
        const unsigned a = in[2 * i], b = in[2 * i + 1];
        const Words& words = got[i];
#define clamp(z) ((z) < low ? low : (z) > high ? high : (z))
#define EXPECT(name, value, is_signed)                                                             \
    {                                                                                              \
        auto f = [](int x, int y, int low, int high) -> int { return value; };                     \
        const unsigned two = is_signed ? parts<int16_t, 16>(a, b, f) : parts<uint16_t, 16>(a, b, f); \
        const unsigned four = is_signed ? parts<int8_t, 8>(a, b, f) : parts<uint8_t, 8>(a, b, f);  \
        CHECK(words.two[AT_##name] == two, #name "2(%x, %x): %x and not %x", a, b, words.two[AT_##name], two); \
        CHECK(words.four[AT_##name] == four, #name "4(%x, %x): %x and not %x", a, b, words.four[AT_##name], four); \
    }
        SIMD(EXPECT)
        unsigned sums[4] = {};
        for (int at = 0; at < 32; at += 16) {
            sums[0] += abs((int16_t)(a >> at) - (int16_t)(b >> at)), sums[2] += abs((uint16_t)(a >> at) - (uint16_t)(b >> at));
        }
        for (int at = 0; at < 32; at += 8) {
            sums[1] += abs((int8_t)(a >> at) - (int8_t)(b >> at)), sums[3] += abs((uint8_t)(a >> at) - (uint8_t)(b >> at));
        }
        CHECK(!memcmp(sums, words.sums, sizeof sums), "%x and %x", a, b);
        auto absolute = [](int x, int, int, int) { return x < 0 ? -x : x; };
        auto absolute_in = [](int x, int, int low, int high) { return x == low ? high : x < 0 ? -x : x; };
        auto negative = [](int x, int, int, int) { return -x; };
        auto negative_in = [](int x, int, int low, int high) { return x == low ? high : -x; };
        const unsigned ones[] = {parts<int16_t, 16>(a, b, absolute), parts<int8_t, 8>(a, b, absolute),
                                 parts<int16_t, 16>(a, b, absolute_in), parts<int8_t, 8>(a, b, absolute_in),
                                 parts<int16_t, 16>(a, b, negative), parts<int8_t, 8>(a, b, negative),
                                 parts<int16_t, 16>(a, b, negative_in), parts<int8_t, 8>(a, b, negative_in)};
        CHECK(!memcmp(ones, words.ones, sizeof ones), "%x", a);
        auto largest = [](int x, int y, int, int) { return std::max(x, y); };
        auto least = [](int x, int y, int, int) { return std::min(x, y); };
        auto least_not_negative = [](int x, int y, int, int) { return std::max(std::min(x, y), 0); };
        auto sum = [](int x, int y, int, int) { return x + y; };
        auto is_first = [](int x, int y, int, int) -> int { return x >= y; };
        const unsigned first = parts<uint16_t, 16>(a, b, is_first);
        const unsigned extremes[] = {parts<int16_t, 16>(parts<int16_t, 16>(a, b, largest), 0x12345678, largest),
                                     parts<uint16_t, 16>(parts<uint16_t, 16>(a, b, least), 0x12345678, least),
                                     parts<int16_t, 16>(parts<int16_t, 16>(a, b, sum), 0x12345678, largest),
                                     parts<int16_t, 16>(a, b, least_not_negative),
                                     parts<uint16_t, 16>(a, b, largest),
                                     (first >> 16) * 2 + (first & 1)};
        CHECK(!memcmp(extremes, words.extremes, sizeof extremes), "%x and %x", a, b);
        const int shift = std::min(b % 40, 32u);
        const uint64_t both = (uint64_t)b << 32 | a;
        const int wide[] = {std::max({(int)a, (int)b, 77}), std::max(0, std::min((int)(a + b), 1000)),
                            5 + (int16_t)a * (int8_t)b + (int16_t)(a >> 16) * (int8_t)(b >> 8),
                            (int)(5 + (a & 0xffff) * (b >> 16 & 0xff) + (a >> 16) * (b >> 24)),
                            (int)(shift == 32 ? a : (both << shift) >> 32), (int)(both >> shift)};
        CHECK(!memcmp(wide, words.wide, sizeof wide), "%x and %x", a, b);
    }
    return 0;
}

// Directions of rounding.
enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, ROOT, RECIPROCAL, FUSED, OPERATIONS };
template <class T> struct Rounded {
    T of[OPERATIONS][4];
};
#define DIRECTIONS(at, name, ...)                                                                  \
    at[0] = name##_rn(__VA_ARGS__), at[1] = name##_rz(__VA_ARGS__), at[2] = name##_ru(__VA_ARGS__), at[3] = name##_rd(__VA_ARGS__)
__global__ void round_floats(const float* in, Rounded<float>* out) {
    const float a = in[3 * threadIdx.x], b = in[3 * threadIdx.x + 1], c = in[3 * threadIdx.x + 2];
    auto& of = out[threadIdx.x].of;
    DIRECTIONS(of[ADD], __fadd, a, b);
    DIRECTIONS(of[SUBTRACT], __fsub, a, b);
    DIRECTIONS(of[MULTIPLY], __fmul, a, b);
    DIRECTIONS(of[DIVIDE], __fdiv, a, b);
    DIRECTIONS(of[ROOT], __fsqrt, fabsf(a));
    DIRECTIONS(of[RECIPROCAL], __frcp, a);
    DIRECTIONS(of[FUSED], __fmaf, a, b, c);
}
__global__ void round_doubles(const double* in, Rounded<double>* out) {
    const double a = in[3 * threadIdx.x], b = in[3 * threadIdx.x + 1], c = in[3 * threadIdx.x + 2];
    auto& of = out[threadIdx.x].of;
    DIRECTIONS(of[ADD], __dadd, a, b);
    DIRECTIONS(of[SUBTRACT], __dsub, a, b);
    DIRECTIONS(of[MULTIPLY], __dmul, a, b);
    DIRECTIONS(of[DIVIDE], __ddiv, a, b);
    DIRECTIONS(of[ROOT], __dsqrt, fabs(a));
    DIRECTIONS(of[RECIPROCAL], __drcp, a);
    DIRECTIONS(of[FUSED], __fma, a, b, c);
}
// Whether a result is the neighbour of the exact one in its direction: `side` is the sign of a number minus the exact one.
template <class T, class Side> bool is_rounded(const T (&of)[4], Side side, bool negative) {
    const T up = of[2], down = of[3], infinity = INFINITY;
    if (side(up) < 0 || side(down) > 0) return false;
    if (side(up) > 0 && side(std::nextafter(up, -infinity)) >= 0) return false;
    if (side(down) < 0 && side(std::nextafter(down, infinity)) <= 0) return false;
    return of[1] == (negative ? up : down) && (of[0] == up || of[0] == down);
}
template <class T, class Wide> int check_rounding(void (*kernel)(const T*, Rounded<T>*)) {
    std::mt19937 random(2);
    std::vector<T> in(3 * PAIRS);
    for (auto& x : in) x = (T)std::ldexp(1 + std::generate_canonical<double, 53>(random), (int)(random() % 16)) * (random() % 2 ? 1 : -1);
    T* given;
    Rounded<T>* made;
    std::vector<Rounded<T>> got(PAIRS);
    cudaMalloc(&given, in.size() * sizeof(T));
    cudaMalloc(&made, PAIRS * sizeof(Rounded<T>));
    cudaMemcpy(given, in.data(), in.size() * sizeof(T), cudaMemcpyHostToDevice);
    kernel<<<1, PAIRS>>>(given, made);
    CHECK(!cudaMemcpy(got.data(), made, PAIRS * sizeof(Rounded<T>), cudaMemcpyDeviceToHost), "the copy");
    int differ = 0;
    for (int i = 0; i < PAIRS; ++i) {
        const Wide a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], size = a < 0 ? -a : a;
        auto& of = got[i].of;
        auto from = [](Wide exact) { return [=](T x) { return x > exact ? 1 : x < exact ? -1 : 0; }; };
        auto quotient = [](Wide x, Wide y) {
            return [=](T q) {
                const Wide rest = q * y - x, away = y < 0 ? -rest : rest;
                return away > 0 ? 1 : away < 0 ? -1 : 0;
            };
        };
        CHECK(is_rounded(of[ADD], from(a + b), a + b < 0), "%a %a", (double)a, (double)b);
        CHECK(is_rounded(of[SUBTRACT], from(a - b), a - b < 0), "%a %a", (double)a, (double)b);
        CHECK(is_rounded(of[MULTIPLY], from(a * b), a * b < 0), "%a %a", (double)a, (double)b);
        CHECK(is_rounded(of[DIVIDE], quotient(a, b), (a < 0) != (b < 0)), "%a %a", (double)a, (double)b);
        CHECK(is_rounded(of[RECIPROCAL], quotient(1, a), a < 0), "%a", (double)a);
        CHECK(is_rounded(of[ROOT], [=](T x) { return x < 0 ? -1 : (Wide)x * x > size ? 1 : (Wide)x * x < size ? -1 : 0; }, false), "%a", (double)a);
        CHECK(is_rounded(of[FUSED], from(a * b + c), a * b + c < 0), "%a %a %a", (double)a, (double)b, (double)c);
        for (auto& one : of) differ += one[2] != one[3];
    }
    CHECK(differ > PAIRS, "%d", differ);
    return 0;
}

// Conversions.
struct Converted {
    float int_float[4], uint_float[4], ll_float[4], ull_float[4], double_float[4];
    double ll_double[4], ull_double[4];
    __half float_half[4], int_half[4], ll_half[4], ull_half[4];
    __nv_bfloat16 float_bfloat16[4], ll_bfloat16[4], uint_bfloat16[4];
    int half_int[4];
    short half_short[4];
    unsigned long long bfloat16_ull[4];
};
__global__ void convert(const unsigned long long* in, const double* numbers, Converted* out) {
    const unsigned long long n = in[threadIdx.x];
    const double x = numbers[threadIdx.x];
    Converted& of = out[threadIdx.x];
    DIRECTIONS(of.int_float, __int2float, (int)n);
    DIRECTIONS(of.uint_float, __uint2float, (unsigned)n);
    DIRECTIONS(of.ll_float, __ll2float, (long long)n);
    DIRECTIONS(of.ull_float, __ull2float, n);
    DIRECTIONS(of.double_float, __double2float, x);
    DIRECTIONS(of.ll_double, __ll2double, (long long)n);
    DIRECTIONS(of.ull_double, __ull2double, n);
    DIRECTIONS(of.float_half, __float2half, (float)x);
    DIRECTIONS(of.int_half, __int2half, (int)n % 70000);
    DIRECTIONS(of.ll_half, __ll2half, (long long)n % 70000);
    DIRECTIONS(of.ull_half, __ull2half, n % 70000);
    DIRECTIONS(of.float_bfloat16, __float2bfloat16, (float)x);
    DIRECTIONS(of.ll_bfloat16, __ll2bfloat16, (long long)n);
    DIRECTIONS(of.uint_bfloat16, __uint2bfloat16, (unsigned)n);
    const __half half = __half(x);
    DIRECTIONS(of.half_int, __half2int, half);
    DIRECTIONS(of.half_short, __half2short, half);
    DIRECTIONS(of.bfloat16_ull, __bfloat162ull, __nv_bfloat16(fabs(x) * 1e10));
}
// The neighbours of a short number, by its bits.
template <class Short> Short next(Short x, bool up) {
    short bits;
    memcpy(&bits, &x, 2);
    if ((bits & 0x7fff) == 0) bits = up ? 1 : (short)0x8001;
    else bits += (bits > 0) == up ? 1 : -1;
    memcpy(&x, &bits, 2);
    return x;
}
template <class Short> bool is_short(const Short (&of)[4], long double exact) {
    const long double up = (float)of[2], down = (float)of[3], nearest = (float)of[0];
    if (up < exact || down > exact || (up > exact && (float)next(of[2], false) >= exact)) return false;
    if (down < exact && (float)next(of[3], true) <= exact) return false;
    if ((float)of[1] != (exact < 0 ? up : down) || (nearest != up && nearest != down)) return false;
    return std::isinf(up) || std::isinf(down) || (std::fabs(nearest - exact) <= up - exact && std::fabs(nearest - exact) <= exact - down);
}
template <class T> bool is_near(const T (&of)[4], long double exact) {
    return is_rounded(of, [=](T x) { return x > exact ? 1 : x < exact ? -1 : 0; }, exact < 0);
}
template <class T> bool is_whole(const T (&of)[4], float x) {
    auto in = [](float whole) {
        const double low = (double)std::numeric_limits<T>::min(), high = (double)std::numeric_limits<T>::max();
        return whole <= low ? std::numeric_limits<T>::min() : whole >= high ? std::numeric_limits<T>::max() : (T)whole;
    };
    return of[0] == in(std::nearbyint(x)) && of[1] == in(std::trunc(x)) && of[2] == in(std::ceil(x)) && of[3] == in(std::floor(x));
}
int check_conversions() {
    std::mt19937_64 random(3);
    std::vector<unsigned long long> in(PAIRS);
    std::vector<double> numbers(PAIRS);
    for (auto& n : in) n = random() >> random() % 64;
    for (auto& x : numbers) x = std::ldexp(1 + std::generate_canonical<double, 53>(random), (int)(random() % 44) - 26) * (random() % 2 ? 1 : -1);
    // The middle of two short numbers, from both sides, and more than the largest one.
    const double corners[] = {1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 3 * 0x1p-11 - 0x1p-40, 1 + 0x1p-8 + 0x1p-40, 65519.99999, 65520, -1e5, 0x1p-25, 0x1p-25 + 0x1p-60, 2.5, -0.5};
    memcpy(numbers.data(), corners, sizeof corners);
    const unsigned long long wholes[] = {(1ull << 60) + (1ull << 52) + 1, (1ull << 60) + (1ull << 36) + 1, ~0ull, 1ull << 63, (1ull << 24) + 1, 0, 2049, 2051, 65520};
    memcpy(in.data(), wholes, sizeof wholes);
    unsigned long long* given;
    double* points;
    Converted* made;
    std::vector<Converted> got(PAIRS);
    cudaMalloc(&given, PAIRS * 8);
    cudaMalloc(&points, PAIRS * 8);
    cudaMalloc(&made, PAIRS * sizeof(Converted));
    cudaMemcpy(given, in.data(), PAIRS * 8, cudaMemcpyHostToDevice);
    cudaMemcpy(points, numbers.data(), PAIRS * 8, cudaMemcpyHostToDevice);
    convert<<<1, PAIRS>>>(given, points, made);
    CHECK(!cudaMemcpy(got.data(), made, PAIRS * sizeof(Converted), cudaMemcpyDeviceToHost), "the copy");
    for (int i = 0; i < PAIRS; ++i) {
        const unsigned long long n = in[i];
        const double x = numbers[i];
        const Converted& of = got[i];
        CHECK(is_near(of.int_float, (int)n) && is_near(of.uint_float, (unsigned)n), "%llx", n);
        CHECK(is_near(of.ll_float, (long long)n) && is_near(of.ull_float, n), "%llx", n);
        CHECK(is_near(of.ll_double, (long long)n) && is_near(of.ull_double, n), "%llx", n);
        CHECK(is_near(of.double_float, x), "%a", x);
        CHECK(is_short(of.float_half, (float)x) && is_short(of.float_bfloat16, (float)x), "%a", x);
        CHECK(is_short(of.int_half, (int)n % 70000) && is_short(of.ll_half, (long long)n % 70000), "%llx", n);
        CHECK(is_short(of.ull_half, n % 70000), "%llx", n);
        CHECK(is_short(of.ll_bfloat16, (long long)n) && is_short(of.uint_bfloat16, (unsigned)n), "%llx", n);
        // A double's nearest short number, which is not that of the nearest float.
        const __half nearest[] = {__half(x), next(__half(x), true), next(__half(x), false)};
        for (const __half other : nearest) {
            CHECK(std::isinf((float)other) || std::isinf((float)nearest[0]) || std::fabs((float)nearest[0] - x) <= std::fabs((float)other - x), "%a", x);
        }
        CHECK(is_whole(of.half_int, (float)__half(x)) && is_whole(of.half_short, (float)__half(x)), "%a", x);
        CHECK(is_whole(of.bfloat16_ull, (float)__nv_bfloat16(fabs(x) * 1e10)), "%a", x);
    }
    return 0;
}

// Half precision, mathematical functions, spaces, each with what is expected.
__constant__ int constant;
__device__ int variable;
__device__ int wrong, faults;
__device__ void expect(bool right, int line) {
    if (!right) wrong = line, atomicAdd(&faults, 1);
}
#define EXPECTED(x) expect((x), __LINE__)
__device__ bool near(double x, double y, double most) { return fabs(x - y) <= most * fabs(y); }
template <class Short, class Pair> __device__ void halves(Short (*of)(float), float fine) {
    const Short one = of(1), two = of(2), three = of(3), none = of(NAN);
    const Pair pair(one, three), other = {two, two};
    EXPECTED((float)hrcp(two) == 0.5f && (float)hrsqrt(of(4)) == 0.5f && (float)hexp2(three) == 8 && (float)hexp10(two) == 100);
    EXPECTED((float)hlog2(of(8)) == 3 && (float)hlog10(of(100)) == 2 && near((float)hsin(one), 0.841471, fine) && near((float)hcos(one), 0.540302, fine));
    EXPECTED(near((float)htanh(one), 0.761594, fine) && (float)hceil(of(1.5)) == 2 && (float)hfloor(of(-1.5)) == -2);
    EXPECTED((float)htrunc(of(-1.5)) == -1 && (float)hrint(of(2.5)) == 2);
    const Pair root = h2sqrt(Pair(of(4), of(9)));
    EXPECTED((float)root.x == 2 && (float)root.y == 3 && (float)h2rcp(other).y == 0.5f && (float)h2exp10(other).x == 100);
    const Pair swapped = __lowhigh2highlow(pair);
    EXPECTED((float)swapped.x == 3 && (float)swapped.y == 1);
    EXPECTED((float)__heq2(pair, Pair(one, two)).x == 1 && (float)__heq2(pair, Pair(one, two)).y == 0);
    EXPECTED(__hlt2_mask(pair, other) == 0xffff && __hgt2_mask(pair, other) == 0xffff0000);
    EXPECTED(!__hblt2(pair, other) && __hblt2(pair, Pair(two, of(4))) && pair != other && pair == pair && !(pair < other));
    EXPECTED(!__hne(none, one) && __hneu(none, one) && __hequ(none, one) && !__heq(none, one) && __hltu(none, one) && !__hbne2(Pair(none, one), other));
    EXPECTED(__hbneu2(Pair(none, one), other) && (float)__hisnan2(Pair(none, one)).x == 1 && __hisinf(of(-INFINITY)) == -1);
    EXPECTED((float)__hadd_sat(one, two) == 1 && (float)__hsub_sat(one, two) == 0 && (float)__hfma_sat(of(0.5), of(0.5), of(0.25)) == 0.5f);
    EXPECTED((float)__hfma_relu(one, two, of(-3)) == 0 && (float)__hfma2_relu(pair, other, other).y == 8);
    EXPECTED((float)__hmax(none, one) == 1 && __hisnan(__hmax_nan(none, one)) && (float)__hmin2(pair, other).y == 2 && (float)__hmax2(pair, other).x == 2);
    EXPECTED((float)__habs2(-pair).y == 3 && (float)__h2div(pair, other).y == 1.5f);
    // (1 + 3i)(2 + 2i) + (1 + 3i) = -3 + 11i.
    EXPECTED((float)__hcmadd(pair, other, pair).x == -3 && (float)__hcmadd(pair, other, pair).y == 11);
    Pair sum = pair;
    sum += other, sum *= other, sum -= pair, sum /= Pair(one, one);
    EXPECTED((float)sum.x == 5 && (float)sum.y == 7);
}
__global__ void functions(double* out) {
    halves<__half, __half2>([](float x) { return __half(x); }, 1e-3f);
    halves<__nv_bfloat16, __nv_bfloat162>([](float x) { return __nv_bfloat16(x); }, 8e-3f);
    EXPECTED(__half_as_short(__half(-1)) == (short)0xbc00 && (float)__short_as_half(0x3c00) == 1 && __bfloat16_as_short(__nv_bfloat16(1)) == 0x3f80);
    EXPECTED((float)__low2half2(make_half2(3, 4)).y == 3 && (float)__highs2half2(__half2(1, 2), __half2(3, 4)).x == 2);
    // The sum's exact value is just below the middle of two numbers.
    EXPECTED((float)__hfma(__half(1 + 0x1p-10f), __half(1 + 0x1p-1f), __half(-0x1p-24f)) < (float)__hmul(__half(1 + 0x1p-10f), __half(1 + 0x1p-1f)));
    // As if the product had all of its bits, and the sum had.
    EXPECTED((float)__hfma(__nv_bfloat16(1 + 0x1p-7f), __nv_bfloat16(1.5f), __nv_bfloat16(-0x1p-70f)) == 1.5f + 0x1p-7f);
    const double results[] = {cyl_bessel_i0(1.0), cyl_bessel_i1(1.0), cyl_bessel_i0(20.0), cyl_bessel_i1(-20.0), erfinv(0.3), erfinv(-0.75), erfinv(1 - 1e-9),
                              erfcinv(1e-100), erfcinv(1.5), normcdfinv(0.975), erfcx(-1.0), erfcx(5.0), erfcx(24.9), erfcx(30.0), erfcx(1e10),
                              norm4d(1, 2, 3, 4), rnorm3d(1, 2, 2), norm4d(1e200, 1e200, 1e200, 1e200), cyl_bessel_i0f(2.0f), erfinvf(0.5f), normcdfinvf(0.1f)};
    for (int i = 0; i < sizeof results / sizeof *results; ++i) out[i] = results[i];
    int here = 0;
    __shared__ int shared;
    extern __shared__ int dynamic[];
    shared = dynamic[0] = here;
    EXPECTED(__isShared(&shared) && __isShared(dynamic) && !__isShared(&here) && !__isShared(&variable));
    EXPECTED(__isLocal(&here) && !__isLocal(&shared) && !__isLocal(out));
    EXPECTED(__isGlobal(out) && __isGlobal(&variable) && !__isGlobal(&shared) && !__isGlobal(&here) && !__isGlobal(nullptr));
    EXPECTED(__cvta_shared_to_generic(__cvta_generic_to_shared(&shared)) == &shared);
}
int check_functions() {
    // By other programs, to 16 digits.
    const double right[] = {1.2660658777520084, 0.5651591039924851, 43558282.55955353, -42454973.385127775, 0.2724627147267543, -0.8134198475976185, 4.320005388105362,
                            15.065574702592645, -0.4769362762044699, 1.9599639845400545, 5.008980080762283, 0.11070463773306864, 0.022639987776049506,
                            0.018795888861416751, 5.641895835477563e-11, 5.477225575051661, 1.0 / 3, 2e200, 2.2795853, 0.47693628, -1.2815516};
    const int count = sizeof right / sizeof *right;
    double *made, got[count];
    cudaMalloc(&made, sizeof got);
    functions<<<1, 1, 16>>>(made);
    CHECK(!cudaMemcpy(got, made, sizeof got, cudaMemcpyDeviceToHost), "the copy");
    for (int i = 0; i < count; ++i) CHECK(fabs(got[i] - right[i]) <= (i < 18 ? 3e-14 : 3e-7) * fabs(right[i]), "%d: %.17g and not %.17g", i, got[i], right[i]);
    int line = 0, all = 0;
    cudaMemcpyFromSymbol(&line, wrong, 4);
    cudaMemcpyFromSymbol(&all, faults, 4);
    CHECK(all == 0, "%d faults, one in line %d", all, line);
    return 0;
}

// Atomic additions.
struct Sums {
    __half half;
    __nv_bfloat16 bfloat16;
    __half2 halves;
    __nv_bfloat162 bfloats;
    float2 two;
    alignas(16) float4 four;
};
__global__ void add(Sums* sums) {
    atomicAdd(&sums->half, __half(0.5));
    atomicAdd_system(&sums->bfloat16, __nv_bfloat16(1.0));
    atomicAdd(&sums->halves, __half2(1, 2));
    atomicAdd(&sums->bfloats, __nv_bfloat162(1, -1));
    atomicAdd(&sums->two, make_float2(1, 2));
    atomicAdd(&sums->four, make_float4(1, 2, 3, 4));
}
int check_sums() {
    Sums *sums, got;
    cudaMalloc(&sums, sizeof got);
    cudaMemset(sums, 0, sizeof got);
    add<<<4, 64>>>(sums);
    CHECK(!cudaMemcpy(&got, sums, sizeof got, cudaMemcpyDeviceToHost), "the copy");
    CHECK((float)got.half == 128 && (float)got.bfloat16 == 256, "%g %g", (float)got.half, (float)got.bfloat16);
    CHECK((float)got.halves.x == 256 && (float)got.halves.y == 512, "halves");
    CHECK((float)got.bfloats.x == 256 && (float)got.bfloats.y == -256, "bfloats");
    CHECK(got.two.x == 256 && got.two.y == 512, "two");
    CHECK(got.four.x == 256 && got.four.y == 512 && got.four.z == 768 && got.four.w == 1024, "four");
    return 0;
}

// A parameter that stays as it was given.
struct Table {
    int of[8];
};
__global__ void read_table(const __grid_constant__ Table table, int* out) { *out = table.of[3]; }
int check_table() {
    int *out, got = 0;
    cudaMalloc(&out, 4);
    read_table<<<1, 1>>>(Table{{1, 2, 3, 44}}, out);
    CHECK(!cudaMemcpy(&got, out, 4, cudaMemcpyDeviceToHost) && got == 44, "%d", got);
    return 0;
}

int main() {
    if (check_simd() || check_rounding<float, __float128>(round_floats) || check_rounding<double, __float128>(round_doubles)) return 1;
    if (check_conversions() || check_functions() || check_sums() || check_table()) return 1;
    puts("numbers: all right");
}
