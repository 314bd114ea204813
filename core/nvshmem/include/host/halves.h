/* How the host's declarations are written, and the bits of 16-bit floating-point numbers. */
#ifndef NVSHMEM_HOST_HALVES_H
#define NVSHMEM_HOST_HALVES_H

#include "../device_host/nvshmem_types.h"

#ifdef __cplusplus
#define NVSHMEMI_C_BEGIN extern "C" {
#define NVSHMEMI_C_END }
#else
#define NVSHMEMI_C_BEGIN
#define NVSHMEMI_C_END
#endif
/* Functions that kernels have, too. In a source with both halves a function of C++ has the name. */
#if NVSHMEMI_IN_KERNELS
#define NVSHMEMI_BOTH_BEGIN namespace nvshmem_host {
#define NVSHMEMI_BOTH_END }
#else
#define NVSHMEMI_BOTH_BEGIN
#define NVSHMEMI_BOTH_END
#endif

#ifdef __cplusplus
namespace nvshmem_host {

template <class T>
static inline unsigned short bits(const T &value) {
    unsigned short as_bits;
    static_assert(sizeof value == sizeof as_bits, "a number of 16 bits");
    __builtin_memcpy(&as_bits, &value, sizeof as_bits);
    return as_bits;
}
template <class T>
static inline T of_bits(unsigned short as_bits) {
    T value;
    __builtin_memcpy(static_cast<void *>(&value), &as_bits, sizeof as_bits);
    return value;
}

}
#endif

#endif
