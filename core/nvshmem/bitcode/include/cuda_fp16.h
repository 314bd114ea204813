// CUDA's 16-bit floating-point type, as far as the device library needs it. It is computed with as a number of 32 bits.
#pragma once

struct __half {
    unsigned short bits;
    __half() = default;
    __device__ __half(float value) {
        // Rounded to nearest, ties to even.
        __fp16 rounded = (__fp16)value;
        __builtin_memcpy(&bits, &rounded, sizeof bits);
    }
    __device__ operator float() const {
        __fp16 value;
        __builtin_memcpy(&value, &bits, sizeof bits);
        return (float)value;
    }
};
typedef __half half;
