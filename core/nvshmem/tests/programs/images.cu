// Kernels of two sources, with separate compilation or without, and those of libraries that are opened at run time, before init
// and after.
//   images [EARLY LATE], the two libraries
#include "check.h"
#include "images.h"
#include <dlfcn.h>

__global__ void own(int* word, int right) {
    nvshmem_int_atomic_add(word, 1, right);
#ifdef __CUDACC_RDC__
    tell(word, 1000, right);
#endif
    nvshmem_barrier_all();
}

typedef void (*Launch)(int* word, int right);

static Launch open_plugin(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) FAIL("%s", dlerror());
    return (Launch)dlsym(library, "launch_plugin");
}

int main(int count, char** words) {
    Launch early = count == 3 ? open_plugin(words[1]) : NULL, late = NULL;
    start();
    int* word = (int*)nvshmem_calloc(1, sizeof(int));
    const int right = (me + 1) % pes;
    own<<<1, 1>>>(word, right);
    RAN();
    launch_other(word, right);
    int wanted = 1 + 10;
#ifdef __CUDACC_RDC__
    wanted += 1000;
#endif
    if (early) {
        late = open_plugin(words[2]);
        CHECK(early && late);
        nvshmem_barrier_all();
        early(word, right);
        late(word, right);
        wanted += 200;
    }
    nvshmem_barrier_all();
    CHECK(nvshmem_int_g(word, me) == wanted);
    nvshmem_free(word);
    nvshmem_finalize();
    return 0;
}
