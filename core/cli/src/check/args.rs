//! The options of `oxshmem check`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::links::Effort;
use super::schedule::{self, Rounds};

/// Check the hosts of a job and the links between them, and name what is slow or set up otherwise.
///
/// Start it as a job with one PE a host, or as many as a host has NICs, by any launcher. First each host's
/// set-up is looked at and compared with the others': libraries, devices, ports, MTU, limits, clocks. Then
/// all pairs of hosts measure latency and bandwidth, in rounds in which each host has one partner, and look
/// at the data; then all hosts send at once. Links, rails and hosts that are far from the usual are measured
/// again alone, and named.
///
/// Outside of a job, and with --host-only, it looks at this host only.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Look at each host's set-up only, and measure nothing. No job is needed.
    #[arg(long)]
    pub host_only: bool,
    /// Show what is well, too: every line of every host's set-up.
    #[arg(long, short)]
    pub verbose: bool,
    /// Measure less: small blocks, few of them.
    #[arg(long)]
    pub quick: bool,
    /// Bytes of a block, with K or M. [default: 1M, or 256K with --quick]
    #[arg(long, value_name = "BYTES", value_parser = block)]
    pub size: Option<usize>,
    /// How many times all pairs are measured; the median counts.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The pairs: all, or a number of partners for each host, spread over all others. [default: all up to 64
    /// hosts, else 63]
    #[arg(long, value_name = "all|N")]
    pub pairs: Option<Pairs>,
    /// The pairs of a round one after the other, so that they do not share switches or, in tests, CPUs.
    #[arg(long)]
    pub one_by_one: bool,
    /// How far a bandwidth may be below the usual one before it is named. A latency may be twice the usual one.
    #[arg(long, value_name = "PERCENT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub tolerance: u32,
    /// Name nothing for its latency, where hosts share CPUs or are emulated.
    #[arg(long)]
    pub no_latency: bool,
    /// A link with less bandwidth one way is a fault: gigabytes per second, such as 10 (or 80Gb/s), or a percentage
    /// of its rate, such as 80%, where that is not known of the usual bandwidth.
    #[arg(long, value_name = "GBPS|PERCENT")]
    pub fail_below: Option<Least>,
    /// Exit with status 2 if there are warnings and no fault.
    #[arg(long)]
    pub strict: bool,
    /// Write all results as JSON; - is stdout, in place of the text.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the bandwidths and latencies between all hosts as heat maps (SVG); - is stdout, in place of the text.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Take each PE as a host of its own, for tests.
    #[arg(long, hide = true)]
    pub each_pe: bool,
    /// Files of a host below this folder in place of this machine's, for tests.
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub sysroot: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Exit status: 0 no fault; 1 a fault, or the check could not be done; 2 warnings only, with --strict

Examples:
  oxshmem check --host-only                            the doctor for this machine
  oxshmem run --hosts a,b,c,d oxshmem check            four hosts, a PE each
  srun -N 16 --ntasks-per-node=1 --mpi=pmi2 oxshmem check --svg heat.svg
  mpirun --map-by ppr:8:node oxshmem check             eight PEs a host: every one of eight rails
  oxshmem run --hosts a,b oxshmem check --fail-below 80% --strict
  oxshmem run --hosts a,b oxshmem check --quick --json - | jq .findings";

/// The pairs that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    All,
    /// Partners of each member.
    Partners(usize),
}

impl FromStr for Pairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Pairs::All);
        }
        let number = text.parse().ok().filter(|number| *number > 0);
        number
            .map(Pairs::Partners)
            .ok_or_else(|| format!("{text:?} is neither `all` nor a number of partners, such as 8"))
    }
}

/// The least bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Least {
    /// Bytes per second.
    Rate(f64),
    /// A share of the link's rate, or of the usual bandwidth.
    Share(f64),
}

impl FromStr for Least {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            digits
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|n| *n > 0.0 && n.is_finite())
        };
        let least = if let Some(percent) = text.strip_suffix('%') {
            number(percent)
                .filter(|percent| *percent <= 100.0)
                .map(|percent| Least::Share(percent / 100.0))
        } else if let Some(bits) = text
            .strip_suffix("Gb/s")
            .or_else(|| text.strip_suffix("Gbps"))
        {
            number(bits).map(|gigabits| Least::Rate(gigabits * 1e9 / 8.0))
        } else {
            let bytes = text.strip_suffix("GB/s").unwrap_or(text);
            number(bytes).map(|gigabytes| Least::Rate(gigabytes * 1e9))
        };
        least.ok_or_else(|| {
            format!("{text:?} is no bandwidth such as 10 or 80Gb/s, and no percentage such as 80%")
        })
    }
}

/// Bytes of a block, a multiple of 8.
fn block(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let bytes = digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    bytes
        .filter(|bytes| *bytes >= 8 && *bytes <= 1 << 30 && bytes.is_multiple_of(8))
        .ok_or_else(|| format!("{text:?} is no multiple of 8 from 8 to 1024M, such as 64K or 1M"))
}

impl Args {
    pub fn effort(&self) -> Effort {
        let default = if self.quick { 256 << 10 } else { 1 << 20 };
        let block_bytes = self.size.unwrap_or(default);
        Effort {
            words: block_bytes / 8,
            block_bytes,
            round_trips: if self.quick { 50 } else { 100 },
            latency_batches: if self.quick { 12 } else { 20 },
            batches: if self.quick { 3 } else { 5 },
            batch: Duration::from_millis(if self.quick { 5 } else { 20 }),
        }
    }

    /// The rounds for this many members.
    pub fn schedule(&self, members: usize) -> Rounds {
        let once = match self.pairs {
            Some(Pairs::All) => schedule::tournament(members),
            Some(Pairs::Partners(partners)) => schedule::covering(members, partners),
            None if members <= schedule::ALL_PAIRS => schedule::tournament(members),
            None => schedule::covering(members, schedule::ALL_PAIRS - 1),
        };
        let once = if self.one_by_one {
            schedule::one_by_one(once)
        } else {
            once
        };
        let times = self.rounds as usize;
        std::iter::repeat_n(once, times).flatten().collect()
    }

    /// The share below the usual bandwidth at which a link is named.
    pub fn tolerance(&self) -> f64 {
        f64::from(self.tolerance) / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_bandwidths_have_units() {
        let parse = |text: &str| text.parse::<Least>();
        assert_eq!(parse("10"), Ok(Least::Rate(10e9)));
        assert_eq!(parse("1.5GB/s"), Ok(Least::Rate(1.5e9)));
        assert_eq!(parse("80Gb/s"), Ok(Least::Rate(10e9)));
        assert_eq!(parse("80%"), Ok(Least::Share(0.8)));
        for text in ["", "0", "-1", "120%", "fast", "inf", "10 MB/s"] {
            let why = parse(text).unwrap_err();
            assert!(why.contains("such as 80%"), "{why}");
        }
    }

    #[test]
    fn blocks_are_whole_words() {
        assert_eq!(block("64K"), Ok(64 << 10));
        assert_eq!(block("8"), Ok(8));
        for text in ["", "K", "12", "2G", "0", "-8", "99999999999999999999M"] {
            assert!(block(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_are_all_or_a_number_of_partners() {
        assert_eq!("all".parse(), Ok(Pairs::All));
        assert_eq!("8".parse(), Ok(Pairs::Partners(8)));
        assert!("none".parse::<Pairs>().unwrap_err().contains("such as 8"));
        assert!("0".parse::<Pairs>().is_err());
    }
}
