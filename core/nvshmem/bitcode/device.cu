// The functions of libnvshmem_device.bc: NVSHMEM's names for kernels, and those of whole blocks. ci/device-bitcode compiles it.
#include "block.cuh"
