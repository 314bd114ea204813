// CUDA's other 16-bit floating-point type, as far as the device library needs it: it is computed with as a number of 32 bits.
#pragma once

struct __nv_bfloat16 {
    unsigned short bits;
};

static __device__ __forceinline__ float __bfloat162float(__nv_bfloat16 number) {
    const unsigned word = (unsigned)number.bits << 16;
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}
// Rounded to nearest, ties to even. A NaN stays one.
static __device__ __forceinline__ __nv_bfloat16 __float2bfloat16(float value) {
    unsigned word;
    __builtin_memcpy(&word, &value, sizeof word);
    const unsigned rounded = value != value ? word >> 16 | 0x40 : (word + 0x7fff + (word >> 16 & 1)) >> 16;
    return __nv_bfloat16{(unsigned short)rounded};
}
