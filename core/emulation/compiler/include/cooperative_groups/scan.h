// Scans over a tile, or over lanes in any places.
#pragma once
#include "operations.h"

namespace cooperative_groups {

template <class Group, class T, class Operation>
__device__ inline auto inclusive_scan(const Group& group, T&& value, Operation&& operation)
    -> details::result<T, Operation> {
    details::result<T, Operation> all = value;
    const unsigned rank = group.thread_rank(), size = group.size();
    for (unsigned step = 1; step < size; step *= 2) {
        const auto other = group.shfl_up(all, step);
        if (rank >= step) all = operation(other, all);
    }
    return all;
}
template <class Group, class T> __device__ inline auto inclusive_scan(const Group& group, T&& value) {
    return inclusive_scan(group, value, plus<typename std::decay<T>::type>());
}
// The first thread has nothing before it, and gets a value of no arguments.
template <class Group, class T, class Operation>
__device__ inline auto exclusive_scan(const Group& group, T&& value, Operation&& operation)
    -> details::result<T, Operation> {
    const auto before = group.shfl_up(inclusive_scan(group, value, operation), 1);
    return group.thread_rank() == 0 ? details::result<T, Operation>{} : before;
}
template <class Group, class T> __device__ inline auto exclusive_scan(const Group& group, T&& value) {
    return exclusive_scan(group, value, plus<typename std::decay<T>::type>());
}

}
