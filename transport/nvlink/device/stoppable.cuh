// A spin that the host can end.
#pragma once

// Returns when `condition()` is true, or when the host has set the word `stop`: then its value is
// stored in `status` (either may be null). `stop` lies in host memory, a long way off, and is looked
// at in one round of 16.
template <class Condition>
DEVICE void await(Condition condition, const u32* stop, u32* status) {
    u32 pause = 16;
    for (u32 round = 1; !condition(); ++round) {
        if (stop && round % 16 == 0) {
            const u32 reason = load_relaxed(stop);
            if (reason != 0) {
                // The awaited value may have come before the host gave up.
                if (!condition() && status) store_relaxed(status, reason);
                return;
            }
        }
        __nanosleep(pause);
        if (round % 64 == 0 && pause < 256) pause *= 2;
    }
}
