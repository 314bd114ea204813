//! `oxshmem perf`.

mod case;
mod launch;
mod leader;
mod measure;
mod op;
mod report;
mod sizes;
mod table;
mod transport;
#[cfg(feature = "verbs")]
mod versus;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use oxshmem::World;
use oxshmem_topo::Policy;

use crate::gather::gather;
use crate::{output, run};
use leader::Leader;
use measure::Effort;
use op::Op;
use sizes::Sizes;

pub use table::{Rounded, allowed_cpus};

/// Measure put, get, atomics, waits and barriers between PEs.
///
/// PE 0 measures, towards PE 1 (towards itself, if it is alone). It starts the PEs itself, unless
/// it is in a job already. Each row repeats its operation in batches long enough that reading the
/// clock does not matter: min, median and p99 are over batches, for one operation. Each row's data
/// is checked.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Number of PEs to start. In a job, its PEs are used and this has no effect.
    #[arg(short = 'n', long, value_name = "N", default_value = "2", value_parser = run::pes)]
    pes: u32,
    /// What each PE that it starts is bound to: none, core or numa.
    #[arg(long, value_name = "POLICY", default_value = "core", value_parser = run::policy)]
    bind: Policy,
    /// Fewer sizes, and less time for each row.
    #[arg(long)]
    quick: bool,
    /// Write parameters and rows as JSON to a file; - is stdout, in place of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Sizes of put, get and put-signal: each four times the one before. K, M and G are powers of
    /// 1024. [default: 8..8M, or 8..128K with --quick]
    #[arg(long, value_name = "A..B")]
    sizes: Option<Sizes>,
    /// Measure over this transport alone, such as loopback or verbs. PEs of one host take it, too:
    /// verbs then goes through the host's own NIC.
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Rounds of a comparison with perftest: `--transport verbs` without OPS.
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// What to measure. [default: all; with --transport verbs what perftest measures, too, beside it]
    #[arg(value_enum, value_name = "OPS")]
    ops: Vec<Op>,
    /// The process that started the PEs for this, on whose terminal the progress bar is drawn.
    #[arg(long, hide = true, value_name = "PID")]
    launcher: Option<u32>,
}

const EXAMPLES: &str = "\
What is measured:
  put         back to back; a batch ends with a quiet
  get         back to back
  p, g        one value, likewise
  fetch-add   a fetching atomic
  quiet       with nothing to complete
  p-quiet     p and quiet
  ping-pong   p, and wait_until at the other end: half of a round trip
  put-signal  put_signal, and signal_wait_until at the other end: half of a round trip
  barrier     barrier_all of all PEs

With --transport verbs and no OPS, oxshmem and perftest (ib_write_lat and its like, which must be
installed) are measured by turns, between the same two hosts and devices: the latency of put, get
and fetch-add, the bandwidth and rate of puts, and what an operation costs in system calls (by
strace), work requests, doorbells and completions. The exit status tells whether it was measured,
not how it came out.

Examples:
  oxshmem perf                            everything, 2 PEs on a core each
  oxshmem perf --quick put get            two operations, soon done
  oxshmem perf --pes 8 barrier            a barrier of 8 PEs
  oxshmem perf --sizes 1K..64M put
  oxshmem perf --json result.json
  oxshmem perf --transport verbs          against perftest, through this host's NIC
  oxshmem run --hosts a:1,b:1 oxshmem perf --transport verbs  between two hosts
  oxshmem run -n 2 --bind numa oxshmem perf  in a job started otherwise";

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let transports = transport::Given::named(args.transport.as_deref())?;
    if !oxshmem_bootstrap::describes_job(&|name| std::env::var(name).ok()) {
        // What cannot be measured or written is better refused once, here.
        plan(args, args.pes as usize)?;
        leader::check_writable(args)?;
        return launch::launch(args.pes, args.bind);
    }
    let world = transports.join()?;
    match as_pe(args, &world, &transports) {
        Ok(finish) => {
            world.finalize()?;
            if let Some(finish) = finish {
                finish(args)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.is::<output::Closed>() => Err(error),
        Err(error) => {
            // Said before the others lose this PE and the job ends.
            eprintln!("oxshmem perf: PE {}: {error:#}", world.my_pe());
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What is left for PE 0 to do when the job has ended well.
type Finish = Box<dyn FnOnce(&Args) -> anyhow::Result<()>>;

fn as_pe(args: &Args, world: &World, given: &transport::Given) -> anyhow::Result<Option<Finish>> {
    #[cfg(feature = "verbs")]
    if let Some(verbs) = given.verbs()
        && args.ops.is_empty()
    {
        return against_perftest(args, world, verbs);
    }
    let _ = given;
    let leader = rows(args, world)?;
    Ok(leader.map(|leader| Box::new(|args: &Args| leader.finish(args)) as Finish))
}

#[cfg(feature = "verbs")]
fn against_perftest(
    args: &Args,
    world: &World,
    verbs: &std::sync::Arc<oxshmem_verbs::Verbs>,
) -> anyhow::Result<Option<Finish>> {
    let cpus = gather(world, &allowed_cpus())?;
    let bind = args.launcher.and(Some(args.bind));
    let parameters = || table::Parameters::of(world, bind, None, cpus);
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
    let finish = |(out, results): (leader::Out, versus::Results)| {
        Box::new(move |args: &Args| out.finish(args, &results)) as Finish
    };
    Ok(out.zip(results).map(finish))
}

fn rows(args: &Args, world: &World) -> anyhow::Result<Option<Leader>> {
    let plan = plan(args, world.n_pes())?;
    let most = plan.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let effort = if args.quick {
        Effort::QUICK
    } else {
        Effort::THOROUGH
    };
    let cpus = gather(world, &allowed_cpus())?;
    let bind = args.launcher.and(Some(args.bind));
    let parameters = || table::Parameters::of(world, bind, Some(effort), cpus);
    let leader = match world.my_pe() {
        0 => Some(Leader::new(args, parameters(), plan.len())?),
        _ => None,
    };
    let ground = case::Ground::new(world, most)
        .with_context(|| format!("for operations of up to {most} bytes (see --sizes)"))?;
    let leader = measure_all(&ground, &plan, effort, leader)?;
    ground.free()?;
    Ok(leader)
}

/// What to measure: operations and sizes, in order.
fn plan(args: &Args, pes: usize) -> anyhow::Result<Vec<(Op, usize)>> {
    let sizes = args.sizes.unwrap_or(if args.quick {
        Sizes::QUICK
    } else {
        Sizes::DEFAULT
    });
    let ops = if args.ops.is_empty() {
        Op::ALL.to_vec()
    } else {
        args.ops.clone()
    };
    let possible = |op: &&Op| pes > 1 || !op.needs_two();
    if let Some(op) = args.ops.iter().find(|op| !possible(op)) {
        anyhow::bail!("{} needs 2 PEs, and this job has one; see --pes", op.name());
    }
    let rows = |op: &Op| {
        op.sizes(sizes)
            .into_iter()
            .map(|bytes| (*op, bytes))
            .collect::<Vec<_>>()
    };
    Ok(ops.iter().filter(possible).flat_map(rows).collect())
}

fn measure_all(
    ground: &case::Ground<'_>,
    plan: &[(Op, usize)],
    effort: Effort,
    mut leader: Option<Leader>,
) -> anyhow::Result<Option<Leader>> {
    for (done, &(op, bytes)) in plan.iter().enumerate() {
        if let Some(leader) = &mut leader {
            leader.begin(done, table::label(op, bytes));
        }
        let found =
            measure::measure(ground, op, bytes, effort).with_context(|| table::label(op, bytes))?;
        if let (Some(leader), Some(found)) = (&mut leader, found) {
            leader.row(op, bytes, &found)?;
        }
    }
    Ok(leader)
}
