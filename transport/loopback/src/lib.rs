//! The loopback transport: PEs of one host, by load and store into mapped memory.
