#pragma once
#error "mma.h is not part of the emulation (docs/cuda-emulation.md, limits)"
