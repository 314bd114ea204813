// The host library alone: kernels get the job's state by their module. Here the module is that of this program's own kernels.
#include "check.h"
#include <cuda.h>

__global__ void greet(int* inbox, int right) {
    nvshmem_int_p(inbox, nvshmem_my_pe() + 1, right);
    nvshmem_barrier_all();
}

int main() {
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_hostlib_init_attr(0, &attributes) == 0);
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    choose_device();
    CUDA(cudaFree(0));
    cudaFunction_t function;
    CUDA(cudaGetFuncBySymbol(&function, (const void*)greet));
    CUmodule module;
    CHECK(cuFuncGetModule(&module, (CUfunction)function) == CUDA_SUCCESS);
    // This program's image has announced itself, so that it has its state: without it, only the call by name can give it.
    CUdeviceptr variable;
    size_t bytes = 0;
    CHECK(cuModuleGetGlobal(&variable, &bytes, module, "oxshmem_state") == CUDA_SUCCESS && bytes > 0);
    nvshmem_barrier_all();
    CHECK(cuMemsetD8(variable + 4, 0xff, bytes - 4) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(nvshmemx_cumodule_init(nullptr) != 0);
    CHECK(nvshmemx_cumodule_init(module) == 0);
    int* inbox = (int*)nvshmem_calloc(1, sizeof(int));
    greet<<<1, 1>>>(inbox, (me + 1) % pes);
    RAN();
    CHECK(nvshmem_int_g(inbox, me) == (me + pes - 1) % pes + 1);
    nvshmem_barrier_all();
    nvshmem_free(inbox);
    CHECK(nvshmemx_cumodule_finalize(module) == 0);
    nvshmemx_hostlib_finalize();
    return 0;
}
