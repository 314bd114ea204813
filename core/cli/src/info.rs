//! `oxshmem info`.

mod explain;
mod machine;
mod topology;
mod transports;
mod variables;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use oxshmem::World;
use serde::Serialize;

use crate::output;

/// Show what oxshmem sees: machine, transports, routes, settings.
///
/// In a job (`oxshmem run -n 4 oxshmem info`), PE 0 shows how every PE reaches every other, and
/// why. Alone, it is a world of one.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print it all as JSON.
    #[arg(long)]
    json: bool,
    /// Show only what was chosen for PE towards PEER, for each kind of memory and operation, and
    /// why each better one was refused; without numbers, for all, each answer once.
    #[arg(long, num_args = 0..=2, value_names = ["PE", "PEER"])]
    explain: Option<Vec<usize>>,
    /// Show only the machine, as a tree with its NICs and GPUs: this one, or the one that
    /// OXSHMEM_TOPOLOGY describes.
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    topology: bool,
    /// Draw the machine, and a line from each PE of this host to the NIC that it chose; - is stdout.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "explain"])]
    svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Exit status: 0; 1 if the world cannot be joined (the rest is shown all the same)

Examples:
  oxshmem info
  oxshmem run -n 4 oxshmem info           routes between 4 PEs, with reasons
  oxshmem run -n 2 --bind core oxshmem info
  oxshmem run -n 4 oxshmem info --explain 0 3
  oxshmem info --topology                 packages, NUMA nodes, PCI, NICs, GPUs
  OXSHMEM_TOPOLOGY=other.xml oxshmem info --topology
  oxshmem run -n 8 oxshmem info --svg machine.svg
  oxshmem info --json | jq .variables     every setting";

/// All there is to tell.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    machine: Known<machine::Machine>,
    transports: Vec<transports::Transport>,
    world: Known<world::Seen>,
    variables: Vec<variables::Variable>,
}

/// Something, or why it is not known.
#[derive(Serialize)]
#[serde(untagged)]
enum Known<T> {
    Yes(T),
    No { error: String },
}

impl<T, E: ToString> From<Result<T, E>> for Known<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(known) => Known::Yes(known),
            Err(error) => Known::No {
                error: error.to_string(),
            },
        }
    }
}

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(pair) = &args.explain {
        return explain::main(pair, args.json);
    }
    if args.topology || args.svg.is_some() {
        return topology::main(args.topology, args.svg.as_deref());
    }
    let world = match join() {
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Ok(Some(seen)) => Known::Yes(seen),
        Err(error) if shown_by_another() => {
            // The job fails by PE 0, which shows the rest.
            output::complain("info", &format!("there is no world: {error}"));
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => Known::from(Err(error)),
    };
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        machine: machine::see().into(),
        transports: transports::see(),
        world,
        variables: variables::see(),
    };
    output::print(&if args.json {
        let mut json = serde_json::to_string_pretty(&info)?;
        json.push('\n');
        json
    } else {
        info.to_string()
    })?;
    Ok(match &info.world {
        Known::Yes(_) => ExitCode::SUCCESS,
        Known::No { error } => {
            output::complain("info", &format!("there is no world: {error}"));
            ExitCode::FAILURE
        }
    })
}

/// What PE 0 sees; none on the others, which leave it the showing.
fn join() -> oxshmem::Result<Option<world::Seen>> {
    let world = World::init()?;
    let seen = world::see(&world)?;
    world.finalize()?;
    Ok(seen)
}

/// Whether this process is to be a PE of a job, and not the one that shows.
pub fn shown_by_another() -> bool {
    let lookup = |name: &str| std::env::var(name).ok();
    let rank = lookup("OXSHMEM_RANK").or_else(|| lookup("RANK"));
    oxshmem_bootstrap::describes_job(&lookup) && rank.is_some_and(|rank| rank.trim() != "0")
}

impl std::fmt::Display for Info {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "oxshmem {}", self.version)?;
        heading(f, "Machine")?;
        match &self.machine {
            Known::Yes(machine) => write!(f, "{machine}")?,
            Known::No { error } => writeln!(f, "cannot be described: {error}")?,
        }
        heading(f, "Transports, best first")?;
        if self.transports.is_empty() {
            writeln!(f, "none in this build; enable the feature loopback")?;
        }
        for transport in &self.transports {
            write!(f, "{transport}")?;
        }
        heading(f, "World")?;
        match &self.world {
            Known::Yes(seen) => write!(f, "{seen}")?,
            Known::No { error } => writeln!(f, "none: {error}")?,
        }
        heading(
            f,
            "Environment variables: value, or [what holds where it is not set]",
        )?;
        for variable in &self.variables {
            write!(f, "{variable}")?;
        }
        Ok(())
    }
}

fn heading(f: &mut std::fmt::Formatter<'_>, title: &str) -> std::fmt::Result {
    writeln!(f, "\n{title}\n{}", "-".repeat(title.len()))
}
