#pragma once
#error "cuda_pipeline.h is not part of the emulation (docs/cuda-emulation.md, limits)"
