// Numbers with the exponent of a float and a short mantissa.
#pragma once
#include "cuda_runtime.h"
#if defined(OXSHMEM_EMULATION) && defined(__cplusplus)
#include "emulation/half.h"
OXSHMEM_SHORT_FLOAT(__nv_bfloat16, __nv_bfloat162, oxshmem_bfloat16)
OXSHMEM_SHORT_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
OXSHMEM_SHORT_CONVERSIONS(__nv_bfloat16, bfloat16)
OXSHMEM_SHORT_ATOMIC(__nv_bfloat16, unsigned short)
OXSHMEM_SHORT_ATOMIC(__nv_bfloat162, unsigned)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
OXSHMEM_HD __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
OXSHMEM_HD __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
OXSHMEM_HD __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
OXSHMEM_HD float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
OXSHMEM_HD unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return __builtin_bit_cast(unsigned short, x); }
OXSHMEM_HD __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __builtin_bit_cast(__nv_bfloat16, x); }
OXSHMEM_HD __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
OXSHMEM_HD __nv_bfloat162 __float2bfloat162_rn(float x) { return {__nv_bfloat16(x), __nv_bfloat16(x)}; }
OXSHMEM_HD float2 __bfloat1622float2(__nv_bfloat162 x) { return make_float2((float)x.x, (float)x.y); }
OXSHMEM_HD __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
OXSHMEM_HD __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
OXSHMEM_HD __nv_bfloat16 __low2bfloat16(__nv_bfloat162 x) { return x.x; }
OXSHMEM_HD __nv_bfloat16 __high2bfloat16(__nv_bfloat162 x) { return x.y; }
OXSHMEM_HD float __low2float(__nv_bfloat162 x) { return (float)x.x; }
OXSHMEM_HD float __high2float(__nv_bfloat162 x) { return (float)x.y; }
OXSHMEM_HD __nv_bfloat162 __float22bfloat162_rn(float2 x) { return {__nv_bfloat16(x.x), __nv_bfloat16(x.y)}; }
OXSHMEM_HD __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
OXSHMEM_HD __nv_bfloat162 __low2bfloat162(__nv_bfloat162 x) { return {x.x, x.x}; }
OXSHMEM_HD __nv_bfloat162 __high2bfloat162(__nv_bfloat162 x) { return {x.y, x.y}; }
OXSHMEM_HD __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 x, __nv_bfloat162 y) { return {x.x, y.x}; }
OXSHMEM_HD __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 x, __nv_bfloat162 y) { return {x.y, y.y}; }
OXSHMEM_HD __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 x) { return {x.y, x.x}; }
#else
#include_next <cuda_bf16.h>
#endif
