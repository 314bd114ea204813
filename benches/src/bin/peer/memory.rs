//! The resident memory of a PE.

use anyhow::Context;
use oxshmem::World;

pub fn run(world: &World) -> anyhow::Result<()> {
    world.barrier_all()?;
    let text = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next().map(String::from)
    };
    let pss = kib("Pss:").context("smaps_rollup tells no Pss")?;
    let rss = kib("Rss:").context("smaps_rollup tells no Rss")?;
    println!("memory {pss} {rss}");
    world.barrier_all()?;
    Ok(())
}
