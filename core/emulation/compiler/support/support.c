// The calls that device code makes, by way of the table that the driver sets when it loads the image.
// Part of each image.
#define _GNU_SOURCE
#include <fenv.h>
#include <malloc.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct table {
    uint32_t version, size;
    const unsigned *(*position)(void);
    void *(*shared)(void *index, size_t size, size_t alignment);
    unsigned (*dynamic_size)(void);
    unsigned (*block_barrier)(unsigned number);
    const void *(*warp)(unsigned mask, unsigned kind, unsigned long long value);
    void (*grid_barrier)(void);
    void (*poll)(const volatile void *word);
    void (*pause)(unsigned nanoseconds);
    void (*trap)(unsigned code);
    // Since version 2.
    void (*access)(const volatile void *at, size_t size, unsigned kind, void *place);
    void (*atomic)(const volatile void *at, size_t size, unsigned step, unsigned order, void *place);
    void (*fence)(unsigned order);
    void (*scope)(unsigned scope);
    void (*forget)(void *at, size_t size);
    // Since version 3.
    void (*operand)(const volatile void *at, size_t size, unsigned kind, void *place);
    void (*moves_operands)(unsigned moves);
    void (*completes)(unsigned by);
    // Since version 4.
    unsigned (*space)(const void *at);
};

const struct table *softcuda_calls;

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN const unsigned *softcuda_position(void) { return softcuda_calls->position(); }
HIDDEN unsigned softcuda_dynamic_size(void) { return softcuda_calls->dynamic_size(); }
HIDDEN unsigned softcuda_block_barrier(unsigned number) {
    return softcuda_calls->block_barrier(number);
}
HIDDEN const void *softcuda_warp(unsigned mask, unsigned kind, unsigned long long value) {
    return softcuda_calls->warp(mask, kind, value);
}
// The kind of this call is 0, and its value the place in the code.
HIDDEN unsigned softcuda_active(void) {
    const unsigned *lanes = softcuda_calls->warp(0, 0, (uintptr_t)__builtin_return_address(0));
    return lanes ? *lanes : 1;
}
HIDDEN unsigned softcuda_space(const void *at) { return softcuda_calls->space(at); }
HIDDEN void softcuda_grid_barrier(void) { softcuda_calls->grid_barrier(); }
HIDDEN void softcuda_poll(const volatile void *word) { softcuda_calls->poll(word); }
HIDDEN void softcuda_pause(unsigned nanoseconds) { softcuda_calls->pause(nanoseconds); }
HIDDEN __attribute__((noreturn)) void softcuda_trap(unsigned code) {
    softcuda_calls->trap(code);
    // Code that runs in no kernel, an initialiser, has nobody to tell.
    __builtin_trap();
}

// The device library's clock.
HIDDEN unsigned long long softcuda_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

// A `__shared__` variable is emulated thread-local storage for the compiler. This is its lookup.
struct variable {
    size_t size, alignment;
    void *index, *initial;
};
HIDDEN void *__emutls_get_address(struct variable *variable) {
    return softcuda_calls->shared(&variable->index, variable->size, variable->alignment);
}

// The C library's would end the process.
HIDDEN __attribute__((noreturn)) void __assert_fail(const char *assertion, const char *file,
                                                    unsigned line, const char *function) {
    const unsigned *at = softcuda_calls->position();
    char words[1024];
    snprintf(words, sizeof words,
             "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line,
             function, at[3], at[4], at[5], at[0], at[1], at[2], assertion);
    fputs(words, stderr);
    softcuda_trap(710);
}

// The fast forms, which are exact here.
#define FAST(name, function)                                                                       \
    HIDDEN float name(float x) { return function(x); }
FAST(__sinf, sinf)
FAST(__cosf, cosf)
FAST(__tanf, tanf)
FAST(__tanhf, tanhf)
FAST(__expf, expf)
FAST(__exp10f, exp10f)
FAST(__logf, logf)
FAST(__log2f, log2f)
FAST(__log10f, log10f)
HIDDEN float __powf(float x, float y) { return powf(x, y); }
HIDDEN void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }

// Operations and conversions rounded toward zero, up and down. The words are read and written while the CPU has that mode, and no
// other fiber runs meanwhile.
#define IN(direction, Result, name, parameters, words, value)                                      \
    HIDDEN Result name parameters {                                                                \
        const int before = fegetround();                                                           \
        fesetround(direction);                                                                     \
        words;                                                                                     \
        volatile Result result = (value);                                                          \
        fesetround(before);                                                                        \
        return result;                                                                             \
    }
#define DIRECTED(Result, name, parameters, words, value)                                           \
    IN(FE_TOWARDZERO, Result, name##_rz, parameters, words, value)                                 \
    IN(FE_UPWARD, Result, name##_ru, parameters, words, value)                                     \
    IN(FE_DOWNWARD, Result, name##_rd, parameters, words, value)
#define OF_ONE(Result, T, name, value) DIRECTED(Result, name, (T a), volatile T x = a, value)
#define OF_TWO(T, name, value) DIRECTED(T, name, (T a, T b), volatile T x = a; volatile T y = b, value)
#define OF_THREE(T, name, value)                                                                   \
    DIRECTED(T, name, (T a, T b, T c), volatile T x = a; volatile T y = b; volatile T z = c, value)
OF_TWO(float, __fadd, x + y)
OF_TWO(float, __fsub, x - y)
OF_TWO(float, __fmul, x *y)
OF_TWO(float, __fdiv, x / y)
OF_ONE(float, float, __fsqrt, sqrtf(x))
OF_ONE(float, float, __frcp, 1 / x)
OF_THREE(float, __fmaf, fmaf(x, y, z))
OF_TWO(double, __dadd, x + y)
OF_TWO(double, __dsub, x - y)
OF_TWO(double, __dmul, x *y)
OF_TWO(double, __ddiv, x / y)
OF_ONE(double, double, __dsqrt, sqrt(x))
OF_ONE(double, double, __drcp, 1 / x)
OF_THREE(double, __fma, fma(x, y, z))
OF_ONE(float, int, __int2float, (float)x)
OF_ONE(float, unsigned, __uint2float, (float)x)
OF_ONE(float, long long, __ll2float, (float)x)
OF_ONE(float, unsigned long long, __ull2float, (float)x)
OF_ONE(double, long long, __ll2double, (double)x)
OF_ONE(double, unsigned long long, __ull2double, (double)x)
OF_ONE(float, double, __double2float, (float)x)

// The names by which a compiler that looks for races calls its run-time library. This one is the driver's.
#define PLACE __builtin_return_address(0)
#define ACCESS(name, size, kind)                                                                   \
    HIDDEN void __tsan_##name##size(void *at) { softcuda_calls->access(at, size, kind, PLACE); }
#define SIZES(name, kind)                                                                          \
    ACCESS(name, 1, kind)                                                                          \
    ACCESS(name, 2, kind)                                                                          \
    ACCESS(name, 4, kind)                                                                          \
    ACCESS(name, 8, kind)                                                                          \
    ACCESS(name, 16, kind)
SIZES(read, 0)
SIZES(write, 1)
SIZES(unaligned_read, 0)
SIZES(unaligned_write, 1)
SIZES(volatile_read, 2)
SIZES(volatile_write, 3)
SIZES(unaligned_volatile_read, 2)
SIZES(unaligned_volatile_write, 3)
// Part of each image; one that is checked calls it first.
HIDDEN void __tsan_init(void) {}
HIDDEN void __tsan_vptr_update(void **at, void *value) {
    softcuda_calls->access(at, sizeof *at, 1, PLACE);
    (void)value;
}
HIDDEN void __tsan_vptr_read(void **at) { softcuda_calls->access(at, sizeof *at, 0, PLACE); }
HIDDEN void *__tsan_memcpy(void *to, const void *from, size_t size) {
    if (size) {
        softcuda_calls->access(from, size, 0, PLACE);
        softcuda_calls->access(to, size, 1, PLACE);
    }
    return __builtin_memcpy(to, from, size);
}
HIDDEN void *__tsan_memmove(void *to, const void *from, size_t size) {
    if (size) {
        softcuda_calls->access(from, size, 0, PLACE);
        softcuda_calls->access(to, size, 1, PLACE);
    }
    return __builtin_memmove(to, from, size);
}
HIDDEN void *__tsan_memset(void *to, int value, size_t size) {
    if (size) {
        softcuda_calls->access(to, size, 1, PLACE);
    }
    return __builtin_memset(to, value, size);
}

enum { LOAD, STORE, BEFORE, AFTER, LOADED };
#define UPDATE(bits, T, name, builtin)                                                             \
    HIDDEN T __tsan_atomic##bits##_##name(volatile T *at, T value, int order) {                    \
        softcuda_calls->atomic(at, sizeof(T), BEFORE, order, PLACE);                               \
        T old = builtin(at, value, __ATOMIC_SEQ_CST);                                              \
        softcuda_calls->atomic(at, sizeof(T), AFTER, order, PLACE);                                \
        return old;                                                                                \
    }
#define ATOMICS(bits, T)                                                                           \
    HIDDEN T __tsan_atomic##bits##_load(const volatile T *at, int order) {                         \
        softcuda_calls->atomic(at, sizeof(T), LOAD, order, PLACE);                                 \
        T value = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                           \
        softcuda_calls->atomic(at, sizeof(T), LOADED, order, PLACE);                               \
        return value;                                                                              \
    }                                                                                              \
    HIDDEN void __tsan_atomic##bits##_store(volatile T *at, T value, int order) {                  \
        softcuda_calls->atomic(at, sizeof(T), STORE, order, PLACE);                                \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
    }                                                                                              \
    UPDATE(bits, T, exchange, __atomic_exchange_n)                                                 \
    UPDATE(bits, T, fetch_add, __atomic_fetch_add)                                                 \
    UPDATE(bits, T, fetch_sub, __atomic_fetch_sub)                                                 \
    UPDATE(bits, T, fetch_and, __atomic_fetch_and)                                                 \
    UPDATE(bits, T, fetch_or, __atomic_fetch_or)                                                   \
    UPDATE(bits, T, fetch_xor, __atomic_fetch_xor)                                                 \
    UPDATE(bits, T, fetch_nand, __atomic_fetch_nand)                                               \
    HIDDEN T __tsan_atomic##bits##_compare_exchange_val(volatile T *at, T compare, T value,        \
                                                        int order, int failed) {                   \
        const int done = __atomic_compare_exchange_n(at, &compare, value, 0, __ATOMIC_SEQ_CST,     \
                                                     __ATOMIC_SEQ_CST);                            \
        /* One that fails is a load. */                                                            \
        const int as = done ? order : failed;                                                      \
        softcuda_calls->atomic(at, sizeof(T), done ? BEFORE : LOAD, as, PLACE);                    \
        softcuda_calls->atomic(at, sizeof(T), done ? AFTER : LOADED, as, PLACE);                   \
        return compare;                                                                            \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
HIDDEN void __tsan_atomic_thread_fence(int order) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    softcuda_calls->fence(order);
}
HIDDEN void __tsan_atomic_signal_fence(int order) { (void)order; }

// An atomic operation that the compiler does not tell of: the call stands before it.
HIDDEN void softcuda_atomic(volatile void *at, unsigned size, unsigned order) {
    softcuda_calls->atomic(at, size, BEFORE, order, PLACE);
    softcuda_calls->atomic(at, size, AFTER, order, PLACE);
}
HIDDEN void softcuda_scope(unsigned scope) { softcuda_calls->scope(scope); }
// Nonblocking calls of the device library.
HIDDEN void softcuda_operand(const volatile void *at, size_t size, unsigned kind) {
    softcuda_calls->operand(at, size, kind, PLACE);
}
HIDDEN void softcuda_moves_operands(unsigned moves) { softcuda_calls->moves_operands(moves); }
HIDDEN void softcuda_completes(unsigned by) { softcuda_calls->completes(by); }
// In place of `free`: the bytes' next owner has nothing to do with their last one.
HIDDEN void softcuda_free(void *at) {
    if (at) {
        softcuda_calls->forget(at, malloc_usable_size(at));
    }
    free(at);
}
