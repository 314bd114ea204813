//! `oxshmem perf`: measurements of operations between PEs.

mod args;
mod batches;
mod compare;
mod csv;
mod fixture;
mod gate;
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
mod report;
mod row;
mod sizes;
mod statistics;
mod table;
mod task;
mod team;
mod threads;
mod transport;
mod unsupported;
mod validate;
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
use fixture::{Fixture, Footprint};
use leader::Leader;
use ops::limit;
use pair::Pair;
use parameters::{Parameters, PeReport};
use row::Figures;
use task::Task;
use unsupported::Unsupported;

pub use args::Args;

/// The exit status, as of diff(1), if arguments are not understood or cannot be satisfied.
const UNSUPPORTED: u8 = 2;

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    match measured(args) {
        Err(error) if error.is::<Unsupported>() => {
            output::complain("perf", &output::with_causes(&error));
            Ok(UNSUPPORTED.into())
        }
        done => done,
    }
}

fn measured(args: &Args) -> anyhow::Result<ExitCode> {
    args.check().map_err(Unsupported)?;
    let transports = transport::Given::named(args.transport.as_deref()).map_err(Unsupported)?;
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
            let text = output::with_causes(&error);
            output::complain("perf", &format!("PE {}: {text}", world.my_pe()));
            if error.is::<Unsupported>() {
                Ok(UNSUPPORTED.into())
            } else {
                Ok(ExitCode::FAILURE)
            }
        }
    }
}

/// The planned rows, or why the options make no sense.
fn check(args: &Args, pes: usize) -> Result<Vec<Task>, Unsupported> {
    args.pair.check(pes).map_err(Unsupported)?;
    let plan = plan::plan(args, pes).map_err(Unsupported)?;
    if args.plot.is_some() {
        plot::check(&plan).map_err(Unsupported)?;
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
    let reports = gather_reports(world, args, pair, None)?;
    let bind = args.launcher.and(Some(args.bind()));
    let parameters = || Parameters::of(world, bind, None, pair, &reports);
    let rounds = usize::from(args.rounds);
    let mut out = match world.my_pe() {
        0 => Some(leader::Out::new(args, rounds)?),
        _ => None,
    };
    let mut shown = |event: versus::Event<'_>| match (event, &mut out) {
        (versus::Event::Line(text), Some(out)) => out.line(text),
        (versus::Event::Round(done), Some(out)) => {
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
    let footprint = |task: &Task| {
        let footprint = task.op.footprint(task.bytes, world.n_pes());
        if args.validate {
            footprint.of_slots()
        } else {
            footprint
        }
    };
    let footprint = plan
        .iter()
        .map(footprint)
        .fold(Footprint::default(), Footprint::and);
    let pair = args.pair.pair(world.hosts());
    let team = args.team.form(world)?;
    let reports = gather_reports(world, args, pair, team.as_ref())?;
    let checked = if world.my_pe() == pair.from {
        check_job(args, world, team.as_ref()).map_err(|error| error.to_string())
    } else {
        Ok(())
    };
    let refused = gather(world, &checked.err().unwrap_or_default())?.concat();
    let bind = args.launcher.and(Some(args.bind()));
    let begun = (world.my_pe() == 0).then(|| {
        ensure!(refused.is_empty(), Unsupported(anyhow!(refused)));
        let parameters = Parameters::of(world, bind, Some(args), pair, &reports);
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
    let fixture = Fixture::on(kind, world, team.as_ref(), pair, footprint, threads);
    let mut fixture = fixture.with_context(|| {
        format!(
            "operations of the greatest size need {} of each PE's heap (see --sizes, and \
             OXSHMEM_SYMMETRIC_SIZE)",
            Rounded(
                footprint
                    .block
                    .saturating_mul(threads)
                    .saturating_add(footprint.source)
            )
        )
    })?;
    fixture.folds = (args.fold, args.number);
    fixture.session = args.session;
    let leader = measure_all(&fixture, &plan, args, leader)?;
    fixture.free()?;
    args.team.end(team)?;
    Ok(leader.map(|leader| Box::new(|args: &Args| leader.finish(args)) as Finish))
}

/// Each PE's report of itself, at PE 0. Collective.
fn gather_reports(
    world: &World,
    args: &Args,
    pair: Pair,
    team: Option<&Team<'_>>,
) -> anyhow::Result<Vec<PeReport>> {
    let mine = PeReport::of(world, args.memory, pair.to, team)?;
    let texts = gather(world, &serde_json::to_string(&mine)?)?;
    let read = |text: &String| serde_json::from_str(text).context("a PE's circumstances");
    texts.iter().map(read).collect()
}

/// Sends the figures from the measuring PE to PE 0, which shows them. Collective.
fn send_figures(
    fixture: &Fixture<'_>,
    figures: Option<Figures>,
) -> anyhow::Result<Option<Figures>> {
    if fixture.pair.from == 0 {
        return Ok(figures);
    }
    let own = figures.map(|figures| serde_json::to_string(&figures));
    let text = gather(fixture.world, &own.transpose()?.unwrap_or_default())?.concat();
    let read = || serde_json::from_str(&text).context("the figures of the PE that measures");
    (fixture.world.my_pe() == 0).then(read).transpose()
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
    fixture: &Fixture<'_>,
    plan: &[Task],
    args: &Args,
    mut leader: Option<Leader>,
) -> anyhow::Result<Option<Leader>> {
    let clock = measure::clock();
    for (done, task) in plan.iter().enumerate() {
        // Unless it is asked for, a limit that this job cannot measure is left out.
        let asked = args.ops.iter().any(|op| op.name == task.op.name);
        if task.op.name == limit::BARE_PING_PONG && !asked && !limit::is_mapped(fixture)? {
            continue;
        }
        if let Some(leader) = &mut leader {
            leader.begin(done, table::label(task));
        }
        let found = measure::measure(fixture, *task, args.effort(), clock)
            .with_context(|| table::label(task))?;
        let figures = found.map(|found| Figures::of(task, &found));
        let figures = send_figures(fixture, figures)?;
        if let (Some(leader), Some(figures)) = (&mut leader, figures) {
            leader.row(task, &figures)?;
        }
    }
    Ok(leader)
}
