// Two numbers of 16 bits, or four of 8, in a word. And sums, least and greatest of two and three numbers, as in dynamic programming.
#pragma once

// The word whose parts a function makes of two words' parts.
template <int Bits, class Function> OXSHMEM_FUNCTION unsigned oxshmem_unsigned_parts(unsigned a, unsigned b, Function function) {
    unsigned result = 0;
    constexpr unsigned mask = (1u << Bits) - 1;
    for (int at = 0; at < 32; at += Bits) {
        result |= ((unsigned)function((int)(a >> at & mask), (int)(b >> at & mask)) & mask) << at;
    }
    return result;
}
template <int Bits, class Function> OXSHMEM_FUNCTION unsigned oxshmem_signed_parts(unsigned a, unsigned b, Function function) {
    return oxshmem_unsigned_parts<Bits>(a, b, [=](int x, int y) {
        return function((int)((unsigned)x << (32 - Bits)) >> (32 - Bits), (int)((unsigned)y << (32 - Bits)) >> (32 - Bits));
    });
}
OXSHMEM_FUNCTION int oxshmem_between(int low, int x, int high) { return x < low ? low : x > high ? high : x; }

#define OXSHMEM_PARTS(name, Bits, kind, value)                                                     \
    OXSHMEM_FUNCTION unsigned name(unsigned a, unsigned b) {                                       \
        return oxshmem_##kind##_parts<Bits>(a, b, [](int x, int y) -> int { return (value); });    \
    }
#define OXSHMEM_PART(name, Bits, value)                                                            \
    OXSHMEM_FUNCTION unsigned name(unsigned a) {                                                   \
        return oxshmem_signed_parts<Bits>(a, 0, [](int x, int) -> int { return (value); });        \
    }
// Comparisons have all bits of a part, or 1.
#define OXSHMEM_COMPARED(name, count, Bits, kind, comparison)                                      \
    OXSHMEM_PARTS(__vcmp##name##count, Bits, kind, (x comparison y) ? -1 : 0)                      \
    OXSHMEM_PARTS(__vset##name##count, Bits, kind, x comparison y)
#define OXSHMEM_SUMMED(name, count, Bits, kind)                                                    \
    OXSHMEM_FUNCTION unsigned name##count(unsigned a, unsigned b) {                                \
        unsigned sum = 0;                                                                          \
        oxshmem_##kind##_parts<Bits>(a, b, [&](int x, int y) -> int { return sum += x > y ? x - y : y - x; }); \
        return sum;                                                                                \
    }
#define OXSHMEM_SIMD(count, Bits)                                                                  \
    OXSHMEM_PART(__vabs##count, Bits, x < 0 ? -x : x)                                              \
    OXSHMEM_PART(__vabsss##count, Bits, oxshmem_between(0, x < 0 ? -x : x, (1 << (Bits - 1)) - 1)) \
    OXSHMEM_PART(__vneg##count, Bits, -x)                                                          \
    OXSHMEM_PART(__vnegss##count, Bits, oxshmem_between(-(1 << (Bits - 1)), -x, (1 << (Bits - 1)) - 1)) \
    OXSHMEM_PARTS(__vadd##count, Bits, unsigned, x + y)                                            \
    OXSHMEM_PARTS(__vaddss##count, Bits, signed, oxshmem_between(-(1 << (Bits - 1)), x + y, (1 << (Bits - 1)) - 1)) \
    OXSHMEM_PARTS(__vaddus##count, Bits, unsigned, oxshmem_between(0, x + y, (1 << Bits) - 1))     \
    OXSHMEM_PARTS(__vsub##count, Bits, unsigned, x - y)                                            \
    OXSHMEM_PARTS(__vsubss##count, Bits, signed, oxshmem_between(-(1 << (Bits - 1)), x - y, (1 << (Bits - 1)) - 1)) \
    OXSHMEM_PARTS(__vsubus##count, Bits, unsigned, oxshmem_between(0, x - y, (1 << Bits) - 1))     \
    OXSHMEM_PARTS(__vabsdiffs##count, Bits, signed, x > y ? x - y : y - x)                         \
    OXSHMEM_PARTS(__vabsdiffu##count, Bits, unsigned, x > y ? x - y : y - x)                       \
    /* Away from zero in the middle. */                                                            \
    OXSHMEM_PARTS(__vavgs##count, Bits, signed, (x + y + (x + y >= 0)) >> 1)                       \
    OXSHMEM_PARTS(__vavgu##count, Bits, unsigned, (x + y + 1) >> 1)                                \
    OXSHMEM_PARTS(__vhaddu##count, Bits, unsigned, (x + y) >> 1)                                   \
    OXSHMEM_PARTS(__vmaxs##count, Bits, signed, x > y ? x : y)                                     \
    OXSHMEM_PARTS(__vmaxu##count, Bits, unsigned, x > y ? x : y)                                   \
    OXSHMEM_PARTS(__vmins##count, Bits, signed, x < y ? x : y)                                     \
    OXSHMEM_PARTS(__vminu##count, Bits, unsigned, x < y ? x : y)                                   \
    OXSHMEM_COMPARED(eq, count, Bits, unsigned, ==)                                                \
    OXSHMEM_COMPARED(ne, count, Bits, unsigned, !=)                                                \
    OXSHMEM_COMPARED(ges, count, Bits, signed, >=)                                                 \
    OXSHMEM_COMPARED(geu, count, Bits, unsigned, >=)                                               \
    OXSHMEM_COMPARED(gts, count, Bits, signed, >)                                                  \
    OXSHMEM_COMPARED(gtu, count, Bits, unsigned, >)                                                \
    OXSHMEM_COMPARED(les, count, Bits, signed, <=)                                                 \
    OXSHMEM_COMPARED(leu, count, Bits, unsigned, <=)                                               \
    OXSHMEM_COMPARED(lts, count, Bits, signed, <)                                                  \
    OXSHMEM_COMPARED(ltu, count, Bits, unsigned, <)                                                \
    OXSHMEM_SUMMED(__vsads, count, Bits, signed)                                                   \
    OXSHMEM_SUMMED(__vsadu, count, Bits, unsigned)
OXSHMEM_SIMD(2, 16)
OXSHMEM_SIMD(4, 8)
#undef OXSHMEM_SIMD
#undef OXSHMEM_SUMMED
#undef OXSHMEM_COMPARED

// `T`: a number's type, by which it is compared; a sum keeps its lowest bits.
#define OXSHMEM_EXTREMES(T, suffix, extreme, comparison)                                           \
    OXSHMEM_FUNCTION T __vi##extreme##3_##suffix(T a, T b, T c) {                                  \
        const T ab = a comparison b ? a : b;                                                       \
        return ab comparison c ? ab : c;                                                           \
    }                                                                                              \
    OXSHMEM_FUNCTION T __viadd##extreme##_##suffix(T a, T b, T c) {                                \
        const T sum = (T)((unsigned)a + (unsigned)b);                                              \
        return sum comparison c ? sum : c;                                                         \
    }                                                                                              \
    OXSHMEM_FUNCTION T __vib##extreme##_##suffix(T a, T b, bool* is_first) {                       \
        *is_first = a comparison##= b;                                                             \
        return *is_first ? a : b;                                                                  \
    }
OXSHMEM_EXTREMES(int, s32, max, >)
OXSHMEM_EXTREMES(int, s32, min, <)
OXSHMEM_EXTREMES(unsigned, u32, max, >)
OXSHMEM_EXTREMES(unsigned, u32, min, <)
#undef OXSHMEM_EXTREMES
#define OXSHMEM_PAIRED(kind, suffix, extreme, comparison)                                          \
    OXSHMEM_FUNCTION unsigned oxshmem_##extreme##_##suffix(unsigned a, unsigned b) {               \
        return oxshmem_##kind##_parts<16>(a, b, [](int x, int y) -> int { return x comparison y ? x : y; }); \
    }                                                                                              \
    OXSHMEM_FUNCTION unsigned __vi##extreme##3_##suffix(unsigned a, unsigned b, unsigned c) {      \
        return oxshmem_##extreme##_##suffix(oxshmem_##extreme##_##suffix(a, b), c);                \
    }                                                                                              \
    OXSHMEM_FUNCTION unsigned __viadd##extreme##_##suffix(unsigned a, unsigned b, unsigned c) {    \
        return oxshmem_##extreme##_##suffix(__vadd2(a, b), c);                                     \
    }                                                                                              \
    OXSHMEM_FUNCTION unsigned __vib##extreme##_##suffix(unsigned a, unsigned b, bool* high, bool* low) { \
        const unsigned first = oxshmem_##kind##_parts<16>(a, b, [](int x, int y) -> int { return x comparison##= y; }); \
        *high = first >> 16, *low = first & 1;                                                     \
        return oxshmem_##extreme##_##suffix(a, b);                                                 \
    }
OXSHMEM_PAIRED(signed, s16x2, max, >)
OXSHMEM_PAIRED(signed, s16x2, min, <)
OXSHMEM_PAIRED(unsigned, u16x2, max, >)
OXSHMEM_PAIRED(unsigned, u16x2, min, <)
#undef OXSHMEM_PAIRED
// And those that are 0 where they would be negative.
#define OXSHMEM_NOT_NEGATIVE(extreme)                                                              \
    OXSHMEM_FUNCTION int __vi##extreme##_s32_relu(int a, int b) { return __vimax3_s32(0, __vi##extreme##3_s32(a, b, b), 0); } \
    OXSHMEM_FUNCTION int __vi##extreme##3_s32_relu(int a, int b, int c) {                          \
        return __vimax3_s32(0, __vi##extreme##3_s32(a, b, c), 0);                                  \
    }                                                                                              \
    OXSHMEM_FUNCTION int __viadd##extreme##_s32_relu(int a, int b, int c) {                        \
        return __vimax3_s32(0, __viadd##extreme##_s32(a, b, c), 0);                                \
    }                                                                                              \
    OXSHMEM_FUNCTION unsigned __vi##extreme##_s16x2_relu(unsigned a, unsigned b) {                 \
        return oxshmem_max_s16x2(oxshmem_##extreme##_s16x2(a, b), 0);                              \
    }                                                                                              \
    OXSHMEM_FUNCTION unsigned __vi##extreme##3_s16x2_relu(unsigned a, unsigned b, unsigned c) {    \
        return oxshmem_max_s16x2(__vi##extreme##3_s16x2(a, b, c), 0);                              \
    }                                                                                              \
    OXSHMEM_FUNCTION unsigned __viadd##extreme##_s16x2_relu(unsigned a, unsigned b, unsigned c) {  \
        return oxshmem_max_s16x2(__viadd##extreme##_s16x2(a, b, c), 0);                            \
    }
OXSHMEM_NOT_NEGATIVE(max)
OXSHMEM_NOT_NEGATIVE(min)
#undef OXSHMEM_NOT_NEGATIVE
#undef OXSHMEM_PARTS
#undef OXSHMEM_PART
