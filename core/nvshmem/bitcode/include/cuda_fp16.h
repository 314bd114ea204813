// CUDA's 16-bit floating-point type, as far as the device library needs it: it is computed with as a number of 32 bits.
#pragma once

struct __half {
    unsigned short bits;
};
typedef __half half;

static __device__ __forceinline__ float __half2float(__half number) {
    __fp16 value;
    __builtin_memcpy(&value, &number.bits, sizeof value);
    return (float)value;
}
// Rounded to nearest, ties to even.
static __device__ __forceinline__ __half __float2half(float value) {
    const __fp16 rounded = (__fp16)value;
    __half number;
    __builtin_memcpy(&number.bits, &rounded, sizeof rounded);
    return number;
}
