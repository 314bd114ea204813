#pragma once
#error "cuda_pipeline_primitives.h is not part of the emulation (docs/cuda-emulation.md, limits)"
