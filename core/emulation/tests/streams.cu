// Streams, events, graphs, several devices, host memory, dynamic shared memory, symbols.
#include <cstdio>
#include <cstring>
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            printf("line %d: %s is wrong: %s\n", __LINE__, #x, cudaGetErrorString(cudaGetLastError())); \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)
#define OK(x) CHECK((x) == cudaSuccess)
__device__ int total;
__global__ void add(int* at, int value) { *at += value; }
__global__ void keep(int value) { total += value; }
__global__ void reverse(int* data, int n) {
    extern __shared__ int copy[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) copy[i] = data[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = copy[n - 1 - i];
}
int main() {
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    CHECK(count == 2);
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 1));
    CHECK(properties.major == 9 && properties.warpSize == 32 && properties.multiProcessorCount > 0);
    cudaStream_t stream, other;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamCreate(&other));
    int* data;
    OK(cudaMalloc(&data, 4096 * sizeof(int)));
    OK(cudaMemsetAsync(data, 0, 4096 * sizeof(int), stream));
    cudaEvent_t before, after;
    OK(cudaEventCreate(&before));
    OK(cudaEventCreate(&after));
    OK(cudaEventRecord(before, stream));
    for (int i = 0; i < 10; ++i) add<<<1, 1, 0, stream>>>(data, 1);
    OK(cudaEventRecord(after, stream));
    OK(cudaStreamWaitEvent(other, after, 0));
    add<<<1, 1, 0, other>>>(data, 100);
    OK(cudaStreamSynchronize(other));
    int got = 0;
    OK(cudaMemcpy(&got, data, sizeof got, cudaMemcpyDefault));
    CHECK(got == 110);
    float milliseconds = -1;
    OK(cudaEventElapsedTime(&milliseconds, before, after));
    CHECK(milliseconds >= 0);

    cudaGraph_t graph;
    cudaGraphExec_t ready;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<1, 1, 0, stream>>>(data, 1);
    keep<<<1, 1, 0, stream>>>(2);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    for (int i = 0; i < 5; ++i) OK(cudaGraphLaunch(ready, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(&got, data, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(got == 115);
    OK(cudaMemcpyFromSymbol(&got, total, sizeof got));
    CHECK(got == 10);

    int *host, *seen;
    OK(cudaMallocHost(&host, 4096 * sizeof(int)));
    for (int i = 0; i < 4096; ++i) host[i] = i;
    OK(cudaMemcpyAsync(data, host, 4096 * sizeof(int), cudaMemcpyHostToDevice, stream));
    OK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    reverse<<<1, 256, 4096 * sizeof(int), stream>>>(data, 4096);
    OK(cudaMemcpyAsync(host, data, 4096 * sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(host[0] == 4095 && host[4095] == 0);
    OK(cudaMallocManaged(&seen, sizeof(int)));
    *seen = 5;
    add<<<1, 1>>>(seen, 2);
    OK(cudaDeviceSynchronize());
    CHECK(*seen == 7);
    OK(cudaFree(seen));

    // Each device has its own variables.
    OK(cudaSetDevice(1));
    OK(cudaMemcpyFromSymbol(&got, total, sizeof got));
    CHECK(got == 0);
    keep<<<1, 1>>>(77);
    OK(cudaMemcpyFromSymbol(&got, total, sizeof got));
    CHECK(got == 77);
    OK(cudaDeviceEnablePeerAccess(0, 0));
    add<<<1, 1>>>(data, 1);
    OK(cudaDeviceSynchronize());
    CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
    CHECK(strcmp(cudaGetErrorName(cudaGetLastError()), "cudaErrorPeerAccessAlreadyEnabled") == 0);
    CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
    cudaGetLastError();
    CHECK(cudaMemcpy(data, host, 4, (cudaMemcpyKind)9) == cudaErrorInvalidMemcpyDirection);
    puts("streams: all right");
}
