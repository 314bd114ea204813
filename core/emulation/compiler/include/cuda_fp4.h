#pragma once
#error "cuda_fp4.h is not part of the emulation (docs/cuda-emulation.md, limits)"
