//! The options of `oxshmem litmus`.

use clap::ValueEnum;
use oxshmem::FenceSite;
use oxshmem_litmus::MemoryModel;

use super::memory::Memory;
use super::platform::Platform;
use super::replay::Replay;

/// Run small programs that show what the memory model allows, and check that nothing else happens.
///
/// The outcomes that a program may have are computed from the rules of the memory model, by going
/// through everything that they leave open. Then it is run many times, and each outcome is compared.
///
/// Over weak, the PEs are threads that run one at a time, on simulated machines that do the worst
/// that is permitted: each allowed outcome has to be seen too. A seed decides the schedule, so a
/// forbidden outcome comes with the shortest schedule that shows it, to be run again. In a job the
/// PEs are its processes, and its transports are used as they are.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Over what to run. [default: weak; in a job, what the job's PEs reach each other by]
    #[arg(long, value_name = "T")]
    pub transport: Option<Platform>,
    /// The memory of the programs' words. In GPU memory the PEs wait for them by fetching. Without a job
    /// threads share the GPUs there are; a job's PEs have GPU heaps by OXSHMEM_CUDA_SYMMETRIC_SIZE.
    #[arg(long, value_name = "KIND", default_value = "host")]
    pub memory: Memory,
    /// In this memory model only. [default: each that a program is for; in a job, the job's]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<Model>,
    /// Runs of each program. Over weak and simulator at most so many on each machine, and a tenth
    /// once every allowed outcome was seen. [default: 3000; in a job, over loopback and in GPU memory 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
    /// The first run's seed; each run has the next.
    #[arg(long, value_name = "S", default_value = "1", value_parser = clap::value_parser!(u64).range(..=MOST_SEED))]
    pub seed: u64,
    /// Run one program once, by the decisions that a forbidden outcome was shown with.
    #[arg(long, value_name = "[M:]D,D,…")]
    pub replay: Option<Replay>,
    /// List the programs: name, rules, and what each shows.
    #[arg(long, conflicts_with = "replay")]
    pub list: bool,
    /// Show every outcome, how often it was seen, and how one that was not could come about.
    #[arg(short, long)]
    pub verbose: bool,
    /// In place of programs: pass blocks of so many bytes between pairs of PEs on different hosts, each followed by a
    /// flag, and check every word. Needs a job. [default of --runs then: 1000 in each direction]
    #[arg(long, value_name = "BYTES", value_parser = block,
        conflicts_with_all = ["transport", "memory", "model", "seed", "replay", "list", "verbose", "omit", "programs"])]
    pub block: Option<usize>,
    /// Leave out an order that the library inserts, over weak or simulator, to see what goes wrong.
    #[arg(long, hide = true, value_name = "ORDER", value_parser = inserted)]
    pub omit: Option<FenceSite>,
    /// Names of built-in programs, or files *.litmus. [default: all that are built in]
    #[arg(value_name = "NAME|FILE")]
    pub programs: Vec<String>,
}

/// Keeps the seeds of all later runs below `u64::MAX`.
const MOST_SEED: u64 = i64::MAX as u64;

const EXAMPLES: &str = "\
Exit status:
  0 if all is well; 1 if a forbidden outcome was seen, or a run failed; 2 for bad input, such as a
  file that is no litmus program, or one that expects of the model what does not hold; 3 if over
  weak an allowed outcome was not seen

Examples:
  oxshmem litmus                            all programs, both models, over weak
  oxshmem litmus --list
  oxshmem litmus -v mp mp+fence             a missing fence, and one that is there
  oxshmem litmus --model relaxed my.litmus  a program of your own
  oxshmem litmus --transport loopback       threads on this machine's real memory
  oxshmem litmus --memory cuda              threads with their words in GPU memory
  oxshmem run -n 4 oxshmem litmus           processes, as any job's
  OXSHMEM_TRANSPORT='weak(loopback)' oxshmem run -n 4 oxshmem litmus
  oxshmem run --hosts a:4,b:4 oxshmem litmus --block 64K --runs 1000000

docs/memory-model.md explains the rules, with these programs as figures.";

/// A memory model, as an argument.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Model {
    /// OpenSHMEM's model: blocking reads happen in program order.
    Ordered,
    /// NVSHMEM's model: blocking reads need a fence for that.
    Relaxed,
}

impl From<Model> for MemoryModel {
    fn from(model: Model) -> Self {
        match model {
            Model::Ordered => MemoryModel::Ordered,
            Model::Relaxed => MemoryModel::Relaxed,
        }
    }
}

/// A size in bytes, with a suffix or without.
fn block(text: &str) -> Result<usize, String> {
    let bytes = oxshmem_heap::limit::parse(text, 0).map_err(|error| error.to_string())?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

/// The fence site with this name, as the documentation spells it.
fn inserted(name: &str) -> Result<FenceSite, String> {
    let named = |one: &&FenceSite| format!("{one:?}").eq_ignore_ascii_case(name);
    FenceSite::ALL.iter().find(named).copied().ok_or_else(|| {
        let all: Vec<String> = FenceSite::ALL
            .iter()
            .map(|one| format!("{one:?}"))
            .collect();
        format!("choose one of {}", all.join(", "))
    })
}
