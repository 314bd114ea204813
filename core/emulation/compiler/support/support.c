// The calls that device code makes, by way of the table that the driver sets when it loads the image.
// Part of each image.
#define _GNU_SOURCE
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
    void (*pause)(void);
    void (*trap)(unsigned code);
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
HIDDEN void softcuda_grid_barrier(void) { softcuda_calls->grid_barrier(); }
HIDDEN void softcuda_poll(const volatile void *word) { softcuda_calls->poll(word); }
HIDDEN void softcuda_pause(void) { softcuda_calls->pause(); }
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
