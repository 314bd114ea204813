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

// Address spaces are one on a CPU. Shared memory is not told from other memory.
static __device__ __forceinline__ unsigned __isGlobal(const void* at) { return at != nullptr; }

__device__ __attribute__((weak)) void* operator new(size_t bytes) { return malloc(bytes); }
__device__ __attribute__((weak)) void* operator new[](size_t bytes) { return malloc(bytes); }
__device__ __attribute__((weak)) void operator delete(void* at) noexcept { free(at); }
__device__ __attribute__((weak)) void operator delete[](void* at) noexcept { free(at); }
__device__ __attribute__((weak)) void operator delete(void* at, size_t) noexcept { free(at); }
__device__ __attribute__((weak)) void operator delete[](void* at, size_t) noexcept { free(at); }
