// Device code of two files, linked together.
#include <cstdio>
__device__ int shared_by_both;
extern __device__ int of_b;
__device__ int twice(int x);
static __global__ void local(int* out) { *out = twice(shared_by_both + of_b); }
void run_b(int* out);
int main() {
    int *out, got = 0, three = 3, four = 4;
    cudaMalloc(&out, sizeof *out);
    cudaMemcpyToSymbol(shared_by_both, &three, sizeof three);
    cudaMemcpyToSymbol(of_b, &four, sizeof four);
    local<<<1, 1>>>(out);
    cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
    if (got != 14) return printf("a: %d, %s\n", got, cudaGetErrorString(cudaGetLastError())), 1;
    run_b(out);
    cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
    if (got != 3) return printf("b: %d\n", got), 1;
    puts("parts: all right");
}
