// Half precision.
#pragma once
#include "cuda_runtime.h"
#if defined(OXSHMEM_EMULATION) && defined(__cplusplus)
#include "emulation/half.h"
OXSHMEM_SHORT_FLOAT(__half, __half2, _Float16)
OXSHMEM_SHORT_FUNCTIONS(__half, __half2)
OXSHMEM_SHORT_CONVERSIONS(__half, half)
OXSHMEM_SHORT_ATOMIC(__half, unsigned short)
OXSHMEM_SHORT_ATOMIC(__half2, unsigned)
typedef __half half;
typedef __half2 half2;
OXSHMEM_HD __half __float2half(float x) { return __half(x); }
OXSHMEM_HD __half __float2half_rn(float x) { return __half(x); }
OXSHMEM_HD __half __double2half(double x) { return __half(x); }
OXSHMEM_HD float __half2float(__half x) { return (float)x; }
OXSHMEM_HD unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x); }
OXSHMEM_HD __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(__half, x); }
OXSHMEM_HD __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
OXSHMEM_HD __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
OXSHMEM_HD __half2 __float22half2_rn(float2 x) { return {__half(x.x), __half(x.y)}; }
OXSHMEM_HD float2 __half22float2(__half2 x) { return make_float2((float)x.x, (float)x.y); }
OXSHMEM_HD __half2 __half2half2(__half x) { return {x, x}; }
OXSHMEM_HD __half2 __halves2half2(__half x, __half y) { return {x, y}; }
OXSHMEM_HD __half __low2half(__half2 x) { return x.x; }
OXSHMEM_HD __half __high2half(__half2 x) { return x.y; }
OXSHMEM_HD float __low2float(__half2 x) { return (float)x.x; }
OXSHMEM_HD float __high2float(__half2 x) { return (float)x.y; }
OXSHMEM_HD __half2 make_half2(__half x, __half y) { return {x, y}; }
OXSHMEM_HD __half2 __low2half2(__half2 x) { return {x.x, x.x}; }
OXSHMEM_HD __half2 __high2half2(__half2 x) { return {x.y, x.y}; }
OXSHMEM_HD __half2 __lows2half2(__half2 x, __half2 y) { return {x.x, y.x}; }
OXSHMEM_HD __half2 __highs2half2(__half2 x, __half2 y) { return {x.y, y.y}; }
OXSHMEM_HD __half2 __lowhigh2highlow(__half2 x) { return {x.y, x.x}; }
#else
#include_next <cuda_fp16.h>
#endif
