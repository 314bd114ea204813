#pragma once
#error "cuda_awbarrier_primitives.h is not part of the emulation (docs/cuda-emulation.md, limits)"
