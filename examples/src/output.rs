//! Files of results, which PE 0 writes at the end.

use std::path::Path;

use oxshmem::World;

/// Fails on PE 0 if it cannot write this file, before the work is done in vain.
pub fn check(world: &World, file: Option<&Path>) -> anyhow::Result<()> {
    match file.filter(|_| world.my_pe() == 0) {
        Some(file) => Ok(oxshmem_figures::check_writable(file)?),
        None => Ok(()),
    }
}
