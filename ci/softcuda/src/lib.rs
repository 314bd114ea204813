//! A software CUDA driver: the driver calls that oxshmem makes, over shared host memory.
