// Calls to the race detector for nonblocking calls (M37), in code that is built for it: `oxshmem cuda cc --check`.
#pragma once

#include "scope.cuh"

#ifdef OXSHMEM_RACES
extern "C" __device__ void softcuda_operand(const volatile void* at, size_t bytes, unsigned kind);
extern "C" __device__ void softcuda_moves_operands(unsigned moves);
extern "C" __device__ void softcuda_completes(unsigned by);
#endif

namespace oxshmem {
namespace race {

// In the order of `Completes` in core/emulation/driver/src/race/pending.rs.
enum Completes : u32 { FLUSH, FENCE, QUIET };
// As `Operand` there.
enum Operand : u32 { SOURCE = 1, DEST, SIGNALLED, FETCHED };

#ifdef OXSHMEM_RACES

// The bytes that a call reads and writes until a quiet; null for those that this GPU does not reach: the host moves all then.
template <class Scope>
OXSHMEM_DEVICE void begin(Scope scope, const void* from, Operand from_as, void* to, Operand to_as, u64 bytes) {
    const u32 by_copy = from && to ? 0 : 16;
    if (scope.rank() == 0) {
        if (from) softcuda_operand(from, bytes, from_as | by_copy);
        if (to) softcuda_operand(to, bytes, to_as | 8 | by_copy);
    }
    softcuda_moves_operands(1);
}
OXSHMEM_DEVICE void end() { softcuda_moves_operands(0); }
// The fence is the beginning of that of a quiet: what others have told this thread by an atomic before is complete, too (G2).
OXSHMEM_DEVICE void completes(Completes by) {
    if (by == QUIET) __threadfence_system();
    softcuda_completes(by);
}

#else

template <class Scope>
OXSHMEM_DEVICE void begin(Scope, const void*, Operand, void*, Operand, u64) {}
OXSHMEM_DEVICE void end() {}
OXSHMEM_DEVICE void completes(Completes) {}

#endif

}  // namespace race
}  // namespace oxshmem
