//! Programs a user of oxshmem would copy from.
