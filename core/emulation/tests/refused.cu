// Features that the emulation refuses, a section for each.
#if defined(MMA)
#include <mma.h>
#elif defined(PIPELINE)
#include <cuda_pipeline.h>
#elif defined(AWBARRIER)
#include <cuda_awbarrier.h>
#elif defined(FP8)
#include <cuda_fp8.h>
#elif defined(ATOMIC)
#include <cuda/atomic>
#elif defined(STD)
#include <cuda/std/tuple>
#elif defined(MANAGED)
__managed__ int both;
#elif defined(CLUSTER_DIMS)
__global__ void __cluster_dims__(2, 1, 1) k() {}
#elif defined(CLUSTER)
#include <cooperative_groups.h>
__global__ void k() { cooperative_groups::this_cluster().sync(); }
#elif defined(TEXTURE)
__global__ void k(cudaTextureObject_t t, float* out) { *out = tex1Dfetch<float>(t, 0); }
#elif defined(SURFACE)
__global__ void k(cudaSurfaceObject_t s) { surf1Dwrite(1.0f, s, 0); }
#elif defined(NESTED)
__global__ void inner() {}
__global__ void k() { inner<<<1, 1>>>(); }
#elif defined(COPIED)
struct Copied {
    int value;
    Copied(const Copied& other) : value(other.value) {}
};
__global__ void k(Copied) {}
#elif defined(ROUNDED)
__global__ void k(float* out) { *out = __fadd_rd(*out, 1.0f); }
#endif
int main() {}
