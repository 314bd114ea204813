// The operations of reductions and scans.
#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T> struct plus {
    __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
    __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
    __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
    __device__ T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
    __device__ T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
    __device__ T operator()(T a, T b) const { return a ^ b; }
};

namespace details {
// The type of what the operation makes of two values.
template <class T> __host__ __device__ T& some();
template <class T, class Operation>
using result = typename std::decay<decltype(some<Operation>()(some<T>(), some<T>()))>::type;
}

}
