// The host library alone: kernels get the job's state by their module. Here the module is that of this program's own kernels.
#include "check.h"
#include <cuda.h>

// A library that the driver loads for all contexts. The job's state goes into its variable.
static void fill_library(CUmodule module) {
    CUdeviceptr own, other;
    size_t bytes = 0, other_bytes = 0;
    CHECK(cuModuleGetGlobal(&own, &bytes, module, "oxshmem_state") == CUDA_SUCCESS);
    char ptx[512];
    snprintf(ptx, sizeof ptx,
             ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 8 .b8 oxshmem_state[%zu];\n", bytes);
    CUlibrary library, without;
    CHECK(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
    CHECK(cuLibraryGetGlobal(&other, &other_bytes, library, "oxshmem_state") == CUDA_SUCCESS);
    CHECK(other_bytes == bytes && other != own);
    // A compiler has written the version of the header there. Another version is refused.
    CHECK(cuMemsetD8(other, 0, bytes) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(nvshmemx_culibrary_init(library) != 0);
    CHECK(cuMemcpyDtoD(other, own, sizeof(int)) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(nvshmemx_culibrary_init(library) == 0);
    char *one = (char*)malloc(bytes), *two = (char*)malloc(bytes);
    CHECK(cuMemcpyDtoH(one, own, bytes) == CUDA_SUCCESS && cuMemcpyDtoH(two, other, bytes) == CUDA_SUCCESS);
    CHECK(memcmp(one, two, bytes) == 0);
    free(one);
    free(two);
    CHECK(nvshmemx_culibrary_finalize(library) == 0);
    CHECK(cuLibraryUnload(library) == CUDA_SUCCESS);
    const char* nothing = ".version 8.0\n.target sm_80\n.address_size 64\n";
    CHECK(cuLibraryLoadData(&without, nothing, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
    CHECK(nvshmemx_culibrary_init(without) != 0);
    CHECK(nvshmemx_culibrary_init(nullptr) != 0);
    CHECK(cuLibraryUnload(without) == CUDA_SUCCESS);
}

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
    fill_library(module);
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
