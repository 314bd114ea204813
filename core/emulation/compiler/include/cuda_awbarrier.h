#pragma once
#error "cuda_awbarrier.h is not part of the emulation (docs/cuda-emulation.md, limits)"
