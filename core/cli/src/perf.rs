//! `oxshmem perf`: measurements of operations between PEs.

mod args;
mod batches;
mod compare;
mod csv;
mod gate;
mod ground;
mod launch;
mod leader;
mod measure;
mod metric;
mod number;
mod op;
mod ops;
mod overlap;
mod pair;
mod parameters;
mod plan;
mod plot;
mod proof;
mod report;
mod row;
mod sizes;
mod statistics;
mod table;
mod team;
mod threads;
mod transport;
mod unable;
#[cfg(feature = "verbs")]
mod versus;

use std::process::ExitCode;

use anyhow::{Context, anyhow, ensure};
use oxshmem::{Team, World};
use oxshmem_figures::units::Rounded;

use crate::gather::gather;
use crate::litmus::memory::{self, Memory};
use crate::output;
use compare::Runs;
use ground::{Ground, Room};
use leader::Leader;
use measure::Task;
use ops::limit;
use pair::Pair;
use parameters::{Parameters, Told};
use row::Figures;
use unable::Unable;

pub use args::Args;
pub use parameters::allowed_cpus;

/// The exit status, as of diff(1), if arguments are not understood or cannot be satisfied.
const UNABLE: u8 = 2;

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    match measured(args) {
        Err(error) if error.is::<Unable>() => {
            output::complain("perf", &output::told(&error));
            Ok(UNABLE.into())
        }
        done => done,
    }
}

fn measured(args: &Args) -> anyhow::Result<ExitCode> {
    args.check().map_err(Unable)?;
    let transports = transport::Given::named(args.transport.as_deref()).map_err(Unable)?;
    if !oxshmem_bootstrap::describes_job(&|name| std::env::var(name).ok()) {
        // Impossible measurements and unwritable files are better refused once, here.
        let plan = check(args, args.pes as usize)?;
        Runs::read(args, &plan)?;
        leader::check_writable(args)?;
        return launch::launch(args.pes, args.bind());
    }
    let world = transports.join()?;
    match as_pe(args, &world, &transports) {
        Ok(finish) => {
            world.finalize()?;
            finish.map_or(Ok(ExitCode::SUCCESS), |finish| finish(args))
        }
        Err(error) if error.is::<output::Closed>() => Err(error),
        Err(error) => {
            // Printed before the others lose this PE and the job ends.
            let told = output::told(&error);
            output::complain("perf", &format!("PE {}: {told}", world.my_pe()));
            match error.is::<Unable>() {
                true => Ok(UNABLE.into()),
                false => Ok(ExitCode::FAILURE),
            }
        }
    }
}

/// The planned rows, or why the options make no sense.
fn check(args: &Args, pes: usize) -> Result<Vec<Task>, Unable> {
    args.pair.check(pes).map_err(Unable)?;
    let plan = plan::plan(args, pes).map_err(Unable)?;
    if args.plot.is_some() {
        plot::check(&plan).map_err(Unable)?;
    }
    Ok(plan)
}

/// Checks that this job can do what is asked for. Called on the measuring PE.
fn check_job(args: &Args, world: &World, team: Option<&Team<'_>>) -> anyhow::Result<()> {
    args.team.check(world, team)?;
    ensure!(
        args.memory == Memory::Host || world.gpu_heap_limit() > 0,
        memory::NONE
    );
    Ok(())
}

/// PE 0's work after the job has ended well.
type Finish = Box<dyn FnOnce(&Args) -> anyhow::Result<ExitCode>>;

fn as_pe(args: &Args, world: &World, given: &transport::Given) -> anyhow::Result<Option<Finish>> {
    #[cfg(feature = "verbs")]
    if let Some(verbs) = given.verbs()
        && args.beside_perftest()
    {
        return against_perftest(args, world, verbs);
    }
    let _ = given;
    rows(args, world)
}

#[cfg(feature = "verbs")]
fn against_perftest(
    args: &Args,
    world: &World,
    verbs: &std::sync::Arc<oxshmem_verbs::Verbs>,
) -> anyhow::Result<Option<Finish>> {
    let to = usize::from(world.n_pes() > 1);
    let pair = Pair { from: 0, to };
    let told = tell(world, args, pair, None)?;
    let bind = args.launcher.and(Some(args.bind()));
    let parameters = || Parameters::of(world, bind, None, pair, &told);
    let rounds = usize::from(args.rounds);
    let mut out = match world.my_pe() {
        0 => Some(leader::Out::new(args, rounds)?),
        _ => None,
    };
    let mut shown = |told: versus::Told<'_>| match (told, &mut out) {
        (versus::Told::Line(text), Some(out)) => out.line(text),
        (versus::Told::Round(done), Some(out)) => {
            out.progress(done, "rounds".into());
            Ok(())
        }
        (_, None) => Ok(()),
    };
    let results = versus::compare(world, verbs, rounds, parameters, &mut shown)?;
    let finish = |(mut out, results): (leader::Out, versus::Results)| {
        Box::new(move |args: &Args| {
            out.done();
            out.json(args, &results)?;
            Ok(ExitCode::SUCCESS)
        }) as Finish
    };
    Ok(out.zip(results).map(finish))
}

fn rows(args: &Args, world: &World) -> anyhow::Result<Option<Finish>> {
    let plan = check(args, world.n_pes())?;
    let room = |task: &Task| {
        let room = task.op.room(task.bytes, world.n_pes());
        if args.validate { room.of_slots() } else { room }
    };
    let room = plan.iter().map(room).fold(Room::default(), Room::and);
    let pair = args.pair.pair(world.hosts());
    let team = args.team.form(world)?;
    let told = tell(world, args, pair, team.as_ref())?;
    let checked = match world.my_pe() == pair.from {
        true => check_job(args, world, team.as_ref()).map_err(|error| error.to_string()),
        false => Ok(()),
    };
    let refused = gather(world, &checked.err().unwrap_or_default())?.concat();
    let bind = args.launcher.and(Some(args.bind()));
    let begun = (world.my_pe() == 0).then(|| {
        ensure!(refused.is_empty(), Unable(anyhow!(refused)));
        let parameters = Parameters::of(world, bind, Some(args), pair, &told);
        Leader::new(args, parameters, &plan)
    });
    let leader = match begun {
        // Only PE 0 has the files: the others may be on other hosts.
        Some(Err(refused)) => {
            agree(world, false)?;
            args.team.end(team)?;
            return Ok(Some(Box::new(|_| Err(refused))));
        }
        Some(Ok(leader)) => Some(leader),
        None => None,
    };
    if !agree(world, true)? {
        args.team.end(team)?;
        return Ok(None);
    }
    let threads = args.threads as usize;
    let kind = args.memory.into();
    let ground = Ground::on(kind, world, team.as_ref(), pair, room, threads);
    let mut ground = ground.with_context(|| {
        format!(
            "operations of the greatest size need {} of each PE's heap (see --sizes, and \
             OXSHMEM_SYMMETRIC_SIZE)",
            Rounded(
                room.block
                    .saturating_mul(threads)
                    .saturating_add(room.source)
            )
        )
    })?;
    ground.folds = (args.fold, args.number);
    ground.session = args.session;
    let leader = measure_all(&ground, &plan, args, leader)?;
    ground.free()?;
    args.team.end(team)?;
    Ok(leader.map(|leader| Box::new(|args: &Args| leader.finish(args)) as Finish))
}

/// Each PE's report of itself, at PE 0. Collective.
fn tell(
    world: &World,
    args: &Args,
    pair: Pair,
    team: Option<&Team<'_>>,
) -> anyhow::Result<Vec<Told>> {
    let mine = Told::of(world, args.memory, pair.to, team)?;
    let told = gather(world, &serde_json::to_string(&mine)?)?;
    let read = |told: &String| serde_json::from_str(told).context("a PE's circumstances");
    told.iter().map(read).collect()
}

/// Sends the figures from the measuring PE to PE 0, which shows them. Collective.
fn bring(ground: &Ground<'_>, figures: Option<Figures>) -> anyhow::Result<Option<Figures>> {
    if ground.pair.from == 0 {
        return Ok(figures);
    }
    let text = figures.map(|figures| serde_json::to_string(&figures));
    let told = gather(ground.world, &text.transpose()?.unwrap_or_default())?.concat();
    let read = || serde_json::from_str(&told).context("the figures of the PE that measures");
    (ground.world.my_pe() == 0).then(read).transpose()
}

/// Whether all PEs go on; PE 0 decides. Collective.
fn agree(world: &World, goes_on: bool) -> oxshmem::Result<bool> {
    let word = world.alloc_zeroed::<u64>(1)?;
    world.write(word, &[u64::from(goes_on)])?;
    world.broadcast(word, word, 0)?;
    let goes_on = world.g(word, world.my_pe())? != 0;
    world.free(word)?;
    Ok(goes_on)
}

fn measure_all(
    ground: &Ground<'_>,
    plan: &[Task],
    args: &Args,
    mut leader: Option<Leader>,
) -> anyhow::Result<Option<Leader>> {
    let clock = measure::clock();
    for (done, task) in plan.iter().enumerate() {
        // Unless it is asked for, a limit that this job cannot measure is left out.
        let asked = args.ops.iter().any(|op| op.name == task.op.name);
        if task.op.name == limit::BARE_PING_PONG && !asked && !limit::is_mapped(ground)? {
            continue;
        }
        if let Some(leader) = &mut leader {
            leader.begin(done, table::label(task));
        }
        let found = measure::measure(ground, *task, args.effort(), clock)
            .with_context(|| table::label(task))?;
        let figures = found.map(|found| Figures::of(task, &found));
        let figures = bring(ground, figures)?;
        if let (Some(leader), Some(figures)) = (&mut leader, figures) {
            leader.row(task, &figures)?;
        }
    }
    Ok(leader)
}
