// What programs in the wild do, each in a few lines: values that only some lanes have set, placement new, conversions out of range,
// a first launch within a capture, a stream that is idle after its last event, launches in destructors, ranges for profilers.
#include <cmath>
#include <cstdio>
#include <cuda_bf16.h>
#include <new>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>
#define OK(x)                                                                                      \
    do {                                                                                           \
        cudaError_t error = (x);                                                                   \
        if (error) return printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)), 1;         \
    } while (0)
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) return printf("line %d: %s is wrong\n", __LINE__, #x), 1;                        \
    } while (0)

__global__ void add(int* to, int what) { atomicAdd(to, what); }

// The first lane of a warp takes room for all, and tells the others.
template <class T>
__device__ T from(T value, int lane) {
    return __shfl_sync(~0u, value, lane);
}
__global__ void elected(int* next, int* places) {
    int lane = threadIdx.x % 32, place;
    if (lane == 0) place = atomicAdd(next, 32);
    place = threadIdx.x < 64 ? __shfl_sync(~0u, place, 0) : from(place, 0);
    places[place + lane] = threadIdx.x;
}
// Lanes beyond the end load nothing.
__global__ void guarded(const int* in, int n, int* sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, value;
    if (i < n) value = in[i];
    int other = __shfl_xor_sync(~0u, value, 1);
    if (i < n && (i ^ 1) < n) atomicAdd(sum, value + other);
}

struct Pair {
    int a, b;
    __device__ Pair(int a, int b) : a(a), b(b) {}
};
__global__ void place(int* out) {
    __shared__ __align__(8) char room[sizeof(Pair)];
    Pair* pair = new (room) Pair(3, 4);
    *out = pair->a * 10 + pair->b;
}

__global__ void convert(const float* in, int n, int* ints, unsigned* units) {
    for (int i = 0; i < n; ++i) ints[i] = (int)in[i], units[i] = (unsigned)in[i];
}
__global__ void halves(__nv_bfloat162 pair, float* out) { out[0] = __low2float(pair), out[1] = __high2float(pair); }

struct Ends {
    int* word;
    ~Ends() {
        int value = 0;
        add<<<1, 1>>>(word, 100);
        if (cudaGetLastError() || cudaMemcpy(&value, word, 4, cudaMemcpyDeviceToHost) || value < 100) {
            fprintf(stderr, "a launch at the end: %d is wrong\n", value);
            _exit(1);
        }
        add<<<1, 1, 0, cudaStreamPerThread>>>(word, 1);
        cudaDeviceSynchronize();
    }
};

int all() {
    int* words;
    OK(cudaMalloc(&words, 1024 * sizeof(int)));
    OK(cudaMemset(words, 0, 1024 * sizeof(int)));
    static Ends ends = {words + 1000};
    // Before any other launch: the image is not loaded yet.
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<1, 1, 0, stream>>>(words, 5);
    OK(cudaGetLastError());
    cudaGraph_t graph;
    OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t ready;
    OK(cudaGraphInstantiate(&ready, graph, 0));
    OK(cudaDeviceSynchronize());
    OK(cudaGraphLaunch(ready, stream));
    OK(cudaStreamSynchronize(stream));
    int host[1024];
    OK(cudaMemcpy(host, words, 4, cudaMemcpyDeviceToHost));
    CHECK(host[0] == 5);

    cudaEvent_t event, later;
    OK(cudaEventCreate(&event));
    OK(cudaEventCreate(&later));
    for (int i = 0; i < 1000; ++i) {
        float took = 0;
        OK(cudaEventRecord(event, stream));
        OK(cudaEventSynchronize(event));
        OK(cudaStreamQuery(stream));
        OK(cudaEventRecord(later, stream));
        OK(cudaStreamSynchronize(stream));
        OK(cudaEventQuery(later));
        OK(cudaEventElapsedTime(&took, event, later));
        CHECK(took >= 0);
    }

    elected<<<1, 256>>>(words + 1, words + 64);
    OK(cudaMemcpy(host, words, 1024 * 4, cudaMemcpyDeviceToHost));
    CHECK(host[1] == 256);
    bool seen[256] = {};
    for (int i = 0; i < 256; ++i) seen[host[64 + i]] = true;
    for (bool one : seen) CHECK(one);

    guarded<<<1, 64>>>(words + 64, 40, words + 2);
    int sum = 0;
    for (int i = 0; i < 40; ++i) sum += 2 * host[64 + i];
    OK(cudaMemcpy(host, words, 16, cudaMemcpyDeviceToHost));
    CHECK(host[2] == sum);

    place<<<1, 1>>>(words + 3);
    OK(cudaMemcpy(host, words, 16, cudaMemcpyDeviceToHost));
    CHECK(host[3] == 34);

    const float numbers[] = {1e20f, -1e20f, -5, NAN, 7.9f, INFINITY};
    float* in = (float*)(words + 512);
    OK(cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    convert<<<1, 1>>>(in, 6, words + 600, (unsigned*)words + 700);
    OK(cudaMemcpy(host, words, 1024 * 4, cudaMemcpyDeviceToHost));
    const int ints[] = {2147483647, -2147483647 - 1, -5, 0, 7, 2147483647};
    const unsigned units[] = {~0u, 0, 0, 0, 7, ~0u};
    for (int i = 0; i < 6; ++i) CHECK(host[600 + i] == ints[i] && (unsigned)host[700 + i] == units[i]);

    halves<<<1, 1>>>(__floats2bfloat162_rn(1.5f, -2.5f), in);
    float pair[2];
    OK(cudaMemcpy(pair, in, 8, cudaMemcpyDeviceToHost));
    CHECK(pair[0] == 1.5f && pair[1] == -2.5f);
    return 0;
}

int main() {
    nvtxRangePush("all");
    int wrong = all();
    nvtxRangePop();
    if (wrong) return 1;
    puts("idioms: all right");
}
