// Waiting. Each wait ends when the host sets the stop word, because the job has failed (G6).
#pragma once

#include "state.cuh"

namespace oxshmem {
namespace spin {

// Ends all waits of this GPU, unless something has ended them already.
OXSHMEM_DEVICE void stop_all(u32 reason) { words::compare_swap(oxshmem_state.stop, 0u, reason); }

// The end of a wait before its time.
enum End : u32 {
    NOT_YET,
    STOPPED,
    TOO_LATE,
};

// Looks whether a wait that began at `start` has to end. The stop word lies in host memory, a long way off.
OXSHMEM_OUTLINE End look_for_end(u64 start) {
    // The awaited value may come by an atomic that this GPU has to perform itself.
    if (oxshmem_state.inbox) inbox::serve(oxshmem_state.inbox);
    if (words::load_relaxed(oxshmem_state.stop) != 0) return STOPPED;
    const u64 patience = oxshmem_state.deadline;
    return patience && words::nanoseconds() - start > patience ? TOO_LATE : NOT_YET;
}

// Looks for `condition()` until it is true. False if the wait was ended before.
template <class Condition>
OXSHMEM_DEVICE bool until(Condition& condition) {
    if (condition()) return true;
    const u64 start = oxshmem_state.deadline ? words::nanoseconds() : 0;
    u32 pause = 32;
    for (u32 round = 1; !condition(); ++round) {
        if (round % 16 == 0) {
            const End end = look_for_end(start);
            if (end != NOT_YET) {
                // The awaited value may have come before the host gave up.
                if (condition()) return true;
                if (end == TOO_LATE) stop_all(STOP_DEADLINE);
                return false;
            }
        }
        // An emulated thread gives way at once: another one may have to run.
        if (round < 64 && OXSHMEM_PTX) continue;
        __nanosleep(pause);
        if (round % 64 == 0 && pause < 256) pause *= 2;
    }
    // The emulation learns that a sleeper has gone on.
    if (!OXSHMEM_PTX) __nanosleep(0);
    return true;
}

struct AtLeast {
    const u64* word;
    u64 value;

    // Counters wrap.
    OXSHMEM_MEMBER bool operator()() const {
        return (i64)(words::load_acquire(word) - value) >= 0;
    }
};

OXSHMEM_OUTLINE bool until_at_least(const u64* word, u64 value) {
    AtLeast condition = {word, value};
    return until(condition);
}

}  // namespace spin
}  // namespace oxshmem
