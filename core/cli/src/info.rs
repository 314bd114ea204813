//! `oxshmem info`: the machine, the transports, the routes and the variables.

mod explain;
mod known;
mod machine;
mod topology;
pub mod transports;
mod variables;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use oxshmem::World;
use serde::Serialize;

use crate::job::shown_by_another;
use crate::output;
use known::Known;

/// Show what oxshmem sees: machine, transports, routes, and the variables that are set.
///
/// In a job (`oxshmem run -n 4 oxshmem info`), PE 0 shows how every PE reaches every other. Alone, it
/// is a world of one. The options show one part each, in full.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print it all as JSON, every part in full.
    #[arg(long)]
    json: bool,
    /// Show only every environment variable: its value or default, and what it means.
    #[arg(long, conflicts_with_all = ["json", "explain", "topology", "svg"])]
    variables: bool,
    /// Show only what each transport and its devices can do, and what they guarantee.
    #[arg(long, conflicts_with_all = ["json", "explain", "topology", "svg"])]
    transports: bool,
    /// Show only how collective calls of all PEs move their data.
    #[arg(long, conflicts_with_all = ["json", "explain", "topology", "svg"])]
    collectives: bool,
    /// Show only what was chosen for PE towards PEER, for each kind of memory and operation, on which
    /// device, port, address and MTU, and why each better one was refused; without numbers, for all,
    /// each answer once.
    #[arg(long, num_args = 0..=2, value_names = ["PE", "PEER"])]
    explain: Option<Vec<usize>>,
    /// Show only the machine, as a tree with its NICs and GPUs: this one, or the one that
    /// OXSHMEM_TOPOLOGY describes.
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    topology: bool,
    /// Draw the machine, and a line from each PE of this host to the NIC that it chose, or, where
    /// OXSHMEM_TOPOLOGY describes another machine, would choose there, bound to a core each; - is
    /// stdout.
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
  oxshmem info --variables                every setting
  oxshmem info --topology                 packages, NUMA nodes, PCI, NICs, GPUs
  OXSHMEM_TOPOLOGY=other.xml oxshmem info --topology
  oxshmem run -n 8 oxshmem info --svg machine.svg
  OXSHMEM_TOPOLOGY=other.xml oxshmem run -n 8 oxshmem info --svg other.svg
  oxshmem info --json | jq .world.by_pe";

/// The whole report.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    machine: Known<machine::Machine>,
    transports: Vec<transports::Transport>,
    world: Known<world::JobReport>,
    variables: Vec<variables::Variable>,
}

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(pair) = &args.explain {
        return explain::main(pair, args.json);
    }
    if args.topology || args.svg.is_some() {
        return topology::main(args.topology, args.svg.as_deref());
    }
    // These parts need no world.
    if args.has_parts() && !args.collectives {
        return if shown_by_another() {
            Ok(ExitCode::SUCCESS)
        } else {
            args.show_parts(None)
        };
    }
    let world = match join() {
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Ok(Some(seen)) => Known::Yes(seen),
        Err(error) if shown_by_another() => {
            // The job fails through PE 0, which shows the rest.
            output::complain("info", &format!("there is no world: {error}"));
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => Known::from(Err(error)),
    };
    if args.has_parts() {
        return args.show_parts(Some(&world));
    }
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
    Ok(status_of(&info.world))
}

/// The exit status: failure, with the reason on stderr, if there is no world.
fn status_of(world: &Known<world::JobReport>) -> ExitCode {
    match world {
        Known::Yes(_) => ExitCode::SUCCESS,
        Known::No { error } => {
            output::complain("info", &format!("there is no world: {error}"));
            ExitCode::FAILURE
        }
    }
}

impl Args {
    /// Whether single parts are asked for.
    fn has_parts(&self) -> bool {
        self.variables || self.transports || self.collectives
    }

    /// Prints the parts that are asked for, and nothing else.
    fn show_parts(&self, world: Option<&Known<world::JobReport>>) -> anyhow::Result<ExitCode> {
        let mut parts: Vec<String> = Vec::new();
        if self.transports {
            let all = transports::see();
            parts.push(all.iter().map(ToString::to_string).collect());
        }
        if let (true, Some(Known::Yes(seen))) = (self.collectives, world) {
            parts.push(Collectives(seen).to_string());
        }
        if self.variables {
            let all = variables::see();
            let lines: String = all.iter().map(ToString::to_string).collect();
            parts.push(format!(
                "Value, or [what holds where it is not set]\n\n{lines}"
            ));
        }
        output::print(&parts.join("\n"))?;
        Ok(world.map_or(ExitCode::SUCCESS, status_of))
    }
}

/// How collective calls move data, as text.
struct Collectives<'a>(&'a world::JobReport);

impl std::fmt::Display for Collectives<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.collectives(f)
    }
}

/// The job as PE 0 sees it; `None` on the other PEs, since PE 0 prints.
fn join() -> oxshmem::Result<Option<world::JobReport>> {
    let world = World::init()?;
    let seen = world::see(&world)?;
    world.finalize()?;
    Ok(seen)
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
            transport.list(f)?;
        }
        heading(f, "World")?;
        match &self.world {
            Known::Yes(seen) => write!(f, "{seen}")?,
            Known::No { error } => writeln!(f, "none: {error}")?,
        }
        let mut set = self.variables.iter().filter(|v| v.is_set()).peekable();
        if set.peek().is_some() {
            heading(f, "Environment variables that are set")?;
        }
        set.try_for_each(|variable| variable.line(f))?;
        writeln!(
            f,
            "\nMore: --variables, --transports, --collectives, --explain, --topology, --json"
        )
    }
}

fn heading(f: &mut std::fmt::Formatter<'_>, title: &str) -> std::fmt::Result {
    writeln!(f, "\n{title}\n{}", "-".repeat(title.len()))
}
