#pragma once
#error "cuda_fp6.h is not part of the emulation (docs/cuda-emulation.md, limits)"
