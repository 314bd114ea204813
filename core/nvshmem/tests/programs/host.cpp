// A source without kernels, as compilers for C++ see it: calls of the host, and 16-bit numbers that go to functions of a .cu file.
#include "check.h"
#include <cuda_fp16.h>

float widen(half number);
half round_of(float number);

int main() {
    start();
    int* inbox = (int*)nvshmem_calloc(1, sizeof(int));
    nvshmem_int_p(inbox, me + 1, (me + 1) % pes);
    nvshmem_barrier_all();
    CHECK(nvshmem_int_g(inbox, me) == (me + pes - 1) % pes + 1);
    CHECK(widen(half(1.5f)) == 1.5f && (float)round_of(2.5f) == 2.5f);
    half* halves = (half*)nvshmem_calloc(4, sizeof(half));
    const half mine[4] = {half(0.5f), half(1.f), half(2.f), half((float)me)};
    nvshmem_half_put(halves, mine, 4, (me + 1) % pes);
    nvshmem_barrier_all();
    half got[4];
    nvshmem_half_get(got, halves, 4, me);
    CHECK((float)got[0] == 0.5f && (float)got[3] == (float)((me + pes - 1) % pes));
    nvshmem_barrier_all();
    nvshmem_finalize();
    return 0;
}
