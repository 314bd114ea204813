//! The oxshmem command.
