// Lanes of a warp that run a place of the code together, as chance has it. They may do once what each would do alone.
#pragma once

#include "scope.cuh"

namespace oxshmem {

// The lanes that came to `Lanes::now()` at once. All of them come to each call of their group: no branch may lead one of them past it.
struct Lanes {
    u32 mask;
    u32 rank;   // lanes of the group before this one

    OXSHMEM_DEVICE Lanes now() {
        const u32 mask = __activemask();
        // Behind all that each of them did or saw comes what the first one does for all.
        __syncwarp(mask);
        return Lanes{mask, (u32)__popc(mask & before())};
    }
    OXSHMEM_MEMBER u32 count() const { return (u32)__popc(mask); }
    // The first lane's value.
    OXSHMEM_MEMBER u64 of_first(u64 value) const { return __shfl_sync(mask, value, __ffs((int)mask) - 1); }
    OXSHMEM_MEMBER bool all_say(bool yes) const { return __all_sync(mask, yes) != 0; }
    // Orders memory between them. The exchanges above do not.
    OXSHMEM_MEMBER void sync() const { __syncwarp(mask); }

    // A bit for each lane of the warp before this one.
#if OXSHMEM_PTX
    OXSHMEM_DEVICE u32 before() {
        u32 lanes;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes));
        return lanes;
    }
#else
    OXSHMEM_DEVICE u32 before() { return (1u << thread_in_block() % 32) - 1; }
#endif
};

}  // namespace oxshmem
