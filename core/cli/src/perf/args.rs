//! The options of `oxshmem perf`, and the checks for contradictions among them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use oxshmem::Fold;
use oxshmem_topo::Policy;

use super::batches::{Effort, Until};
use super::metric::Metric;
use super::number::{self, Number};
use super::op::Op;
use super::ops;
use super::pair::Asked;
use super::sizes::Sizes;
use super::team::Which;
use crate::litmus::memory::Memory;
use crate::run;

/// Measure every operation between PEs: latency, rate, bandwidth, overlap.
///
/// PE 0 measures, towards the first PE on another host, or else PE 1 (towards itself, if it is
/// alone); --from and --to choose others. It starts the PEs itself, unless it is in a job already.
/// Each row repeats its operation in batches long enough that reading the clock does not matter: min
/// and median are over batches, for one operation; p99 and p99.9 are of single operations, each timed
/// by itself, or of batches (marked ~) where an operation is too short for that, or where the batches'
/// median lies above that p99. Each row's data is checked.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Number of PEs to start. In a job, its PEs are used and this has no effect.
    #[arg(short = 'n', long, value_name = "N", default_value = "2", value_parser = run::pes)]
    pub pes: u32,
    #[command(flatten)]
    pub pair: Asked,
    /// The binding of each PE that it starts: none, core or numa. [default: core, or none with
    /// several --threads]
    #[arg(long, value_name = "POLICY", value_parser = run::policy)]
    pub bind: Option<Policy>,
    /// Fewer sizes, and less time for each row.
    #[arg(long)]
    pub quick: bool,
    /// The metric of each operation; several are separated by commas. [default: bandwidth of
    /// put-nbi, get-nbi and memcpy, latency of the others]
    #[arg(
        long = "metric",
        value_enum,
        value_name = "METRIC",
        value_delimiter = ','
    )]
    pub metrics: Vec<Metric>,
    /// Sizes of blocks: each four times the one before. K, M and G are powers of 1024.
    /// [default: 8..8M, or some of 8..128K with --quick, as far as an operation needs no more than 64 MiB
    /// of each PE's heap; 8 for the rate]
    #[arg(long, value_name = "A..B")]
    pub sizes: Option<Sizes>,
    /// Operations in flight at once for rate and bandwidth; fewer of those whose window would
    /// exceed 64 MiB.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub window: u32,
    /// Threads of a PE at once, each with a window and a context of its own: for rate and bandwidth
    /// of one-sided operations.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// The team whose collectives are measured.
    #[arg(long, value_enum, value_name = "TEAM", default_value = "world")]
    pub team: Which,
    /// The memory of the blocks that operations move, but for private ones: the hosts' or the GPUs'.
    #[arg(long, value_enum, value_name = "KIND", default_value = "host")]
    pub memory: Memory,
    /// Issue one-sided operations in a session that says that many follow each other.
    #[arg(long)]
    pub session: bool,
    /// The fold of reductions and scans: sum, prod, min, max, and, or, xor.
    #[arg(long, value_name = "FOLD", default_value = "sum", value_parser = number::fold)]
    pub fold: Fold,
    /// The type of their elements.
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value = "u64")]
    pub number: Number,
    /// Measure each row for so long: seconds, or a number with ms, s, m or h. [default: 150ms, or
    /// 20ms with --quick]
    #[arg(long, value_name = "TIME", value_parser = run::duration)]
    pub seconds: Option<Duration>,
    /// Measure so many operations in each row, however long they take.
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub iterations: Option<u64>,
    /// Clear the data before each batch and check it after each, not just once a row; and validate a few
    /// operations one by one beside.
    #[arg(long)]
    pub validate: bool,
    /// Write parameters and rows as JSON to a file; - is stdout, in place of the table.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the rows as comma-separated values to a file; - is stdout, in place of the table.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw a curve over the sizes for each operation, with the machine's limits, as SVG.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Compare with earlier runs, each from its --json file, and say what changed significantly. Several are
    /// separated by commas; one alone proves nothing.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    pub compare: Vec<PathBuf>,
    /// Runs, likewise, that count with the one that is measured now.
    #[arg(long, value_name = "FILE", value_delimiter = ',', requires = "compare")]
    pub with: Vec<PathBuf>,
    /// End with status 1 if an operation has become significantly slower by more than so many
    /// percent.
    #[arg(long, value_name = "PERCENT", requires = "compare", value_parser = percent)]
    pub fail_if_slower: Option<f64>,
    /// Measure over this transport alone, such as loopback or verbs. PEs of one host take it, too:
    /// verbs then goes through the host's own NIC.
    #[arg(long, value_name = "NAME")]
    pub transport: Option<String>,
    /// Rounds of a comparison with perftest: `--transport verbs` without OPS and --metric.
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,
    /// The operations to measure. [default: all; with --transport verbs those of perftest, beside it]
    #[arg(value_parser = ops::parser(), value_name = "OPS")]
    pub ops: Vec<&'static Op>,
    /// The process that started the PEs for this, on whose terminal the progress bar is drawn.
    #[arg(long, hide = true, value_name = "PID")]
    pub launcher: Option<u32>,
}

const EXAMPLES: &str = "\
The exit status is 0 if all was measured, however it came out; 1 if it was not, its data was wrong,
or --fail-if-slower says so; 2 if options make no sense, or the results of --compare cannot be
compared with.

With --transport verbs and no OPS, oxshmem and perftest (ib_write_lat and its like, which must be
installed) are measured by turns, between the same two hosts and devices: the latency of put, get
and fetch-add, the bandwidth and rate of puts, and what an operation costs in system calls (by
strace), work requests, doorbells and completions. The exit status tells whether it was measured,
not how it came out.

Examples:
  oxshmem perf                            everything, 2 PEs on a core each
  oxshmem perf --quick put get            two operations, soon done
  oxshmem perf --pes 8 barrier            a barrier of 8 PEs
  oxshmem perf --pes 16 --team rows alltoall  of four teams of 4 at the same time
  OXSHMEM_CUDA_SYMMETRIC_SIZE=1G oxshmem perf --memory cuda put put-on-stream
  oxshmem perf --metric rate --session add  with operations gathered, where lanes gain by that
  oxshmem perf --fold max --type bf16 reduce  the greatest of 16-bit floats
  oxshmem perf --sizes 1K..64M put
  oxshmem perf --metric rate --window 256 put-nbi p add
  oxshmem perf --metric rate --threads 4 put p  four threads at once, a context each
  oxshmem perf --metric overlap           what of a transfer's time is left for computing
  oxshmem perf --plot curves.svg --json before.json
  oxshmem perf --compare b1.json,b2.json,b3.json,b4.json,b5.json --with a1.json,a2.json,a3.json,a4.json
                                          what changed, from five runs before and five after
  oxshmem perf --transport verbs          against perftest, through this host's NIC
  oxshmem run --hosts a:1,b:1 oxshmem perf --transport verbs  between two hosts
  oxshmem run --hosts a:2,b:2 oxshmem perf --from 3 --to 0  from one host's PE to the other's
  oxshmem run -n 2 --bind numa oxshmem perf  in a job started otherwise
  mpirun -n 2 oxshmem perf                likewise; srun and mpiexec, too";

impl Args {
    pub fn effort(&self) -> Effort {
        let (batch, row) = if self.quick { (50, 20) } else { (200, 150) };
        let row = self.seconds.unwrap_or(Duration::from_millis(row));
        let row = self.iterations.map_or(Until::Time(row), Until::Operations);
        Effort::new(Duration::from_micros(batch), row, self.validate)
    }

    /// The binding of PEs that this command starts.
    pub fn bind(&self) -> Policy {
        self.bind.unwrap_or(match self.threads {
            1 => Policy::Core,
            _ => Policy::None,
        })
    }

    /// Whether oxshmem is measured beside perftest, over verbs.
    pub fn beside_perftest(&self) -> bool {
        self.ops.is_empty() && self.metrics.is_empty()
    }

    /// Refuses options that contradict each other.
    pub fn check(&self) -> anyhow::Result<()> {
        let outputs = [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--plot", &self.plot),
        ];
        for (at, (name, path)) in outputs.iter().enumerate() {
            let same = |(_, other): &&(&str, &Option<PathBuf>)| path.is_some() && other == path;
            if let Some((other, _)) = outputs.iter().skip(at + 1).find(same) {
                anyhow::bail!(
                    "{name} and {other} would write to the same file; give one another name"
                );
            }
        }
        ensure!(
            self.plot.as_deref() != Some(Path::new("-")),
            "--plot writes to a file; give its name, such as curves.svg"
        );
        ensure!(
            self.number.has(self.fold),
            "there is no --fold {} of --type {}; integers have each, floats sum, prod, min and max, complex \
             numbers sum and prod",
            self.fold.name(),
            self.number.name()
        );
        let verbs = self.transport.as_deref() == Some("verbs") && self.beside_perftest();
        let rows = [
            ("--csv", self.csv.is_some()),
            ("--plot", self.plot.is_some()),
            ("--compare", !self.compare.is_empty()),
            ("--validate", self.validate),
            ("--sizes", self.sizes.is_some()),
            ("--seconds", self.seconds.is_some()),
            ("--iterations", self.iterations.is_some()),
            ("--threads", self.threads > 1),
            ("--team", self.team != Which::World),
            ("--memory", self.memory != Memory::Host),
            ("--session", self.session),
            ("--fold", self.fold != Fold::Sum),
            ("--type", self.number != Number::default()),
            ("--from", self.pair.from.is_some()),
            ("--to", self.pair.to.is_some()),
        ];
        if let Some((name, _)) = rows.iter().find(|(_, given)| verbs && *given) {
            anyhow::bail!(
                "{name} has no meaning in a comparison with perftest; name operations, or a --metric"
            );
        }
        Ok(())
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..1e6).contains(&percent) => Ok(percent),
        _ => Err("give percent, such as 10".into()),
    }
}

/// Arguments as if from the command line.
#[cfg(test)]
pub fn parsed(args: &[&str]) -> Args {
    #[derive(clap::Parser)]
    struct Perf {
        #[command(flatten)]
        args: Args,
    }
    let named = ["perf"].iter().chain(args);
    let perf: Perf = clap::Parser::try_parse_from(named).unwrap();
    perf.args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_would_mix_are_refused() {
        let refused = |args: &[&str]| parsed(args).check().unwrap_err().to_string();
        let text = refused(&["--json", "-", "--csv", "-"]);
        assert!(text.contains("--json and --csv"), "{text}");
        let text = refused(&["--csv", "x", "--plot", "x"]);
        assert!(text.contains("--csv and --plot"), "{text}");
        assert!(refused(&["--plot", "-"]).contains("curves.svg"));
        parsed(&["--json", "x", "--csv", "y", "--plot", "z"])
            .check()
            .unwrap();
    }

    #[test]
    fn what_perftest_does_not_measure_is_refused_beside_it() {
        let args = ["--transport", "verbs", "--plot", "x.svg"];
        let text = parsed(&args).check().unwrap_err().to_string();
        assert!(
            text.contains("--plot") && text.contains("name operations"),
            "{text}"
        );
        parsed(&[&args[..], &["put"]].concat()).check().unwrap();
    }

    #[test]
    fn efforts_are_as_asked() {
        let row = |args: &[&str]| parsed(args).effort().row;
        assert_eq!(row(&[]), Until::Time(Duration::from_millis(150)));
        assert_eq!(row(&["--quick"]), Until::Time(Duration::from_millis(20)));
        assert_eq!(
            row(&["--seconds", "2"]),
            Until::Time(Duration::from_secs(2))
        );
        assert_eq!(row(&["--iterations", "9"]), Until::Operations(9));
        assert_eq!(
            parsed(&["--compare", "x", "--fail-if-slower", "5%"]).fail_if_slower,
            Some(5.0)
        );
        assert!(percent("-1").is_err() && percent("nan").is_err() && percent("").is_err());
    }
}
