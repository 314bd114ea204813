// The announcement of an image to the host's library, which fills its state in shmemx_cuda_init. Host code of the CUDA runtime
// alone has it. The declarations are there in both halves of a source, since compilers read host functions in both. A program
// without that library fills the state by DeviceLibrary::prepare.
#pragma once

#include "collective.cuh"

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)

// In the form of `Image` in core/oxshmem/src/bindings/images.rs.
struct oxshmem_image {
    unsigned abi;
    // The state's address on a device. An error of the runtime, or 0.
    int (*locate)(int device, void** state);
    const char* (*error)(int code);
};

extern "C" {
// Null in programs that are not linked with the library.
__attribute__((weak)) void oxshmem_register_image(const oxshmem_image* image);
__attribute__((weak)) void oxshmem_unregister_image(const oxshmem_image* image);
}

#if !defined(__CUDA_ARCH__)
namespace oxshmem {
namespace {

// By the program's own runtime, which alone knows the variables of its images.
struct ThisImage {
    const oxshmem_image image = {ABI << 16 | sizeof(State), locate, error};

    ThisImage() {
        if (oxshmem_register_image) oxshmem_register_image(&image);
    }
    ~ThisImage() {
        if (oxshmem_unregister_image) oxshmem_unregister_image(&image);
    }
    ThisImage(const ThisImage&) = delete;

    static int locate(int device, void** state) {
        int before = device;
        cudaError_t error = cudaGetDevice(&before);
        // A thread that is at the device already keeps its context, which may be the program's own.
        if (error == cudaSuccess && before != device) error = cudaSetDevice(device);
        if (error == cudaSuccess) error = cudaGetSymbolAddress(state, oxshmem_state);
        if (before != device) cudaSetDevice(before);
        return error;
    }
    static const char* error(int code) { return cudaGetErrorString((cudaError_t)code); }
} this_image;

}  // namespace
}  // namespace oxshmem
#endif

#endif
