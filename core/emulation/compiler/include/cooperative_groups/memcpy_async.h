// Copies by a group. They are done when the call returns, each part by the thread that calls; others see it behind `wait`.
#pragma once
#include "../cooperative_groups.h"

namespace cuda {
// A number of bytes, with the alignment that they and both addresses have.
template <size_t Alignment> struct aligned_size_t {
    static constexpr size_t align = Alignment;
    size_t value;
    __host__ __device__ explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {}
    __host__ __device__ constexpr operator size_t() const { return value; }
};
}

namespace cooperative_groups {

namespace details {
template <class Group> __device__ inline void copy(const Group& group, void* to, const void* from, size_t bytes) {
    // Words where all of it is made of words; bytes otherwise.
    const size_t rank = group.thread_rank(), step = group.size();
    if ((((size_t)to | (size_t)from | bytes) & 3) == 0) {
        typedef unsigned __attribute__((may_alias)) word;
        for (size_t at = rank; at < bytes / 4; at += step) ((word*)to)[at] = ((const word*)from)[at];
    } else {
        for (size_t at = rank; at < bytes; at += step) ((char*)to)[at] = ((const char*)from)[at];
    }
}
}

// So many bytes.
template <class Group, class T, class Size>
__device__ inline void memcpy_async(const Group& group, T* to, const T* from, const Size& bytes) {
    details::copy(group, (void*)to, (const void*)from, (size_t)bytes);
}
template <class Group, class Size>
__device__ inline void memcpy_async(const Group& group, void* to, const void* from, const Size& bytes) {
    details::copy(group, to, from, (size_t)bytes);
}
// As many elements as both sides have.
template <class Group, class T, class ToCount, class FromCount>
__device__ inline void memcpy_async(const Group& group, T* to, const ToCount& to_count, const T* from,
                                    const FromCount& from_count) {
    const size_t a = to_count, b = from_count;
    details::copy(group, (void*)to, (const void*)from, (a < b ? a : b) * sizeof(T));
}
template <class Group> __device__ inline void wait(const Group& group) { group.sync(); }
template <unsigned Prior, class Group> __device__ inline void wait_prior(const Group& group) { group.sync(); }

}
