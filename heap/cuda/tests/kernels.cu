// What tests/kernel.rs launches. kernels.ptx is made from this by NVRTC 12.0 for compute_70.

// Read and written by the host through its address.
extern "C" {
__device__ unsigned long long offset;
}

// One of each kind of argument: out[i] = first + i * factor + offset, in whole numbers.
extern "C" __global__ void ramp(long long* out, unsigned count, long long first, float factor,
                                double scale, signed char sign) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = first + static_cast<long long>(i * factor * scale) * sign + static_cast<long long>(offset);
    }
}

extern "C" __global__ void nothing() {}
