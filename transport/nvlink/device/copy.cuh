// A copy by the GPU's own loads and stores.
//
// It stores each aligned word of the destination, up to 8 bytes, whole and once, whatever the source's
// alignment: a waiter may watch one.
#pragma once

template <class Word>
DEVICE void copy_word(char* to, const char* from) {
    Word word = 0;
    if ((u64)from % sizeof(Word) == 0)
        word = *(const Word*)from;
    else
        for (u32 i = 0; i < sizeof(Word); ++i) word |= (Word)((Word)(u8)from[i] << (8 * i));
    *(volatile Word*)to = word;
}

// A few bytes by one thread, in the largest words that the destination's alignment allows.
DEVICE void copy_few(char* to, const char* from, u64 bytes) {
    while (bytes > 0) {
        u32 step;
        if (bytes >= 8 && (u64)to % 8 == 0) {
            copy_word<u64>(to, from);
            step = 8;
        } else if (bytes >= 4 && (u64)to % 4 == 0) {
            copy_word<u32>(to, from);
            step = 4;
        } else if (bytes >= 2 && (u64)to % 2 == 0) {
            copy_word<u16>(to, from);
            step = 2;
        } else {
            copy_word<u8>(to, from);
            step = 1;
        }
        to += step;
        from += step;
        bytes -= step;
    }
}

// 16 bytes from an address that is a multiple of 16, of 8, or of nothing: as two words of 8, each of
// which the memory model keeps whole.
struct Load16 {
    DEVICE ulonglong2 load(const char* from) {
        const ulonglong2 both = *(const ulonglong2*)from;
        return ulonglong2{both.x, both.y};
    }
};
struct Load8 {
    DEVICE ulonglong2 load(const char* from) {
        const u64* words = (const u64*)from;
        return ulonglong2{words[0], words[1]};
    }
};
struct Load1 {
    // The three aligned words that hold the bytes. Each holds one of them at least, so it lies on a
    // page that may be read.
    DEVICE ulonglong2 load(const char* from) {
        const u32 skip = (u32)((u64)from % 8);
        const u64* words = (const u64*)(from - skip);
        const u32 low = skip * 8, high = 64 - low;
        const u64 middle = words[1];
        return ulonglong2{words[0] >> low | middle << high, middle >> low | words[2] << high};
    }
};

// `count` vectors to an address that is a multiple of 16. Four loads are under way before the first
// store.
template <class From>
DEVICE void copy_vectors(char* to, const char* from, u64 count, u64 thread, u64 threads) {
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

// Shared by `threads` threads, of which this is number `thread`.
DEVICE void copy(char* to, const char* from, u64 bytes, u64 thread, u64 threads) {
    u64 head = (16 - (u64)to % 16) % 16;
    if (head > bytes) head = bytes;
    const u64 vectors = (bytes - head) / 16;
    const u64 tail = head + 16 * vectors;
    if (thread == 0) copy_few(to, from, head);
    if (thread == threads - 1) copy_few(to + tail, from + tail, bytes - tail);
    to += head;
    from += head;
    if ((u64)from % 16 == 0)
        copy_vectors<Load16>(to, from, vectors, thread, threads);
    else if ((u64)from % 8 == 0)
        copy_vectors<Load8>(to, from, vectors, thread, threads);
    else
        copy_vectors<Load1>(to, from, vectors, thread, threads);
}
