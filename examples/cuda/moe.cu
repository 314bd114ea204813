// A layer of a mixture of experts. The experts are divided among the PEs. A router sends each token to two of them; the answers
// come back and are added up with their weights. All of it is one kernel on each PE. docs/examples/cuda.md describes it.
#include <cmath>
#include <oxshmem.cuh>
#include <shmem.h>
#include <shmemx.h>
#include <vector>

#include "check.h"

const int TOKENS = 96;        // of each PE
const int DIM = 32;           // numbers of a token
const int EXPERTS = 3;        // of each PE
const int CHOICES = 2;        // experts of each token
const int ROOM = TOKENS * CHOICES;

// A token on its way to an expert.
struct Sent {
    int token, expert;
    float weight;
    float numbers[DIM];
};

__host__ __device__ unsigned scatter(unsigned x) {
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return x ^ x >> 13;
}

// The router: expert and weight of a token's choice. The experts of a token differ.
__host__ __device__ int expert_of(int pe, int token, int choice, int experts) {
    const unsigned chance = scatter(pe * TOKENS + token + 1);
    const int first = chance % experts;
    return choice == 0 ? first : (first + 1 + chance / experts % (experts - 1)) % experts;
}
__host__ __device__ float weight_of(int token, int choice) { return (token + choice) % 4 + 1; }

// An expert: a matrix that shifts and scales, so that all results are whole numbers and sums are exact.
__host__ __device__ float answer_of(int expert, const float* numbers, int at) {
    return (expert + 1) * numbers[(at + expert) % DIM] + numbers[at];
}
__host__ __device__ float number_of(int pe, int token, int at) { return (pe * 7 + token * 3 + at) % 11; }

// The memory of the exchange: symmetric, with room for each PE's tokens.
struct Exchange {
    Sent* outbox;                       // not symmetric
    Sent* inbox;
    float* answers;                     // not symmetric
    float* returned;
    unsigned long long* arrived;        // the number of tokens from each PE, plus one
    unsigned long long* answered;
};

// One block for each PE: it sends that PE its tokens, answers those that come from there, and adds up the answers.
__global__ void layer(Exchange x, const float* tokens, float* sums) {
    const int me = oxshmem::my_pe(), n = oxshmem::n_pes(), pe = blockIdx.x;
    Sent* outbox = x.outbox + pe * ROOM;
    const Sent* inbox = x.inbox + pe * ROOM;
    float *answers = x.answers + pe * ROOM * DIM, *returned = x.returned + pe * ROOM * DIM;
    __shared__ int sent, received;

    // Dispatch.
    if (threadIdx.x == 0) sent = 0;
    __syncthreads();
    for (int pair = threadIdx.x; pair < ROOM; pair += blockDim.x) {
        const int token = pair / CHOICES, choice = pair % CHOICES;
        const int expert = expert_of(me, token, choice, n * EXPERTS);
        if (expert / EXPERTS != pe) continue;
        Sent* to = outbox + atomicAdd(&sent, 1);
        to->token = token, to->expert = expert, to->weight = weight_of(token, choice);
        for (int at = 0; at < DIM; ++at) to->numbers[at] = tokens[token * DIM + at];
    }
    __syncthreads();
    oxshmem::put_signal(oxshmem::block(), x.inbox + me * ROOM, outbox, sent, x.arrived + me, sent + 1, oxshmem::SIGNAL_SET, pe);

    // The experts' work.
    if (threadIdx.x == 0) received = (int)oxshmem::signal_wait_until(x.arrived + pe, oxshmem::CMP_NE, 0) - 1;
    __syncthreads();
    for (int i = threadIdx.x; i < received * DIM; i += blockDim.x)
        answers[i] = answer_of(inbox[i / DIM].expert, inbox[i / DIM].numbers, i % DIM);
    __syncthreads();
    oxshmem::put_signal(oxshmem::block(), x.returned + me * ROOM * DIM, answers, received * DIM, x.answered + me, 1,
                        oxshmem::SIGNAL_SET, pe);

    // Combine. A token's answers come from two PEs perhaps, to two blocks.
    if (threadIdx.x == 0) oxshmem::signal_wait_until(x.answered + pe, oxshmem::CMP_EQ, 1);
    __syncthreads();
    for (int i = threadIdx.x; i < sent * DIM; i += blockDim.x)
        atomicAdd(sums + outbox[i / DIM].token * DIM + i % DIM, outbox[i / DIM].weight * returned[i]);
}

template <class T>
T* symmetric(size_t n) {
    T* at = (T*)shmemx_cuda_malloc(n * sizeof(T));
    if (!at) FAIL("no GPU memory");
    return at;
}
template <class T>
T* own(size_t n) {
    T* at;
    CUDA(cudaMalloc(&at, n * sizeof(T)));
    return at;
}

int main() {
    shmem_init();
    if (shmemx_cuda_init() != 0) shmem_global_exit(1);
    const int me = shmem_my_pe(), n = shmem_n_pes(), room = n * ROOM;

    Exchange x = {own<Sent>(room), symmetric<Sent>(room), own<float>(room * DIM), symmetric<float>(room * DIM),
                  symmetric<unsigned long long>(n), symmetric<unsigned long long>(n)};
    CUDA(cudaMemset(x.arrived, 0, n * sizeof *x.arrived));
    CUDA(cudaMemset(x.answered, 0, n * sizeof *x.answered));
    float *tokens = own<float>(TOKENS * DIM), *sums = own<float>(TOKENS * DIM);
    std::vector<float> numbers(TOKENS * DIM), found(TOKENS * DIM);
    for (int i = 0; i < TOKENS * DIM; ++i) numbers[i] = number_of(me, i / DIM, i % DIM);
    CUDA(cudaMemcpy(tokens, numbers.data(), numbers.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA(cudaMemset(sums, 0, TOKENS * DIM * sizeof(float)));
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();

    // All blocks run at once, for a block waits for one on each PE.
    void* arguments[] = {&x, &tokens, &sums};
    CUDA(cudaLaunchCooperativeKernel((void*)layer, dim3(n), dim3(64), arguments, 0, 0));
    CUDA(cudaDeviceSynchronize());
    if (shmemx_cuda_check() != 0) shmem_global_exit(1);

    CUDA(cudaMemcpy(found.data(), sums, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int token = 0; token < TOKENS; ++token)
        for (int at = 0; at < DIM; ++at) {
            float expected = 0;
            for (int choice = 0; choice < CHOICES; ++choice)
                expected += weight_of(token, choice) *
                            answer_of(expert_of(me, token, choice, n * EXPERTS), &numbers[token * DIM], at);
            if (found[token * DIM + at] != expected)
                FAIL("number %d of token %d is %g, not %g", at, token, found[token * DIM + at], expected);
        }
    shmem_barrier_all();
    if (me == 0) printf("moe: %d tokens by %d experts on %d PEs, all answers are right\n", n * TOKENS, n * EXPERTS, n);
    for (void* at : {(void*)x.answered, (void*)x.arrived, (void*)x.returned, (void*)x.inbox}) shmem_free(at);
    for (void* at : {(void*)x.outbox, (void*)x.answers, (void*)tokens, (void*)sums}) CUDA(cudaFree(at));
    shmem_finalize();
    return 0;
}
