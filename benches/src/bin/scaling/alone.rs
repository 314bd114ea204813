//! One PE of a job of thousands: the cost of joining and the memory that it holds, independent of
//! the others.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use oxshmem_topo::Topology;

use crate::counted::Counted;
use crate::crowd::{self, Crowd};
use crate::memory::Footprint;
use crate::packed;
use crate::rows::{Alone, WIDTH};

const RUNS: usize = 5;
/// A host of eight GPUs and eight NICs.
const HOST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../topo/fixtures/eight-gpus-eight-nics.xml"
);

/// Joins a job of so many PEs. Must be called while there is only one thread.
pub fn measure(pes: usize) -> anyhow::Result<Alone> {
    let size = u32::try_from(pes)?;
    let text = std::fs::read_to_string(HOST).with_context(|| format!("cannot read {HOST}"))?;
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("OXSHMEM_TOPOLOGY", HOST) };
    let transports = crowd::transports(&Topology::from_xml(&text)?);
    let (mut times, mut allocated, mut given) = (Vec::new(), 0.0, Vec::new());
    for _ in 0..RUNS {
        let before = Footprint::now()?.allocated;
        let (counted, start) = (Counted::new(Crowd::of(size)), Instant::now());
        let world = crowd::join(Arc::clone(&counted) as _, &transports)?;
        times.push(start.elapsed().as_secs_f64());
        given = counted.gathered();
        allocated = Footprint::now()?.allocated - before;
        drop(world);
    }
    times.sort_by(f64::total_cmp);
    Ok(Alone {
        pes,
        hosts: pes / WIDTH,
        join_s: times.get(RUNS / 2).copied().unwrap_or_default(),
        allocated,
        exchanges: given.iter().map(Vec::len).collect(),
        packed: given.iter().map(|part| packed::bytes(part, pes)).sum(),
    })
}
