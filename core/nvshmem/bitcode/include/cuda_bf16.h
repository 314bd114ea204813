// CUDA's other 16-bit floating-point type, as far as the device library needs it. It is computed with as a number of 32 bits.
#pragma once

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __device__ __nv_bfloat16(float value) {
        unsigned word;
        __builtin_memcpy(&word, &value, sizeof word);
        // Rounded to nearest, ties to even; a NaN stays one.
        bits = value != value ? (unsigned short)(word >> 16 | 0x40)
                              : (unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
    __device__ operator float() const {
        const unsigned word = (unsigned)bits << 16;
        float value;
        __builtin_memcpy(&value, &word, sizeof value);
        return value;
    }
};
