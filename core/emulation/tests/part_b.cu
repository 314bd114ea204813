// The second file of part_a.cu.
extern __device__ int shared_by_both;
__device__ int of_b;
__device__ int twice(int x) { return 2 * x; }
static __global__ void local(int* out) { *out = shared_by_both; }
void run_b(int* out) { local<<<1, 1>>>(out); }
