// Ways to begin and to end: see the functions below. A way is named by the first argument.
#include "check.h"
#include <cstdint>
#include <string>
#include <fcntl.h>
#include <sys/stat.h>

__global__ void greet(int* inbox, int right) {
    nvshmem_int_p(inbox, nvshmem_my_pe() + 1, right);
    nvshmem_barrier_all();
}

// The job works: in kernels, and by the host.
static void work() {
    me = nvshmem_my_pe();
    pes = nvshmem_n_pes();
    int* inbox = (int*)nvshmem_calloc(2, sizeof(int));
    CHECK(inbox);
    greet<<<1, 1>>>(inbox, (me + 1) % pes);
    RAN();
    CHECK(nvshmem_int_g(inbox, me) == (me + pes - 1) % pes + 1);
    nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, inbox + 1, inbox, 1);
    CHECK(nvshmem_int_g(inbox + 1, me) == pes * (pes + 1) / 2);
    nvshmem_barrier_all();
    nvshmem_free(inbox);
}

// A thread level is asked for; what is given is one.
static void thread(char**) {
    int provided = -1;
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SERIALIZED, &provided) == 0);
    CHECK(provided >= NVSHMEM_THREAD_SERIALIZED && provided <= NVSHMEM_THREAD_MULTIPLE);
    choose_device();
    work();
    nvshmem_finalize();
}

// Numbers are there before a GPU is chosen, and teams by host. The GPU's part begins at the first call that needs it.
static void stages(char**) {
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    nvshmem_init();
    CHECK(nvshmemx_init_status() >= NVSHMEM_STATUS_IS_BOOTSTRAPPED);
    const int n = nvshmem_n_pes(), mine = nvshmem_my_pe();
    CHECK(nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == n && nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == mine);
    CHECK(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == mine);
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(mine % devices));
    int* first = (int*)nvshmem_malloc(100);
    cudaPointerAttributes is;
    CUDA(cudaPointerGetAttributes(&is, first));
    CHECK(is.device == mine % devices);
    CHECK(nvshmemx_init_status() >= NVSHMEM_STATUS_IS_INITIALIZED);
    work();
    nvshmem_finalize();
}

// The GPU is chosen before, as torch does.
static void device_first(char**) {
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(devices - 1));
    CUDA(cudaFree(0));
    nvshmem_init();
    int* first = (int*)nvshmem_malloc(100);
    cudaPointerAttributes is;
    CUDA(cudaPointerGetAttributes(&is, first));
    CHECK(is.device == devices - 1);
    work();
    nvshmem_finalize();
}

// Again after the end.
static void again(char**) {
    for (int time = 0; time < 3; ++time) {
        nvshmem_init();
        choose_device();
        work();
        nvshmem_finalize();
        CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    }
}

// The program ends without a finalize, with memory and a stream left.
static void no_finalize(char**) {
    start();
    work();
    CHECK(nvshmem_malloc(100));
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    nvshmem_barrier_all();
}

// A unique id by way of a file: no launcher is there. Words: NUMBER PES FILE, and `rubbish` for attributes that nobody has set.
static void unique_id(char** words) {
    const int number = atoi(words[0]), n = atoi(words[1]);
    const std::string file = words[2];
    const bool rubbish = words[3] && !strcmp(words[3], "rubbish"), host_only = words[3] && !strcmp(words[3], "hostlib");
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    static_assert(sizeof(id) == 128 && sizeof(nvshmemx_init_attr_t) == 144, "sizes that other languages know");
    if (number == 0) {
        CHECK(nvshmemx_get_uniqueid(&id) == 0);
        const int out = open((file + ".new").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(out >= 0 && ::write(out, &id, sizeof id) == sizeof id && close(out) == 0);
        CHECK(rename((file + ".new").c_str(), file.c_str()) == 0);
    } else {
        int in = -1;
        for (int wait = 0; wait < 3000 && (in = open(file.c_str(), O_RDONLY)) < 0; ++wait) usleep(10000);
        CHECK(in >= 0 && ::read(in, &id, sizeof id) == sizeof id);
        close(in);
    }
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    if (rubbish) memset(&attributes, 0xa5, sizeof attributes);
    CHECK(nvshmemx_set_attr_uniqueid_args(number, n, &id, &attributes) == 0);
    CHECK((host_only ? nvshmemx_hostlib_init_attr : nvshmemx_init_attr)(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0);
    CHECK(nvshmem_my_pe() == number && nvshmem_n_pes() == n);
    choose_device();
    if (host_only) {
        // No kernel of this program is told of the job.
        int* block = (int*)nvshmem_calloc(1, sizeof(int));
        nvshmem_int_p(block, number + 1, (number + 1) % n);
        nvshmem_barrier_all();
        CHECK(nvshmem_int_g(block, number) == (number + n - 1) % n + 1);
        nvshmemx_hostlib_finalize();
        return;
    }
    work();
    nvshmem_finalize();
}

// Attributes without a way to meet: the launcher's, as init.
static void attributes(char**) {
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    int communicator;
    CHECK(nvshmemx_set_attr_mpi_comm_args(&communicator, &attributes) == 0 && attributes.mpi_comm == &communicator);
    CHECK(nvshmemx_init_attr(0, &attributes) == 0);
    choose_device();
    work();
    nvshmem_finalize();
}

// One PE ends the job, with a status of its own.
static void global_exit(char**) {
    start();
    work();
    if (me == pes - 1) nvshmem_global_exit(23);
    nvshmem_barrier_all();
    sleep(60);
}

int main(int count, char** words) {
    const struct {
        const char* name;
        void (*run)(char**);
    } ways[] = {{"thread", thread},       {"stages", stages},       {"device_first", device_first}, {"again", again},
                {"no_finalize", no_finalize}, {"unique_id", unique_id}, {"attributes", attributes},     {"global_exit", global_exit}};
    for (auto& way : ways)
        if (count > 1 && !strcmp(words[1], way.name)) {
            way.run(words + 2);
            return 0;
        }
    FAIL("no way %s", count > 1 ? words[1] : "");
}
