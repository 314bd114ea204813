// The kernels behind oxshmem's host-initiated operations on GPU memory, each launched on a stream;
// those that reduce are in reduce.cu.
//
// README.md lists the entries with their launch shapes. Two builds are made of this source: PTX for
// any GPU from compute capability 7.0 (ci/ptx), and host C++ for the software driver
// (ci/softcuda-kernels). It includes nothing from outside this folder, so that NVRTC alone builds it.

#include "kernel.cuh"

#include "atomic.cuh"
#include "barrier.cuh"
#include "put.cuh"
#include "wait.cuh"
