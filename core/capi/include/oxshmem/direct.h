/* What the calls consist of that -DOXSHMEM_INLINE compiles into a program: one instruction or two where the library would do
   just that, and else the call. Included by oxshmem/inline.h. */
#ifndef OXSHMEM_DIRECT_H
#define OXSHMEM_DIRECT_H

/* Nothing here is for the warnings that a program asks for. */
#pragma GCC system_header

#include <oxshmem/base.h>

/* Of what is declared here, and of what the calls do by it. With a library of another version each is a call. */
#ifndef OXSHMEM_DIRECT_VERSION
#define OXSHMEM_DIRECT_VERSION 2
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Where a PE's memory is mapped here; null where it is not, or the PE is lost. The rest is the library's. */
struct oxshmem_peer {
    char *base;
    char *rest;
};

/* The library's, which changes it when it is initialized or finalized. */
struct oxshmem_inline {
    /* 0 while nothing may be inlined. */
    uint32_t version;
    uint32_t pes;
    /* Where the symmetric heap begins, and its bytes. */
    uintptr_t heap;
    size_t heap_bytes;
    /* The same of the program's variables, which are its beginning. */
    uintptr_t program;
    size_t program_bytes;
    const struct oxshmem_peer *peers;
    /* Where each PE's memory is for atomics, as above; null where these, fences and quiets are calls. */
    char *const *words;
};

extern const struct oxshmem_inline *const oxshmem_inline;

/* A function that is compiled into its callers. Whoever takes the address of a call of the API has the library's. */
#define OXSHMEM_INLINED extern __inline__ __attribute__((__gnu_inline__, __always_inline__))

/* Words of symmetric memory, whatever their type is in the program. */
typedef uint8_t __attribute__((__may_alias__)) oxshmem_word_1;
typedef uint16_t __attribute__((__may_alias__)) oxshmem_word_2;
typedef uint32_t __attribute__((__may_alias__)) oxshmem_word_4;
typedef uint64_t __attribute__((__may_alias__)) oxshmem_word_8;

/* Whether calls may be inlined. */
OXSHMEM_INLINED int oxshmem_may_inline(const struct oxshmem_inline *now)
{
    return now->version == OXSHMEM_DIRECT_VERSION;
}

/* Where PE `pe` has the word of so many bytes at a symmetric address, for atomics or for anything else; null where that takes a
   call, if only to tell what is wrong. */
OXSHMEM_INLINED char *oxshmem_word_at(const void *address, size_t bytes, int pe, int atomic)
{
    const struct oxshmem_inline *now = oxshmem_inline;
    uintptr_t at = (uintptr_t)address, offset;
    char *base;
    if (!oxshmem_may_inline(now) || (uint32_t)pe >= now->pes || at % bytes != 0 || (atomic && !now->words))
        return (char *)0;
    /* A word that is aligned ends where whole pages do at the latest. */
    offset = at - now->heap;
    if (offset >= now->heap_bytes) {
        offset = at - now->program;
        if (offset >= now->program_bytes)
            return (char *)0;
    }
    base = __atomic_load_n(atomic ? &now->words[(uint32_t)pe] : &now->peers[(uint32_t)pe].base, __ATOMIC_RELAXED);
    return base ? base + offset : (char *)0;
}

/* The compiler moves nothing of the program's past it, as past a call. On x86-64 the processor does loads in their order, and
   stores in theirs. */
#define OXSHMEM_AS_A_CALL() __asm__ __volatile__("" : : : "memory")

/* Loads a word, whole, of so many bytes, from where it is aligned. */
OXSHMEM_INLINED uint64_t oxshmem_load(const void *from, size_t bytes)
{
    switch (bytes) {
    case 1: return __atomic_load_n((const oxshmem_word_1 *)from, __ATOMIC_RELAXED);
    case 2: return __atomic_load_n((const oxshmem_word_2 *)from, __ATOMIC_RELAXED);
    case 4: return __atomic_load_n((const oxshmem_word_4 *)from, __ATOMIC_RELAXED);
    default: return __atomic_load_n((const oxshmem_word_8 *)from, __ATOMIC_RELAXED);
    }
}

/* Stores one. */
OXSHMEM_INLINED void oxshmem_store(void *to, uint64_t word, size_t bytes)
{
    switch (bytes) {
    case 1: __atomic_store_n((oxshmem_word_1 *)to, (uint8_t)word, __ATOMIC_RELAXED); break;
    case 2: __atomic_store_n((oxshmem_word_2 *)to, (uint16_t)word, __ATOMIC_RELAXED); break;
    case 4: __atomic_store_n((oxshmem_word_4 *)to, (uint32_t)word, __ATOMIC_RELAXED); break;
    default: __atomic_store_n((oxshmem_word_8 *)to, word, __ATOMIC_RELAXED); break;
    }
}

/* p of a value of 1, 2, 4 or 8 bytes. 0 if that takes a call. */
OXSHMEM_INLINED int oxshmem_p(void *dest, const void *value, size_t bytes, int pe)
{
    char *to = oxshmem_word_at(dest, bytes, pe, 0);
    uint64_t word = 0;
    if (!to)
        return 0;
    __builtin_memcpy(&word, value, bytes);
    OXSHMEM_AS_A_CALL();
    oxshmem_store(to, word, bytes);
    OXSHMEM_AS_A_CALL();
    return 1;
}

/* g, likewise. */
OXSHMEM_INLINED int oxshmem_g(void *value, const void *source, size_t bytes, int pe)
{
    const char *from = oxshmem_word_at(source, bytes, pe, 0);
    uint64_t word;
    if (!from)
        return 0;
    OXSHMEM_AS_A_CALL();
    word = oxshmem_load(from, bytes);
    OXSHMEM_AS_A_CALL();
    __builtin_memcpy(value, &word, bytes);
    return 1;
}

/* Whether a put or a get is compiled for so many elements, which are one word that may be at this place in private memory. */
#define OXSHMEM_IS_WORD(place, nelems, bytes)                                                      \
    (__builtin_constant_p(nelems) && (nelems) <= 8 &&                                              \
     ((bytes) == 1 || (bytes) == 2 || (bytes) == 4 || (bytes) == 8) && (uintptr_t)(place) % (bytes) == 0)

/* A put of elements of so many bytes each. 0 if that takes a call. */
OXSHMEM_INLINED int oxshmem_put(void *dest, const void *source, size_t nelems, size_t size, int pe)
{
    size_t bytes = nelems * size;
    char *to = OXSHMEM_IS_WORD(source, nelems, bytes) ? oxshmem_word_at(dest, bytes, pe, 0) : (char *)0;
    if (!to)
        return 0;
    OXSHMEM_AS_A_CALL();
    oxshmem_store(to, oxshmem_load(source, bytes), bytes);
    OXSHMEM_AS_A_CALL();
    return 1;
}

/* A get, likewise. */
OXSHMEM_INLINED int oxshmem_get(void *dest, const void *source, size_t nelems, size_t size, int pe)
{
    size_t bytes = nelems * size;
    const char *from = OXSHMEM_IS_WORD(dest, nelems, bytes) ? oxshmem_word_at(source, bytes, pe, 0) : (char *)0;
    if (!from)
        return 0;
    OXSHMEM_AS_A_CALL();
    oxshmem_store(dest, oxshmem_load(from, bytes), bytes);
    OXSHMEM_AS_A_CALL();
    return 1;
}

/* What an atomic does to its word. */
#define OXSHMEM_FETCH 0
#define OXSHMEM_SET 1
#define OXSHMEM_SWAP 2
#define OXSHMEM_COMPARE_SWAP 3
#define OXSHMEM_ADD 4
#define OXSHMEM_AND 5
#define OXSHMEM_OR 6
#define OXSHMEM_XOR 7

/* Does it, and gives the old value, of what has one: one instruction where `op` is known, which it is. Those that give a value
   are in one order with each other, as the library's are. */
#define OXSHMEM_INSTRUCTION(bits, bytes)                                                           \
    OXSHMEM_INLINED uint##bits##_t oxshmem_instruction_##bits(int op, void *at, uint##bits##_t value, uint##bits##_t cond) \
    {                                                                                              \
        oxshmem_word_##bytes *on = (oxshmem_word_##bytes *)at;                                     \
        switch (op) {                                                                              \
        case OXSHMEM_FETCH: return __atomic_load_n(on, __ATOMIC_SEQ_CST);                          \
        case OXSHMEM_SET: __atomic_store_n(on, value, __ATOMIC_RELAXED); return 0;                 \
        case OXSHMEM_SWAP: return __atomic_exchange_n(on, value, __ATOMIC_SEQ_CST);                \
        case OXSHMEM_ADD: return __atomic_fetch_add(on, value, __ATOMIC_SEQ_CST);                  \
        case OXSHMEM_AND: return __atomic_fetch_and(on, value, __ATOMIC_SEQ_CST);                  \
        case OXSHMEM_OR: return __atomic_fetch_or(on, value, __ATOMIC_SEQ_CST);                    \
        case OXSHMEM_XOR: return __atomic_fetch_xor(on, value, __ATOMIC_SEQ_CST);                  \
        default:                                                                                   \
            __atomic_compare_exchange_n(on, &cond, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
            return cond;                                                                           \
        }                                                                                          \
    }
OXSHMEM_INSTRUCTION(32, 4)
OXSHMEM_INSTRUCTION(64, 8)
#undef OXSHMEM_INSTRUCTION

/* An atomic of a value of 4 or 8 bytes; `old` becomes the old one. 0 if that takes a call. */
OXSHMEM_INLINED int oxshmem_atomic(int op, const void *dest, const void *value, const void *cond, void *old, size_t bytes, int pe)
{
    char *at = oxshmem_word_at(dest, bytes, pe, 1);
    if (!at)
        return 0;
    OXSHMEM_AS_A_CALL();
    if (bytes == 4) {
        uint32_t given[2], was;
        __builtin_memcpy(&given[0], value, 4);
        __builtin_memcpy(&given[1], cond, 4);
        was = oxshmem_instruction_32(op, at, given[0], given[1]);
        __builtin_memcpy(old, &was, 4);
    } else {
        uint64_t given[2], was;
        __builtin_memcpy(&given[0], value, 8);
        __builtin_memcpy(&given[1], cond, 8);
        was = oxshmem_instruction_64(op, at, given[0], given[1]);
        __builtin_memcpy(old, &was, 8);
    }
    OXSHMEM_AS_A_CALL();
    return 1;
}

/* A quiet, which is a full fence, or a fence, where nothing but this processor's stores can be under way, which are in their
   order. 0 if that takes a call. */
OXSHMEM_INLINED int oxshmem_order(int quiet)
{
    const struct oxshmem_inline *now = oxshmem_inline;
    if (!oxshmem_may_inline(now) || !now->words)
        return 0;
    OXSHMEM_AS_A_CALL();
    if (quiet)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    OXSHMEM_AS_A_CALL();
    return 1;
}

#ifdef __cplusplus
}
#endif

#endif
