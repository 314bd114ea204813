//! Prints the Rust functions that the exports call.

fn main(){ print!("{}", oxshmem_nvshmem_table::interface()); }
