// The host's kernel for its GPU's inbox. serve.ptx is made of this by ci/ptx.

// The names in the PTX must not depend on the folder.
#define OXSHMEM_OUTLINE static __device__ __forceinline__
#include "../header/inbox.cuh"

extern "C" __global__ void oxshmem_serve(oxshmem::Inbox* inbox) { oxshmem::inbox::serve(inbox); }
