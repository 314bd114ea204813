// The functions of libnvshmem_device.bc: NVSHMEM's names for kernels, and those of whole blocks. ci/device-bitcode compiles it.
#include "device/oxshmem_calls.cuh"
#include "device_host/nvshmem_tensor.h"

// Each function of the headers behind this is there by its plain name, whether something calls it or not.
#undef NVSHMEMI_DEVICE
#undef NVSHMEMI_BOTH
#undef NVSHMEMI_LAZY
#define NVSHMEMI_DEVICE extern "C" __device__
#define NVSHMEMI_BOTH extern "C" __device__
#define NVSHMEMI_LAZY
#include "nvshmem.h"

#include "block.cuh"
