// Parameters of all forms, static and dynamic shared memory, device variables.
#include <cstdio>
struct P { float* p; int n; };
struct E {};
struct B { double a[5]; };
struct C3 { char c[3]; };
struct FF { float a, b; };
__constant__ float cst[4];
__device__ int counter;
static __device__ int sc;
template <class T, class Op>
__global__ void k(T* o, Op, P s, B b, bool f, C3 c, FF ff, char, E, float3 f3, short sh) {
    __shared__ T sm[32];
    extern __shared__ float dyn[];
    sm[threadIdx.x] = b.a[1] + f;
    if (threadIdx.x == 0) dyn[0] = cst[1];
    __syncthreads();
    atomicAdd(&counter, 1);
    atomicAdd(&sc, 2);
    volatile int* v = &counter;
    while (*v < 32) {
    }
    o[threadIdx.x] = sm[31 - threadIdx.x] + sqrtf(dyn[0]) + s.p[1] + c.c[2] + ff.b + f3.z + sh;
}
int main() {
    float h[4] = {1, 16, 3, 4}, *d, *o, out[32];
    cudaMalloc(&d, sizeof h);
    cudaMalloc(&o, sizeof out);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(cst, h, sizeof h);
    P p{d, 3};
    B b{{0, 100, 0, 0, 0}};
    k<float, E><<<1, 32, 64>>>(o, E{}, p, b, true, C3{{0, 0, 7}}, FF{0, 1000}, 'c', E{}, make_float3(0, 0, 10000), 3);
    printf("launch %s\n", cudaGetErrorName(cudaGetLastError()));
    printf("copy %s\n", cudaGetErrorName(cudaMemcpy(out, o, sizeof out, cudaMemcpyDeviceToHost)));
    int x = 0, y = 0;
    cudaMemcpyFromSymbol(&x, counter, 4);
    cudaMemcpyFromSymbol(&y, sc, 4);
    printf("%g %g %d %d\n", out[0], out[31], x, y);
    return !(out[0] == 101 + 4 + 16 + 7 + 1000 + 10000 + 3 && x == 32 && y == 64);
}
