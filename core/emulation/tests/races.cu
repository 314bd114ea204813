// Programs with and without what orders their accesses: `races CASE [broken]`. The race detector (`oxshmem cuda cc --check`) finds each broken
// one, and none of the others.
#include <cooperative_groups.h>
#include <cstdio>
#include <sched.h>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t code = (call);                                                                 \
        if (code != cudaSuccess) {                                                                 \
            printf("%s: %s\n", #call, cudaGetErrorString(code));                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

constexpr int THREADS = 64, BLOCKS = 4;
static bool broken;
static int* data;

// Threads of a block: a barrier between the writes and the reads of others.
template <bool BROKEN> __global__ void barrier(int* out) {
    __shared__ int tile[THREADS];
    tile[threadIdx.x] = threadIdx.x;
    if (!BROKEN) __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = tile[(threadIdx.x + 1) % THREADS];
}

// The barrier before shared memory is used again.
template <bool BROKEN> __global__ void reuse(int* out) {
    __shared__ int tile[THREADS];
    int sum = 0;
    for (int round = 0; round < 3; ++round) {
        tile[threadIdx.x] = round;
        __syncthreads();
        sum += tile[(threadIdx.x + 33) % THREADS];
        if (!BROKEN) __syncthreads();
    }
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// Lanes of a warp: a shuffle orders no memory.
template <bool BROKEN> __global__ void warp(int* out) {
    __shared__ int tile[32];
    tile[threadIdx.x] = threadIdx.x;
    if (BROKEN) {
        out[threadIdx.x] = __shfl_sync(0xffffffffu, tile[threadIdx.x], 0);
    } else {
        __syncwarp();
    }
    out[threadIdx.x] = tile[31 - threadIdx.x];
}

// Parts of a hand-over between blocks, of which one is left out or too narrow.
enum Part { NOTHING, RELEASE, ACQUIRE, NARROW_RELEASE, NARROW_ACQUIRE, NARROW_FLAG, PLAIN_FLAG };
template <Part BROKEN> __global__ void flag(int* out) {
    int* word = out + 1;
    if (blockIdx.x == 0) {
        out[0] = 7;
        if (BROKEN == NARROW_RELEASE) __threadfence_block();
        else if (BROKEN != RELEASE) __threadfence();
        if (BROKEN == NARROW_FLAG) atomicExch_block(word, 1);
        else if (BROKEN == PLAIN_FLAG) *word = 1;
        else atomicExch(word, 1);
    } else {
        while (atomicAdd(word, 0) == 0) {
        }
        if (BROKEN == NARROW_ACQUIRE) __threadfence_block();
        else if (BROKEN != ACQUIRE) __threadfence();
        out[2] = out[0];
    }
}

// The same through a volatile word, as older programs do.
template <bool BROKEN> __global__ void volatile_flag(int* out) {
    volatile int* word = out + 1;
    if (blockIdx.x == 0) {
        out[0] = 7;
        if (!BROKEN) __threadfence();
        *word = 1;
    } else {
        while (*word == 0) {
        }
        __threadfence();
        out[2] = out[0];
    }
}

// The last block to come adds up what all have written.
template <bool BROKEN> __global__ void last_block(int* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        out[2 + blockIdx.x] = blockIdx.x;
        if (!BROKEN) __threadfence();
        last = atomicInc((unsigned*)out, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        int sum = 0;
        for (unsigned block = 0; block < gridDim.x; ++block) sum += out[2 + block];
        out[1] = sum;
    }
}

template <bool BROKEN> __global__ void histogram(int* out) {
    if (BROKEN) out[threadIdx.x % 4] += 1;
    else atomicAdd(&out[threadIdx.x % 4], 1);
}

template <bool BROKEN> __global__ void sum(float* out) {
    atomicAdd(out, 1.0f);
    atomicMax((int*)out + 1, (int)threadIdx.x);
    if (BROKEN && threadIdx.x == 0) out[0] = 0;
}

template <bool BROKEN> __global__ void whole_grid(int* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    if (!BROKEN) cooperative_groups::this_grid().sync();
    out[1024 + blockIdx.x * blockDim.x + threadIdx.x] =
        out[(blockIdx.x + 1) % gridDim.x * blockDim.x + threadIdx.x];
}

// Bytes side by side are no race.
__global__ void bytes(char* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void writes(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void reads(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }

template <Part BROKEN> static void hand_over() {
    flag<BROKEN><<<2, 1>>>(data);
}
template <bool BROKEN> static void grid() {
    void* arguments[] = {&data};
    CHECK(cudaLaunchCooperativeKernel((void*)whole_grid<BROKEN>, dim3(BLOCKS), dim3(THREADS), arguments, 0, 0));
}

static void streams() {
    cudaStream_t one, other;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    writes<<<1, THREADS, 0, one>>>(data);
    CHECK(cudaEventRecord(event, one));
    if (!broken) CHECK(cudaStreamWaitEvent(other, event, 0));
    reads<<<1, THREADS, 0, other>>>(data, data + 100);
    CHECK(cudaDeviceSynchronize());
}

static void copies() {
    cudaStream_t one, other;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(data, 0, 400, one));
    writes<<<1, THREADS, 0, one>>>(data);
    if (!broken) CHECK(cudaStreamSynchronize(one));
    CHECK(cudaMemcpyAsync(data + 100, data, 4 * THREADS, cudaMemcpyDeviceToDevice, other));
    CHECK(cudaDeviceSynchronize());
}

#define EITHER(kernel, ...) (broken ? kernel<true> __VA_ARGS__ : kernel<false> __VA_ARGS__)

// The host is told by a word in its own memory, or by a function of a stream; and a kernel by such a word.
template <bool BROKEN> __global__ void tells(int* out, volatile int* word) {
    out[0] = 7;
    if (!BROKEN) __threadfence_system();
    *word = 1;
}
__global__ void is_told(int* out, volatile int* word) {
    while (*word == 0) {
    }
    __threadfence_system();
    out[1] = out[0];
}
static void host_words() {
    cudaStream_t one, other;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    volatile int* words;
    CHECK(cudaMallocHost((void**)&words, 4096));
    words[0] = words[1] = 0;
    EITHER(tells, <<<1, 1, 0, one>>>(data, words));
    while (words[0] == 0) sched_yield();
    reads<<<1, 1, 0, other>>>(data, data + 100);
    CHECK(cudaDeviceSynchronize());
    is_told<<<1, 1, 0, other>>>(data, words + 1);
    writes<<<1, 1, 0, one>>>(data);
    CHECK(cudaStreamSynchronize(one));
    words[1] = 1;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFreeHost((void*)words));
    // Host memory of a program that is freed, in a file with kernels.
    free(malloc(100));
    // A stream that is destroyed counts as waited for.
    writes<<<1, THREADS, 0, one>>>(data);
    CHECK(cudaStreamDestroy(one));
    CHECK(cudaDeviceSynchronize());
    reads<<<1, THREADS, 0, other>>>(data, data + 100);
    CHECK(cudaLaunchHostFunc(other, [](void* told) { *(volatile int*)told = 1; }, (void*)&broken));
    CHECK(cudaDeviceSynchronize());
}

// Memory that the host's own code reads and writes, too.
static void pinned() {
    int* words;
    CHECK(cudaMallocHost((void**)&words, 4096));
    memset(words, 0, 4096);
    writes<<<1, THREADS>>>(words);
    if (!broken) CHECK(cudaDeviceSynchronize());
    int sum = 0;
    for (int i = 0; i < THREADS; ++i) sum += words[i];
    words[THREADS] = sum;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFreeHost(words));
}
static void pinned_source() {
    int* words;
    CHECK(cudaMallocHost((void**)&words, 4096));
    cudaStream_t one;
    CHECK(cudaStreamCreate(&one));
    writes<<<1, THREADS, 0, one>>>(data);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < THREADS; ++i) words[i] = round;
        CHECK(cudaMemcpyAsync(data, words, 4 * THREADS, cudaMemcpyHostToDevice, one));
        if (!broken) CHECK(cudaStreamSynchronize(one));
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFreeHost(words));
}
static void managed() {
    int *words, copy[THREADS];
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaMallocManaged(&words, 4096));
    for (int i = 0; i < THREADS; ++i) words[i] = i;
    reads<<<1, THREADS>>>(words, words + 100);
    CHECK(cudaEventRecord(event));
    if (!broken) CHECK(cudaEventSynchronize(event));
    memcpy(copy, words + 100, sizeof copy);
    CHECK(cudaDeviceSynchronize());
    if (!broken && copy[5] != 5) exit(3);
    CHECK(cudaFree(words));
}

// Kernels of one stream, of the default stream, and of a graph follow each other.
static void in_turn() {
    cudaStream_t one;
    CHECK(cudaStreamCreate(&one));
    writes<<<1, THREADS, 0, one>>>(data);
    reads<<<1, THREADS>>>(data, data + 100);
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    writes<<<1, THREADS, 0, one>>>(data + 100);
    reads<<<1, THREADS, 0, one>>>(data + 100, data);
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(one, &graph));
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaDeviceSynchronize());
    // Memory that is freed and allocated anew has no past.
    int* more;
    for (int round = 0; round < 3; ++round) {
        CHECK(cudaMalloc(&more, 4096));
        writes<<<1, THREADS>>>(more);
        CHECK(cudaFree(more));
    }
    bytes<<<1, THREADS>>>((char*)data);
}

int main(int count, char** words) {
    const char* name = count > 1 ? words[1] : "";
    const char* how = count > 2 ? words[2] : "";
    broken = *how != 0;
    auto is = [&](const char* other) { return !strcmp(name, other); };
    auto as = [&](const char* other) { return !strcmp(how, other); };
    CHECK(cudaMalloc(&data, 1 << 16));
    CHECK(cudaMemset(data, 0, 1 << 16));
    // A fill of device memory goes on behind the call, and streams may be independent of the default one.
    CHECK(cudaDeviceSynchronize());
    if (is("barrier")) EITHER(barrier, <<<BLOCKS, THREADS>>>(data));
    else if (is("reuse")) EITHER(reuse, <<<BLOCKS, THREADS>>>(data));
    else if (is("warp")) EITHER(warp, <<<1, 32>>>(data));
    else if (is("volatile_flag")) EITHER(volatile_flag, <<<2, 1>>>(data));
    else if (is("last_block")) EITHER(last_block, <<<BLOCKS, THREADS>>>(data));
    else if (is("histogram")) EITHER(histogram, <<<BLOCKS, THREADS>>>(data));
    else if (is("sum")) EITHER(sum, <<<BLOCKS, THREADS>>>((float*)data));
    else if (is("grid")) broken ? grid<true>() : grid<false>();
    else if (is("streams")) streams();
    else if (is("copies")) copies();
    else if (is("in_turn")) in_turn();
    else if (is("host_words")) host_words();
    else if (is("pinned")) pinned();
    else if (is("pinned_source")) pinned_source();
    else if (is("managed")) managed();
    else if (is("flag")) {
        if (as("release")) hand_over<RELEASE>();
        else if (as("acquire")) hand_over<ACQUIRE>();
        else if (as("narrow release")) hand_over<NARROW_RELEASE>();
        else if (as("narrow acquire")) hand_over<NARROW_ACQUIRE>();
        else if (as("narrow flag")) hand_over<NARROW_FLAG>();
        else if (as("plain flag")) hand_over<PLAIN_FLAG>();
        else hand_over<NOTHING>();
    } else {
        printf("no such case: %s\n", name);
        return 2;
    }
    CHECK(cudaDeviceSynchronize());
    return 0;
}
