// Order and completion. Both cover what the calling thread did, and what the program ordered before it: by a
// barrier of the group, or by a fence and an atomic at GPU scope or wider (G2). One thread may so complete a
// grid's work.
#pragma once

#include "rma.cuh"

namespace oxshmem {

// Puts, signals and atomics to each PE before it are seen there before those after it, nonblocking ones
// included (M17, G3). Stores through `ptr` count.
OXSHMEM_DEVICE void fence() {
    race::completes(race::FENCE);
    words::fence_all();
    if (ring::is_busy()) ring::post_order(ring::OP_FENCE);
}

// Everything before it is complete: visible at its target, and fetched values have arrived (M19).
OXSHMEM_DEVICE void quiet() {
    if (ring::is_busy()) ring::await_done(ring::post_order(ring::OP_QUIET));
    race::completes(race::QUIET);
    // No later load is performed before it.
    words::fence_sequential();
}

// Sources of everything before it may be changed.
OXSHMEM_DEVICE void flush() {
    ring::await_sources();
    race::completes(race::FLUSH);
}

}  // namespace oxshmem
