//! Runs of programs on simulated machines, on threads, or on the processes of a job.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use clap::ValueEnum;
use oxshmem::testing::spmd_with;
use oxshmem::{Builder, FenceSite, World, registry};
use oxshmem_litmus::directed::{Machine, Search, search};
use oxshmem_litmus::free::{self, Runs};
use oxshmem_litmus::{MemoryModel, Outcome, Outcomes, Program, Report, machines, run::unfit};

use super::memory::{self, Memory};
use super::{Args, Refused, outcomes};

/// A platform for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Over {
    /// Simulated lanes and memory that are as weak as is permitted.
    #[value(alias = "weak(loopback)")]
    Weak,
    /// Simulated memory alone, with weak CPUs.
    Simulator,
    /// Real memory: threads of this process, or the processes of a job.
    Loopback,
    /// The transports of this job's PEs.
    #[value(skip)]
    Job,
}

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
pub fn choose(args: &Args) -> Result<Over, Refused> {
    let job = in_job();
    let over = match (args.transport, job) {
        (None, true) => Over::Job,
        (None, false) if args.memory == Memory::Cuda => Over::Loopback,
        (None, false) => Over::Weak,
        (Some(over), _) => over,
    };
    if job && over.is_simulated() {
        return Err(Refused(
            "a simulated machine's PEs are threads of one process; leave out oxshmem run. (To have \
             a job's lanes do the worst, set OXSHMEM_TRANSPORT='weak(loopback)' and give no \
             --transport.)"
                .into(),
        ));
    }
    if args.memory == Memory::Cuda && over.is_simulated() {
        return Err(Refused(
            "--memory cuda: simulated machines have no GPU memory; leave out --transport".into(),
        ));
    }
    if args.omit.is_some() && !over.is_simulated() {
        return Err(Refused(
            "--omit: on real memory nothing is left out; use --transport weak or simulator".into(),
        ));
    }
    Ok(over)
}

impl Over {
    /// Whether the scheduler decides the runs, so that they can be repeated.
    pub fn is_simulated(self) -> bool {
        matches!(self, Over::Weak | Over::Simulator)
    }

    /// The simulated machines that a program runs on, in order; none on real memory.
    pub fn machines(self, pes: usize, model: MemoryModel, omit: Option<FenceSite>) -> Vec<Machine> {
        let mut all = match self {
            Over::Weak => machines::weak(pes, model),
            Over::Simulator => vec![machines::mapped(pes, model)],
            Over::Loopback | Over::Job => Vec::new(),
        };
        if let Some(inserted) = omit {
            for machine in &mut all {
                machine.builder = machine.builder.clone().disable_fence(inserted);
            }
        }
        all
    }
}

/// Runs programs and reports each one's result in turn. Returns false if another PE of this job
/// reports.
pub fn run(
    args: &Args,
    over: Over,
    wanted: &[(&Program, MemoryModel)],
    tell: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    match over {
        _ if over.is_simulated() => simulated(args, over, wanted, tell).map(|()| true),
        _ if in_job() => processes(args, over, wanted, tell),
        _ => threads(args, wanted, tell).map(|()| true),
    }
}

fn in_job() -> bool {
    oxshmem_bootstrap::describes_job(&|name| std::env::var(name).ok())
}

/// A finished search, with the index of its program.
type Searched<'p> = (usize, anyhow::Result<(Outcomes<'p>, Report)>);

/// On a simulated machine only one thread runs at a time, so several programs run at once.
fn simulated<'p>(
    args: &Args,
    over: Over,
    wanted: &[(&'p Program, MemoryModel)],
    mut tell: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
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
                    let searched = look(args, over, program, model);
                    if send.send((place, searched)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut early = BTreeMap::new();
        let mut told = wanted.iter().enumerate();
        for (place, searched) in &receive {
            early.insert(place, searched);
            while let Some(entry) = early.first_entry() {
                let Some((_, (program, _))) = told.clone().next().filter(|t| t.0 == *entry.key())
                else {
                    break;
                };
                told.next();
                let done = entry
                    .remove()
                    .and_then(|(outcomes, report)| tell(&outcomes, program, Ran::Yes(report)));
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

fn look<'p>(
    args: &Args,
    over: Over,
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
    let machines = over.machines(program.pes(), model, args.omit);
    let report = search(&machines, program, &outcomes, how)?;
    Ok((outcomes, report))
}

fn threads(
    args: &Args,
    wanted: &[(&Program, MemoryModel)],
    mut tell: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for &(program, model) in wanted {
        let outcomes = outcomes(program, model)?;
        if let Some(why) = cannot_run(args, program, &outcomes) {
            tell(&outcomes, program, Ran::No(why))?;
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
            tell(&outcomes, program, Ran::Yes(report))?;
        }
    }
    Ok(())
}

/// Collective over the job's PEs, which have the same arguments.
fn processes(
    args: &Args,
    over: Over,
    wanted: &[(&Program, MemoryModel)],
    mut tell: impl FnMut(&Outcomes<'_>, &Program, Ran) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let mut builder = World::builder();
    if let Some(model) = args.model {
        builder = builder.model(MemoryModel::from(model).into());
    }
    if over == Over::Loopback {
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
            tell(&outcomes, program, ran)?;
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
