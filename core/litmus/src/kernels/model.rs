//! The executable model of kernels: the outcomes that the contract allows.
