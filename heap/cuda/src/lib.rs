//! The one door to the CUDA driver: devices, GPU heap segments, streams, kernels.
