// Loads and stores with cache hints. Those that go past caches read the word anew each time.
#pragma once

template <class T>
static __device__ __forceinline__ T oxshmem_load_anew(const T* at) {
    if constexpr (std::is_scalar<T>::value) {
        return *(const volatile T*)at;
    } else {
        asm volatile("" ::: "memory");
        return *at;
    }
}
template <class T>
static __device__ __forceinline__ void oxshmem_store_through(T* at, T value) {
    if constexpr (std::is_scalar<T>::value) {
        *(volatile T*)at = value;
    } else {
        *at = value;
        asm volatile("" ::: "memory");
    }
}
template <class T> static __device__ __forceinline__ T __ldg(const T* at) { return *at; }
template <class T> static __device__ __forceinline__ T __ldca(const T* at) { return *at; }
template <class T> static __device__ __forceinline__ T __ldcs(const T* at) { return *at; }
template <class T> static __device__ __forceinline__ T __ldlu(const T* at) { return *at; }
template <class T> static __device__ __forceinline__ T __ldcg(const T* at) {
    return oxshmem_load_anew(at);
}
template <class T> static __device__ __forceinline__ T __ldcv(const T* at) {
    return oxshmem_load_anew(at);
}
template <class T> static __device__ __forceinline__ void __stwb(T* at, T value) { *at = value; }
template <class T> static __device__ __forceinline__ void __stcs(T* at, T value) { *at = value; }
template <class T> static __device__ __forceinline__ void __stcg(T* at, T value) {
    oxshmem_store_through(at, value);
}
template <class T> static __device__ __forceinline__ void __stwt(T* at, T value) {
    oxshmem_store_through(at, value);
}

// The space that an address is in: 0 for global memory, 1 for the block's shared memory, 2 for the thread's own.
extern "C" __device__ unsigned softcuda_space(const void* at);
static __device__ __forceinline__ unsigned __isGlobal(const void* at) { return at != nullptr && softcuda_space(at) == 0; }
static __device__ __forceinline__ unsigned __isShared(const void* at) { return at != nullptr && softcuda_space(at) == 1; }
static __device__ __forceinline__ unsigned __isLocal(const void* at) { return at != nullptr && softcuda_space(at) == 2; }
__device__ unsigned __isConstant(const void* at)
    __attribute__((unavailable("the emulation does not tell constant memory from global memory (docs/cuda-emulation.md, limits)")));
// An address is the same in each space.
#define OXSHMEM_SPACE(space)                                                                       \
    static __device__ __forceinline__ size_t __cvta_generic_to_##space(const void* at) { return (size_t)at; } \
    static __device__ __forceinline__ void* __cvta_##space##_to_generic(size_t at) { return (void*)at; }
OXSHMEM_SPACE(global)
OXSHMEM_SPACE(shared)
OXSHMEM_SPACE(constant)
OXSHMEM_SPACE(local)
#undef OXSHMEM_SPACE

__device__ __attribute__((weak)) void* operator new(size_t bytes) { return malloc(bytes); }
__device__ __attribute__((weak)) void* operator new[](size_t bytes) { return malloc(bytes); }
__device__ inline void* operator new(size_t, void* at) noexcept { return at; }
__device__ inline void* operator new[](size_t, void* at) noexcept { return at; }
__device__ inline void operator delete(void*, void*) noexcept {}
__device__ inline void operator delete[](void*, void*) noexcept {}
__device__ __attribute__((weak)) void operator delete(void* at) noexcept { free(at); }
__device__ __attribute__((weak)) void operator delete[](void* at) noexcept { free(at); }
__device__ __attribute__((weak)) void operator delete(void* at, size_t) noexcept { free(at); }
__device__ __attribute__((weak)) void operator delete[](void* at, size_t) noexcept { free(at); }
