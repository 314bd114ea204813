//! Symmetric shared memory (SHMEM) for CPU and GPU clusters.
