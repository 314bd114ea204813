//! `oxshmem perf`.

mod case;
mod launch;
mod leader;
mod measure;
mod op;
mod report;
mod sizes;
mod table;

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
    /// What to measure. [default: all]
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

Examples:
  oxshmem perf                            everything, 2 PEs on a core each
  oxshmem perf --quick put get            two operations, soon done
  oxshmem perf --pes 8 barrier            a barrier of 8 PEs
  oxshmem perf --sizes 1K..64M put
  oxshmem perf --json result.json
  oxshmem run -n 2 --bind numa oxshmem perf  in a job started otherwise";

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    if !oxshmem_bootstrap::describes_job(&|name| std::env::var(name).ok()) {
        // What cannot be measured or written is better refused once, here.
        plan(args, args.pes as usize)?;
        leader::check_writable(args)?;
        return launch::launch(args.pes, args.bind);
    }
    let world = World::init()?;
    match as_pe(args, &world) {
        Ok(leader) => {
            world.finalize()?;
            if let Some(leader) = leader {
                leader.finish(args)?;
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

fn as_pe(args: &Args, world: &World) -> anyhow::Result<Option<Leader>> {
    let plan = plan(args, world.n_pes())?;
    let most = plan.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let effort = if args.quick {
        Effort::QUICK
    } else {
        Effort::THOROUGH
    };
    let cpus = gather(world, &allowed_cpus())?;
    let parameters =
        || table::Parameters::of(world, args.launcher.and(Some(args.bind)), effort, cpus);
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
