#pragma once
#error "cuda_fp8.h is not part of the emulation (docs/cuda-emulation.md, limits)"
