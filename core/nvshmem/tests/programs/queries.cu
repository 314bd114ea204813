// Numbers, names and versions, on the host and in kernels; macros of the version.
#include "check.h"

struct Answers {
    int me, n, api_major, api_minor, vendor_major, vendor_minor, vendor_patch;
    char name[NVSHMEM_MAX_NAME_LEN];
};

__global__ void ask(Answers* answers) {
    answers->me = nvshmem_my_pe();
    answers->n = nvshmem_n_pes();
    nvshmem_info_get_version(&answers->api_major, &answers->api_minor);
    nvshmem_info_get_name(answers->name);
    nvshmemx_vendor_get_version_info(&answers->vendor_major, &answers->vendor_minor, &answers->vendor_patch);
}

int main() {
    // Those of the library work before init.
    int major = -1, minor = -1, patch = -1;
    nvshmem_info_get_version(&major, &minor);
    CHECK(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION && major == 1 && minor == 3);
    char name[NVSHMEM_MAX_NAME_LEN];
    nvshmem_info_get_name(name);
    CHECK(strstr(name, "oxshmem") && strlen(name) < NVSHMEM_MAX_NAME_LEN);
    CHECK(strstr(NVSHMEM_VENDOR_STRING, "oxshmem"));
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    CHECK(major == NVSHMEM_VENDOR_MAJOR_VERSION && minor == NVSHMEM_VENDOR_MINOR_VERSION && patch == NVSHMEM_VENDOR_PATCH_VERSION);
    CHECK(major == 3 && minor == 8);
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);

    start();
    CHECK(me >= 0 && me < pes);
    int level = -1;
    nvshmem_query_thread(&level);
    CHECK(level >= NVSHMEM_THREAD_SINGLE && level <= NVSHMEM_THREAD_MULTIPLE);
    Answers* answers = (Answers*)nvshmem_malloc(sizeof(Answers));
    CHECK(nvshmemx_init_status() >= NVSHMEM_STATUS_IS_INITIALIZED);
    ask<<<1, 1>>>(answers);
    RAN();
    const Answers found = read(answers, 1)[0];
    CHECK(found.me == me && found.n == pes && found.api_major == 1 && found.api_minor == 3);
    CHECK(found.vendor_major == 3 && found.vendor_minor == 8 && found.vendor_patch == patch);
    CHECK(!strcmp(found.name, name));
    nvshmem_finalize();
    return 0;
}
