// The functions that host.cpp calls.
#include <cuda_fp16.h>

float widen(half number) { return __half2float(number); }
half round_of(float number) { return __float2half(number); }
