// Calls of a program whose stream 0 is the thread's own; contexts that other threads have destroyed.
#include <cstdio>
#include <cstring>
#include <thread>

__constant__ int factor;
__device__ int count;

__global__ void scale(int *values) {
    values[threadIdx.x] *= factor;
    atomicAdd(&count, 1);
}

#define CHECK(call)                                                                    \
    do {                                                                               \
        const cudaError_t result = (call);                                             \
        if (result != cudaSuccess) {                                                   \
            printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(result));  \
            return false;                                                              \
        }                                                                              \
    } while (0)

static bool scales(int by) {
    int values[32], counted = 0, zero = 0;
    int *device = nullptr;
    CHECK(cudaMalloc(&device, sizeof values));
    CHECK(cudaMemset(device, 0, sizeof values));
    CHECK(cudaMemset2D(device, 64, 0, 32, 2));
    for (int at = 0; at < 32; at++) values[at] = at;
    CHECK(cudaMemcpy(device, values, sizeof values, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(factor, &by, sizeof by));
    CHECK(cudaMemcpyToSymbol(count, &zero, sizeof zero));
    scale<<<1, 32>>>(device);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy2D(values, 64, device, 64, 64, 2, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyFromSymbol(&counted, count, sizeof counted));
    CHECK(cudaFree(device));
    for (int at = 0; at < 32; at++) {
        if (values[at] != at * by || counted != 32) {
            printf("values[%d] is %d, by %d; counted %d\n", at, values[at], by, counted);
            return false;
        }
    }
    return true;
}

static bool enables_twice() {
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    if (cudaDeviceEnablePeerAccess(1, 0) != cudaErrorPeerAccessAlreadyEnabled) return false;
    if (cudaGetLastError() != cudaErrorPeerAccessAlreadyEnabled) return false;
    CHECK(cudaGetLastError());
    return true;
}

static bool resets() {
    int kept = 7, found = 0;
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemcpyToSymbol(count, &kept, sizeof kept));
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceReset());
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemcpyFromSymbol(&found, count, sizeof found));
    if (found != kept) {
        printf("a reset of device 0 changed a variable of device 1 to %d\n", found);
        return false;
    }
    return true;
}

int main() {
    if (!scales(3) || !enables_twice() || !resets()) return 1;
    // A thread that has the context which this one destroys.
    bool good = true;
    std::thread first([&] {
        good = cudaSetDevice(0) == cudaSuccess && scales(2);
        std::thread([&] { good = good && cudaSetDevice(0) == cudaSuccess && cudaDeviceReset() == cudaSuccess; }).join();
        good = good && scales(5);
    });
    first.join();
    // A thread without any context.
    std::thread second([&] {
        cudaEvent_t event;
        good = good && cudaEventCreate(&event) == cudaSuccess && cudaEventRecord(event, 0) == cudaSuccess;
    });
    second.join();
    printf(good ? "ok\n" : "failed in a thread\n");
    return !good;
}
