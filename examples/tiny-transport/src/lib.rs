//! A tiny transport plugged into oxshmem from outside.
