//! Microbenchmarks of oxshmem and their peers' counterparts.
