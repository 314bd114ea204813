//! Runs of programs on simulated machines, on threads, or on the processes of a job.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use oxshmem::testing::spmd_with;
use oxshmem::{Builder, World, registry};
use oxshmem_litmus::directed::{Search, search};
use oxshmem_litmus::free::{self, Runs};
use oxshmem_litmus::{MemoryModel, Outcome, Outcomes, Program, Report, run::unfit};

use super::args::Args;
use super::memory::{self, Memory};
use super::platform::Platform;
use super::programs::outcomes;
use super::refused::Refused;
use crate::job;

/// The result for one program.
pub enum Ran {
    /// It ran.
    Yes(Report),
    /// It cannot run here, for this reason.
    No(String),
}

/// Bytes of each thread's heap: the library's own words, and a program's few.
const HEAP: usize = 1 << 20;

/// Runs on each simulated machine, unless `--runs` gives a number.
const MOST_SEARCHED: u64 = 3000;
/// Runs on other platforms.
const MOST_FREE: u64 = 1000;

/// The refusal of a program that may wait for ever, where no deadlock is detected.
const ENDLESS: &str = "it may wait for ever; run it over weak or simulator";

/// Chooses the platform from the arguments and the environment.
pub fn choose(args: &Args) -> Result<Platform, Refused> {
    let job = job::is_described();
    let platform = match (args.transport, job) {
        (None, true) => Platform::Job,
        (None, false) if args.memory == Memory::Cuda => Platform::Loopback,
        (None, false) => Platform::Weak,
        (Some(platform), _) => platform,
    };
    if job && platform.is_simulated() {
        return Err(Refused(
            "a simulated machine's PEs are threads of one process; leave out oxshmem run. (To have \
             a job's lanes do the worst, set OXSHMEM_TRANSPORT='weak(loopback)' and give no \
             --transport.)"
                .into(),
        ));
    }
    if args.memory == Memory::Cuda && platform.is_simulated() {
        return Err(Refused(
            "--memory cuda: simulated machines have no GPU memory; leave out --transport".into(),
        ));
    }
    if args.omit.is_some() && !platform.is_simulated() {
        return Err(Refused(
            "--omit: on real memory nothing is left out; use --transport weak or simulator".into(),
        ));
    }
    Ok(platform)
}

/// Runs programs and reports each one's result in turn. Returns false if another PE of this job
/// reports.
pub fn run(
    args: &Args,
    platform: Platform,
    wanted: &[(&Program, MemoryModel)],
    show: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    match platform {
        _ if platform.is_simulated() => simulated(args, platform, wanted, show).map(|()| true),
        _ if job::is_described() => processes(args, platform, wanted, show),
        _ => threads(args, wanted, show).map(|()| true),
    }
}

/// A finished search, with the index of its program.
type Searched<'p> = (usize, anyhow::Result<(Outcomes<'p>, Report)>);

/// On a simulated machine only one thread runs at a time, so several programs run at once.
fn simulated<'p>(
    args: &Args,
    platform: Platform,
    wanted: &[(&'p Program, MemoryModel)],
    mut show: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel::<Searched<'p>>();
    std::thread::scope(|threads| {
        for _ in 0..workers.min(wanted.len()) {
            let (next, send) = (&next, send.clone());
            threads.spawn(move || {
                loop {
                    // Relaxed: only the number counts.
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(program, model)) = wanted.get(place) else {
                        return;
                    };
                    let searched = search_program(args, platform, program, model);
                    if send.send((place, searched)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut early = BTreeMap::new();
        let mut shown = wanted.iter().enumerate();
        for (place, searched) in &receive {
            early.insert(place, searched);
            while let Some(entry) = early.first_entry() {
                let Some((_, (program, _))) = shown.clone().next().filter(|t| t.0 == *entry.key())
                else {
                    break;
                };
                shown.next();
                let done = entry
                    .remove()
                    .and_then(|(outcomes, report)| show(&outcomes, program, Ran::Yes(report)));
                if done.is_err() {
                    // Keeps the other threads from starting another program.
                    next.fetch_add(wanted.len(), Ordering::Relaxed);
                    return done;
                }
            }
        }
        Ok(())
    })
}

fn search_program<'p>(
    args: &Args,
    platform: Platform,
    program: &'p Program,
    model: MemoryModel,
) -> anyhow::Result<(Outcomes<'p>, Report)> {
    let outcomes = outcomes(program, model)?;
    let most = args.runs.unwrap_or(MOST_SEARCHED);
    let how = Search {
        seed: args.seed,
        least: most.div_ceil(10),
        most,
    };
    let machines = platform.machines(program.pes(), model, args.omit);
    let report = search(&machines, program, &outcomes, how)?;
    Ok((outcomes, report))
}

fn threads(
    args: &Args,
    wanted: &[(&Program, MemoryModel)],
    mut show: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for &(program, model) in wanted {
        let outcomes = outcomes(program, model)?;
        if let Some(why) = cannot_run(args, program, &outcomes) {
            show(&outcomes, program, Ran::No(why))?;
            continue;
        }
        let builder = World::builder().model(model.into()).heap_limit(HEAP);
        let builder = match args.memory {
            Memory::Host => loopback(builder),
            Memory::Cuda => memory::with_gpu(loopback(builder))?,
        };
        let reports = spmd_with(builder, program.pes(), |world| {
            free::run(world, program, &outcomes, runs(args))
        })?;
        for report in reports.into_iter().flatten() {
            show(&outcomes, program, Ran::Yes(report))?;
        }
    }
    Ok(())
}

/// Collective over the job's PEs, which have the same arguments.
fn processes(
    args: &Args,
    platform: Platform,
    wanted: &[(&Program, MemoryModel)],
    mut show: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let mut builder = World::builder();
    if let Some(model) = args.model {
        builder = builder.model(MemoryModel::from(model).into());
    }
    if platform == Platform::Loopback {
        builder = loopback(builder);
    }
    let world = builder.join()?;
    if args.memory == Memory::Cuda && world.gpu_heap_limit() == 0 {
        world.finalize()?;
        return Err(memory::none().into());
    }
    let shows = world.my_pe() == 0;
    // A process joins its job once, and so with one memory model.
    for &(program, model) in wanted.iter().filter(|(_, m)| world.model() == (*m).into()) {
        let outcomes = outcomes(program, model)?;
        let (needs, has) = (program.pes(), world.n_pes());
        let few = || (needs > has).then(|| format!("it needs {needs} PEs, this job has {has}"));
        let refusal = cannot_run(args, program, &outcomes).or_else(few);
        let ran = match refusal {
            Some(why) => Some(Ran::No(why)),
            None => free::run(&world, program, &outcomes, runs(args))?.map(Ran::Yes),
        };
        if let Some(ran) = ran.filter(|_| shows) {
            show(&outcomes, program, ran)?;
        }
    }
    world.finalize()?;
    Ok(shows)
}

fn runs(args: &Args) -> Runs {
    Runs {
        count: args.runs.unwrap_or(MOST_FREE),
        seed: args.seed,
        memory: args.memory.into(),
    }
}

/// The reason why a program cannot run freely with its words in this memory.
fn cannot_run(args: &Args, program: &Program, outcomes: &Outcomes<'_>) -> Option<String> {
    if outcomes.allows(&Outcome::Deadlock) {
        return Some(ENDLESS.into());
    }
    unfit(program, args.memory.into())
}

fn loopback(builder: Builder) -> Builder {
    let mut transports = registry::built_in();
    transports.retain(|transport| transport.name() == "loopback");
    builder.transports(transports)
}
