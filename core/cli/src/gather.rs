//! A gather of every PE's text at PE 0, over the symmetric heap.

use oxshmem::{Result, World};

/// Returns every PE's `mine` in order on PE 0, and nothing elsewhere. Collective.
pub fn gather(world: &World, mine: &str) -> Result<Vec<String>> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    // Each PE sets its own entry to its length; the sum is the table of all lengths.
    let lengths = world.alloc_zeroed::<u64>(pes)?;
    world.write(lengths.at(me)?, &[mine.len() as u64])?;
    world.sum_reduce(lengths, lengths)?;
    let mut table = vec![0; pes];
    world.read(&mut table, lengths)?;
    world.free(lengths)?;

    let ends: Vec<usize> = table
        .iter()
        .scan(0, |end, &length| {
            *end += length as usize;
            Some(*end)
        })
        .collect();
    let starts: Vec<usize> = [0].into_iter().chain(ends.iter().copied()).collect();
    let texts = world.alloc::<u8>(ends.last().copied().unwrap_or(0).max(1))?;
    if let Some(&start) = starts.get(me) {
        world.put(texts.range(start..)?, mine.as_bytes(), 0)?;
    }
    world.barrier_all()?;
    let mut gathered = Vec::new();
    if me == 0 {
        for (&start, &end) in starts.iter().zip(&ends) {
            let mut bytes = vec![0; end - start];
            world.read(&mut bytes, texts.range(start..end)?)?;
            gathered.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    world.free(texts)?;
    Ok(gathered)
}
