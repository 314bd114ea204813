// Comparisons of a word with a value, by number.
#pragma once

#include "words.cuh"

namespace oxshmem {

// In the order of `Cmp` in core/oxshmem/src/wait_until.rs.
enum Compare : u32 {
    CMP_EQ,
    CMP_NE,
    CMP_GT,
    CMP_GE,
    CMP_LT,
    CMP_LE,
};

namespace waits {

template <class T>
OXSHMEM_DEVICE bool holds(T seen, Compare compare, T value) {
    switch (compare) {
        case CMP_EQ: return seen == value;
        case CMP_NE: return seen != value;
        case CMP_GT: return seen > value;
        case CMP_GE: return seen >= value;
        case CMP_LT: return seen < value;
        default: return seen <= value;
    }
}

}  // namespace waits
}  // namespace oxshmem
