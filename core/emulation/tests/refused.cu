// Features that the emulation refuses, a section for each.
#if defined(CUBLAS)
#include <cublas_v2.h>
#elif defined(MMA)
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
#elif defined(RANDOM)
#include <curand_kernel.h>
#elif defined(CUB)
#include <cub/cub.cuh>
#elif defined(THRUST)
#include <thrust/device_vector.h>
#elif defined(MANAGED)
__device__ __managed__ int both;
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
#elif defined(CONSTANT)
__global__ void k(const int* at, bool* out) { *out = __isConstant(at); }
#elif defined(WIDE_TILE)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k() { cg::tiled_partition<64>(cg::this_thread_block()).sync(); }
#endif
int main() {}
