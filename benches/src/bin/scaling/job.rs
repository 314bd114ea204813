//! Whole jobs on this host.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use oxshmem::{Builder, World, registry};
use oxshmem_bootstrap::{Bootstrap, DEFAULT_DEADLINE, InProcess};

use crate::collective::Timer;
use crate::counted::Counted;
use crate::memory::Footprint;
use crate::rows::Job;

/// A PE's heap, in bytes.
const HEAP: usize = 64 << 20;
/// Runs of an empty program.
const RUNS: usize = 5;

/// A job of PEs that are threads of this process.
pub fn threads(pes: usize) -> anyhow::Result<Job> {
    let count = u32::try_from(pes)?;
    let (before, start) = (Footprint::now()?, Instant::now());
    let group = InProcess::group(count);
    // Threads that share one transport map each other's heaps directly.
    let transports = registry::built_in();
    let rows = std::thread::scope(|scope| {
        let spawned: Vec<_> = group
            .into_iter()
            .map(|bootstrap| {
                let builder = World::builder().transports(transports.clone());
                scope.spawn(move || {
                    let leads = bootstrap.rank() == 0;
                    let own = |now: Footprint| {
                        if leads {
                            now.since(before, pes)
                        } else {
                            Footprint::default()
                        }
                    };
                    as_pe(builder, bootstrap, start, &own)
                })
            })
            .collect();
        let rows = spawned.into_iter().map(|thread| match thread.join() {
            Ok(row) => row,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        rows.collect::<anyhow::Result<Vec<_>>>()
    })?;
    rows.into_iter().flatten().next().context("no PE 0")
}

/// Joins a job of processes as one of its PEs. PE 0 has the row.
pub fn process(pes: usize) -> anyhow::Result<Option<Job>> {
    oxshmem::launch::self_with(pes)?;
    let (before, start) = (Footprint::now()?, Instant::now());
    let bootstrap = oxshmem_bootstrap::join(&|name| std::env::var(name).ok(), DEFAULT_DEADLINE)?;
    let own = |now: Footprint| now.since(before, 1).share(pes);
    as_pe(World::builder(), bootstrap, start, &own)
}

/// A program that does nothing.
pub fn empty(pes: usize) -> anyhow::Result<()> {
    oxshmem::launch::self_with(pes)?;
    Ok(World::init()?.finalize()?)
}

/// The duration of such a program, in seconds.
pub fn time_empty(run: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times.get(RUNS / 2).copied().context("no runs")
}

/// Measures on one PE. `own` is this PE's share of the process's footprint.
fn as_pe(
    builder: Builder,
    bootstrap: Arc<dyn Bootstrap>,
    start: Instant,
    own: &dyn Fn(Footprint) -> Footprint,
) -> anyhow::Result<Option<Job>> {
    let counted = Counted::new(bootstrap);
    let world = builder
        .heap_limit(HEAP)
        .bootstrap(Arc::clone(&counted) as _)
        .join()?;
    world.barrier_all()?;
    let start_s = start.elapsed().as_secs_f64();
    let exchanges = counted.gathered().iter().map(Vec::len).collect();
    let first = world.alloc_zeroed::<u64>(1)?;
    let internals = first.offset();
    let own = own(Footprint::now()?).to_array();
    // No PE goes on before all have measured.
    world.barrier_all()?;
    let all = world.alloc::<f64>(own.len())?;
    world.write(all, &own)?;
    world.sum_reduce(all, all)?;
    let mut each = own;
    world.read(&mut each, all)?;
    world.free(all)?;

    let timer = Timer::new(&world)?;
    let barrier = timer.measure(&|| world.barrier_all())?;
    let reduce = timer.measure(&|| world.sum_reduce(first, first))?;
    timer.free()?;
    world.free(first)?;
    let row = Job {
        pes: world.n_pes(),
        start_s,
        each: Footprint::from_array(each),
        internals,
        barrier,
        reduce,
        exchanges,
    };
    let leads = world.my_pe() == 0;
    world.finalize()?;
    Ok(leads.then_some(row))
}
