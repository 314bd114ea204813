// CUDA's keywords and functions, as far as the device library needs them, for clang without CUDA's headers; and its 16-bit
// floating-point types, which are computed with as single-precision numbers.
#pragma once

#include "../../../ci/device-compilers.d/declarations.h"

#define __shared__ __attribute__((shared))
// A copy in registers; the function itself does not exist in modules that this bitcode is linked into.
#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)

#define OXSHMEM_HALF_MEMBER __attribute__((host)) __attribute__((device))

struct __half {
    unsigned short bits;
    __half() = default;
    OXSHMEM_HALF_MEMBER __half(float value) {
        // Rounded to nearest, ties to even.
        __fp16 rounded = (__fp16)value;
        __builtin_memcpy(&bits, &rounded, sizeof bits);
    }
    OXSHMEM_HALF_MEMBER operator float() const {
        __fp16 value;
        __builtin_memcpy(&value, &bits, sizeof bits);
        return (float)value;
    }
};
struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    OXSHMEM_HALF_MEMBER __nv_bfloat16(float value) {
        unsigned word;
        __builtin_memcpy(&word, &value, sizeof word);
        // Rounded to nearest, ties to even; a NaN stays one.
        bits = value != value ? (unsigned short)(word >> 16 | 0x40)
                              : (unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
    OXSHMEM_HALF_MEMBER operator float() const {
        const unsigned word = (unsigned)bits << 16;
        float value;
        __builtin_memcpy(&value, &word, sizeof value);
        return value;
    }
};
