//! What the machine looks like: NUMA nodes, cores, caches and the devices near them.
