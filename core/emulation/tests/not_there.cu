// Functions of the runtime that are not there: each says so, and gives an error.
#include <cstdio>
__global__ void k() {}
#define REFUSED(call)                                                                              \
    if ((call) != cudaErrorNotSupported) return puts(#call " is not refused"), 1
int main() {
    cudaArray_t array;
    cudaChannelFormatDesc words = cudaCreateChannelDesc<float>();
    REFUSED(cudaMallocArray(&array, &words, 8));
    cudaTextureObject_t texture;
    REFUSED(cudaCreateTextureObject(&texture, nullptr, nullptr, nullptr));
    cudaGraphExecUpdateResultInfo result;
    REFUSED(cudaGraphExecUpdate(nullptr, nullptr, &result));
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster[1];
    cluster[0].id = cudaLaunchAttributeClusterDimension;
    cluster[0].val.clusterDim = {2, 1, 1};
    config.gridDim = 2, config.blockDim = 1, config.attrs = cluster, config.numAttrs = 1;
    REFUSED(cudaLaunchKernelEx(&config, k));
    return 0;
}
