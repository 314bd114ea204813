// Copies by loads and stores. Each aligned word of the destination, up to 8 bytes, is stored whole and once: a
// waiter may watch one.
#pragma once

#include "words.cuh"

namespace oxshmem {
namespace copies {

// Loads of a thread's own memory, which the compiler may cache.
struct Plain {
    template <class Word>
    OXSHMEM_DEVICE Word load(const Word* at) {
        return *at;
    }
    OXSHMEM_DEVICE ulonglong2 load_pair(const u64* at) { return *(const ulonglong2*)at; }
};
// Loads of memory that others write meanwhile: a get that is repeated sees what has come.
struct Relaxed {
    template <class Word>
    OXSHMEM_DEVICE Word load(const Word* at) {
        return words::load_relaxed(at);
    }
    OXSHMEM_DEVICE ulonglong2 load_pair(const u64* at) { return words::load_pair_relaxed(at); }
};

// Bytes from any address as a word.
template <class Loads>
OXSHMEM_DEVICE u64 gather(const char* from, u32 bytes) {
    u64 word = 0;
#pragma unroll 1
    for (u32 i = 0; i < bytes; ++i) word |= (u64)Loads::load((const u8*)from + i) << (8 * i);
    return word;
}

template <class Loads, class Word>
OXSHMEM_DEVICE void copy_word(char* to, const char* from) {
    const bool is_whole = (u64)from % sizeof(Word) == 0;
    *(volatile Word*)to = is_whole ? Loads::load((const Word*)from) : (Word)gather<Loads>(from, sizeof(Word));
}

// Fewer than 16 bytes up to an alignment, or the rest behind one, by one thread.
template <class Loads>
OXSHMEM_OUTLINE void copy_few(char* to, const char* from, u64 bytes) {
    while (bytes > 0) {
        u32 step;
        if (bytes >= 8 && (u64)to % 8 == 0) {
            copy_word<Loads, u64>(to, from);
            step = 8;
        } else if (bytes >= 4 && (u64)to % 4 == 0) {
            copy_word<Loads, u32>(to, from);
            step = 4;
        } else if (bytes >= 2 && (u64)to % 2 == 0) {
            copy_word<Loads, u16>(to, from);
            step = 2;
        } else {
            copy_word<Loads, u8>(to, from);
            step = 1;
        }
        to += step;
        from += step;
        bytes -= step;
    }
}

// Two words of 8 bytes, from an address that is a multiple of 16, of 8, or of nothing.
template <class Loads>
struct Aligned16 {
    OXSHMEM_DEVICE ulonglong2 load(const char* from) { return Loads::load_pair((const u64*)from); }
};
template <class Loads>
struct Aligned8 {
    OXSHMEM_DEVICE ulonglong2 load(const char* from) {
        const u64* words = (const u64*)from;
        return ulonglong2{Loads::load(words), Loads::load(words + 1)};
    }
};
template <class Loads>
struct Unaligned {
    // The three aligned words that hold the bytes. Each holds one of them, so its page may be read.
    OXSHMEM_DEVICE ulonglong2 load(const char* from) {
        const u32 skip = (u32)((u64)from % 8);
        const u64* words = (const u64*)(from - skip);
        const u32 low = skip * 8, high = 64 - low;
        const u64 middle = Loads::load(words + 1);
        return ulonglong2{Loads::load(words) >> low | middle << high, middle >> low | Loads::load(words + 2) << high};
    }
};

// `count` vectors of 16 bytes to an aligned address. Four loads are under way before the first store.
template <class From>
OXSHMEM_OUTLINE void copy_vectors(char* to, const char* from, u64 count, u64 thread, u64 threads) {
    ulonglong2* out = (ulonglong2*)to;
    u64 i = thread;
    for (; i + 3 * threads < count; i += 4 * threads) {
        const ulonglong2 a = From::load(from + 16 * i);
        const ulonglong2 b = From::load(from + 16 * (i + threads));
        const ulonglong2 c = From::load(from + 16 * (i + 2 * threads));
        const ulonglong2 d = From::load(from + 16 * (i + 3 * threads));
        out[i] = a;
        out[i + threads] = b;
        out[i + 2 * threads] = c;
        out[i + 3 * threads] = d;
    }
    for (; i < count; i += threads) out[i] = From::load(from + 16 * i);
}

// Bytes of no particular alignment, by `threads` threads of which this is number `thread`.
template <class Loads>
OXSHMEM_OUTLINE void copy_any(char* to, const char* from, u64 bytes, u64 thread, u64 threads) {
    u64 head = (16 - (u64)to % 16) % 16;
    if (head > bytes) head = bytes;
    const u64 vectors = (bytes - head) / 16;
    const u64 tail = head + 16 * vectors;
    if (thread == 0) copy_few<Loads>(to, from, head);
    if (thread == threads - 1) copy_few<Loads>(to + tail, from + tail, bytes - tail);
    to += head;
    from += head;
    if ((u64)from % 16 == 0)
        copy_vectors<Aligned16<Loads>>(to, from, vectors, thread, threads);
    else if ((u64)from % 8 == 0)
        copy_vectors<Aligned8<Loads>>(to, from, vectors, thread, threads);
    else
        copy_vectors<Unaligned<Loads>>(to, from, vectors, thread, threads);
}

// A copy by all threads of a group. It orders nothing. One aligned word is the commonest and is not a call.
template <class Loads, class Scope>
OXSHMEM_DEVICE void copy(Scope scope, char* to, const char* from, u64 bytes) {
    if (bytes == 8 && ((u64)to | (u64)from) % 8 == 0) {
        if (scope.rank() == 0) *(volatile u64*)to = Loads::load((const u64*)from);
    } else {
        copy_any<Loads>(to, from, bytes, scope.rank(), scope.size());
    }
}

}  // namespace copies
}  // namespace oxshmem
