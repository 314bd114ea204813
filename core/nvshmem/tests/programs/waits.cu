// Waits and tests of each type: one word, all, any and some of several, with a status and with a value for each; and waits on a
// stream.
#include "check.h"

enum { WORDS = 8 };

#define WAITS(NAME, TYPE)                                                                                              \
    struct wait_##NAME {                                                                                               \
        using T = TYPE;                                                                                                \
        static __device__ void p(T* word, T value, int pe) { nvshmem_##NAME##_p(word, value, pe); }                    \
        static __device__ void wait(T* word, int cmp, T value) { nvshmem_##NAME##_wait_until(word, cmp, value); }      \
        static __device__ int test(T* word, int cmp, T value) { return nvshmem_##NAME##_test(word, cmp, value); }      \
        static __device__ void wait_all(T* words, size_t n, const int* status, int cmp, T value) {                     \
            nvshmem_##NAME##_wait_until_all(words, n, status, cmp, value);                                             \
        }                                                                                                              \
        static __device__ size_t wait_any(T* words, size_t n, const int* status, int cmp, T value) {                   \
            return nvshmem_##NAME##_wait_until_any(words, n, status, cmp, value);                                      \
        }                                                                                                              \
        static __device__ size_t wait_some(T* words, size_t n, size_t* which, const int* status, int cmp, T value) {   \
            return nvshmem_##NAME##_wait_until_some(words, n, which, status, cmp, value);                              \
        }                                                                                                              \
        static __device__ void wait_all_vector(T* words, size_t n, const int* status, int cmp, T* values) {            \
            nvshmem_##NAME##_wait_until_all_vector(words, n, status, cmp, values);                                     \
        }                                                                                                              \
        static __device__ size_t wait_any_vector(T* words, size_t n, const int* status, int cmp, T* values) {          \
            return nvshmem_##NAME##_wait_until_any_vector(words, n, status, cmp, values);                              \
        }                                                                                                              \
        static __device__ size_t wait_some_vector(T* words, size_t n, size_t* which, const int* status, int cmp, T* values) { \
            return nvshmem_##NAME##_wait_until_some_vector(words, n, which, status, cmp, values);                      \
        }                                                                                                              \
        static __device__ int test_all(T* words, size_t n, const int* status, int cmp, T value) {                      \
            return nvshmem_##NAME##_test_all(words, n, status, cmp, value);                                            \
        }                                                                                                              \
        static __device__ size_t test_any(T* words, size_t n, const int* status, int cmp, T value) {                   \
            return nvshmem_##NAME##_test_any(words, n, status, cmp, value);                                            \
        }                                                                                                              \
        static __device__ size_t test_some(T* words, size_t n, size_t* which, const int* status, int cmp, T value) {   \
            return nvshmem_##NAME##_test_some(words, n, which, status, cmp, value);                                    \
        }                                                                                                              \
        static __device__ int test_all_vector(T* words, size_t n, const int* status, int cmp, T* values) {             \
            return nvshmem_##NAME##_test_all_vector(words, n, status, cmp, values);                                    \
        }                                                                                                              \
        static __device__ size_t test_any_vector(T* words, size_t n, const int* status, int cmp, T* values) {          \
            return nvshmem_##NAME##_test_any_vector(words, n, status, cmp, values);                                    \
        }                                                                                                              \
        static __device__ size_t test_some_vector(T* words, size_t n, size_t* which, const int* status, int cmp, T* values) { \
            return nvshmem_##NAME##_test_some_vector(words, n, which, status, cmp, values);                            \
        }                                                                                                              \
        static void p_on_stream(T* word, T value, int pe, cudaStream_t stream) {                                       \
            nvshmemx_##NAME##_p_on_stream(word, value, pe, stream);                                                    \
        }                                                                                                              \
        static void wait_on_stream(T* word, int cmp, T value, cudaStream_t stream) {                                   \
            nvshmemx_##NAME##_wait_until_on_stream(word, cmp, value, stream);                                          \
        }                                                                                                              \
        static void wait_all_on_stream(T* words, size_t n, const int* status, int cmp, T value, cudaStream_t stream) { \
            nvshmemx_##NAME##_wait_until_all_on_stream(words, n, status, cmp, value, stream);                          \
        }                                                                                                              \
        static void wait_all_vector_on_stream(T* words, size_t n, const int* status, int cmp, T* values, cudaStream_t stream) { \
            nvshmemx_##NAME##_wait_until_all_vector_on_stream(words, n, status, cmp, values, stream);                  \
        }                                                                                                              \
    };
WAIT_TYPES(WAITS)

// The words have 0 at first. The left neighbour puts 1 to 8 there.
template <class Of>
__global__ void look(typename Of::T* words, typename Of::T* values, int right) {
    using T = typename Of::T;
    const size_t none = SIZE_MAX;
    size_t which[WORDS];
    int without_1[WORDS] = {0, 1}, no_words[WORDS] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < WORDS; ++i) values[i] = (T)(i + 1);

    // Nothing is there yet.
    SEEN(!Of::test(words, NVSHMEM_CMP_EQ, 1) && Of::test(words, NVSHMEM_CMP_EQ, 0));
    SEEN(Of::test_all(words, WORDS, NULL, NVSHMEM_CMP_LE, 0) && !Of::test_all(words, WORDS, without_1, NVSHMEM_CMP_GT, 0));
    SEEN(Of::test_any(words, WORDS, NULL, NVSHMEM_CMP_NE, 0) == none && Of::test_some(words, WORDS, which, NULL, NVSHMEM_CMP_NE, 0) == 0);
    SEEN(!Of::test_all_vector(words, WORDS, NULL, NVSHMEM_CMP_EQ, values));
    SEEN(Of::test_any_vector(words, WORDS, NULL, NVSHMEM_CMP_EQ, values) == none);
    SEEN(Of::test_some_vector(words, WORDS, which, NULL, NVSHMEM_CMP_EQ, values) == 0);
    nvshmem_barrier_all();

    for (int i = 0; i < WORDS; ++i) Of::p(words + i, (T)(i + 1), right);
    Of::wait(words, NVSHMEM_CMP_EQ, 1);
    Of::wait(words + 7, NVSHMEM_CMP_GE, 8);
    Of::wait_all(words, WORDS, NULL, NVSHMEM_CMP_NE, 0);
    Of::wait_all(words, WORDS, without_1, NVSHMEM_CMP_LT, 9);
    Of::wait_all_vector(words, WORDS, NULL, NVSHMEM_CMP_EQ, values);
    Of::wait_all_vector(words, WORDS, without_1, NVSHMEM_CMP_GE, values);
    for (int i = 0; i < WORDS; ++i) SEEN(words[i] == (T)(i + 1));

    SEEN(Of::wait_any(words, WORDS, NULL, NVSHMEM_CMP_EQ, 3) == 2);
    SEEN(Of::wait_any(words, WORDS, without_1, NVSHMEM_CMP_LE, 2) == 0);
    SEEN(Of::wait_some(words, WORDS, which, NULL, NVSHMEM_CMP_GT, 5) == 3);
    for (int i = 0; i < 3; ++i) SEEN(which[i] == 5 + i);
    SEEN(Of::wait_some(words, WORDS, which, without_1, NVSHMEM_CMP_LT, 4) == 2 && which[0] + which[1] == 2);
    values[1] = 0;
    SEEN(Of::wait_any_vector(words, 2, NULL, NVSHMEM_CMP_EQ, values) == 0);
    SEEN(Of::wait_some_vector(words, WORDS, which, NULL, NVSHMEM_CMP_EQ, values) == 7);
    SEEN(Of::test_any_vector(words, WORDS, NULL, NVSHMEM_CMP_GT, values) == 1);
    SEEN(Of::test_some_vector(words, WORDS, which, without_1, NVSHMEM_CMP_EQ, values) == 7);
    SEEN(!Of::test_all_vector(words, WORDS, NULL, NVSHMEM_CMP_EQ, values) && Of::test_all_vector(words, WORDS, without_1, NVSHMEM_CMP_EQ, values));
    SEEN(Of::test_all(words, WORDS, NULL, NVSHMEM_CMP_NE, 0) && Of::test_any(words, WORDS, NULL, NVSHMEM_CMP_EQ, 6) == 5);
    SEEN(Of::test_some(words, WORDS, which, NULL, NVSHMEM_CMP_LE, 2) == 2);

    // All are left out: nothing is waited for.
    SEEN(Of::wait_any(words, WORDS, no_words, NVSHMEM_CMP_EQ, 77) == none);
    SEEN(Of::wait_some(words, WORDS, which, no_words, NVSHMEM_CMP_EQ, 77) == 0);
    Of::wait_all(words, WORDS, no_words, NVSHMEM_CMP_EQ, 77);
    SEEN(Of::test_all(words, WORDS, no_words, NVSHMEM_CMP_EQ, 77) == 1);
    SEEN(Of::test_any(words, WORDS, no_words, NVSHMEM_CMP_EQ, 77) == none);
    SEEN(Of::test_some(words, WORDS, which, no_words, NVSHMEM_CMP_EQ, 77) == 0);

    // Signs count, and so does the absence of one.
    nvshmem_barrier_all();
    Of::p(words, (T)-1, right);
    Of::wait(words, NVSHMEM_CMP_EQ, (T)-1);
    SEEN(Of::test(words, NVSHMEM_CMP_LT, 0) == (T(-1) < T(0)) && Of::test(words, NVSHMEM_CMP_GT, 0) == (T(-1) > T(0)));
    nvshmem_quiet();
}

template <class Of>
static void check(const char* what) {
    using T = typename Of::T;
    const int right = (me + 1) % pes;
    T *words = (T*)nvshmem_calloc(WORDS, sizeof(T)), *values = (T*)nvshmem_malloc(WORDS * sizeof(T));
    look<Of><<<1, 1>>>(words, values, right);
    RAN();
    nvshmem_barrier_all();

    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    std::vector<T> wanted(WORDS);
    for (int i = 0; i < WORDS; ++i) wanted[i] = (T)(21 + i);
    fill(values, wanted);
    int* status = (int*)nvshmem_malloc(WORDS * sizeof(int));
    fill(status, std::vector<int>{0, 0, 0, 1, 0, 0, 0, 0});
    // All but one are put before the first wait.
    for (int i = 0; i < WORDS; ++i)
        if (i != 3) Of::p_on_stream(words + i, wanted[i], right, stream);
    Of::wait_on_stream(words, NVSHMEM_CMP_EQ, 21, stream);
    Of::wait_on_stream(words + 1, NVSHMEM_CMP_GT, 21, stream);
    Of::wait_all_on_stream(words, WORDS, status, NVSHMEM_CMP_GE, 21, stream);
    Of::p_on_stream(words + 3, wanted[3], right, stream);
    Of::wait_all_on_stream(words, WORDS, NULL, NVSHMEM_CMP_GE, 21, stream);
    Of::wait_all_vector_on_stream(words, WORDS, NULL, NVSHMEM_CMP_EQ, values, stream);
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(words, wanted, what);
    CUDA(cudaStreamDestroy(stream));
    nvshmem_barrier_all();
    nvshmem_free(status);
    nvshmem_free(values);
    nvshmem_free(words);
}

int main() {
    start();
#define RUN(NAME, TYPE) check<wait_##NAME>(#NAME);
    WAIT_TYPES(RUN)
    nvshmem_finalize();
    return 0;
}
