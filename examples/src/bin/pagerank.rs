//! PageRank of a graph file, its vertices spread over all PEs.
//!
//! Each PE owns a range of vertices, with the edges that point to them in private memory. In each
//! step every PE needs the values that all vertices pass along their edges. That vector travels
//! through the symmetric heap: its owners put it, or its readers get it. Two copies of it
//! alternate, so that one barrier a step is enough: a copy is written again only after a barrier
//! that every PE enters when it has read it.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Parser, ValueEnum};
use oxshmem::{Sym, World};
use oxshmem_examples::graph::{Graph, Part};
use oxshmem_examples::pagerank::{self, Params};
use oxshmem_examples::{output, read};

/// Ranks the vertices of a graph by PageRank and prints the top ones.
///
/// Run it under a launcher (`oxshmem run -n 4 pagerank FILE`), or let it launch itself
/// (`pagerank --pes 4 FILE`). Every PE reads the file.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// An edge list or a Matrix Market coordinate file, plain or gzipped. Default: the dependency
    /// graph of Debian's packages, which comes with the example.
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/debian-bookworm.edges.gz"),
          hide_default_value = true)]
    file: PathBuf,
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// Probability to follow an edge.
    #[arg(long, default_value_t = 0.85, value_parser = probability)]
    damping: f64,
    /// Stop when the ranks' changes in one step sum to less than this.
    #[arg(long, default_value_t = 1e-10)]
    tolerance: f64,
    /// Stop after this many steps at the latest.
    #[arg(long, default_value_t = 1000)]
    max_iterations: u32,
    /// How many vertices to print.
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// The method to move the vector that all PEs need.
    #[arg(long, value_enum, default_value_t = Exchange::Put)]
    exchange: Exchange,
    /// Compare the ranks with those of a serial run in PE 0.
    #[arg(long)]
    check: bool,
    /// Write all ranks to this file, a vertex a line.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare the ranks with a file that an earlier run saved.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Exchange {
    /// Each PE puts its share to all others.
    Put,
    /// Each PE gets the shares of all others.
    Get,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 1".into()),
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pagerank: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    output::check(&world, args.save.as_deref())?;
    let graph = read::graph(&args.file)?;
    let params = Params {
        damping: args.damping,
        tolerance: args.tolerance,
        max_iterations: args.max_iterations,
    };
    let ranges = graph.partition(world.n_pes());
    let (vertices, edges) = (graph.vertices(), graph.edges());
    let mine = ranges[world.my_pe()].clone();
    let part = graph.part(mine.clone());
    let out_degree = graph.out_degree()[mine].to_vec();
    // Only PE 0 still needs the names; the others keep only their part.
    let graph = (world.my_pe() == 0).then_some(graph);

    // Two alternating copies of the value that each vertex passes along each of its edges.
    let along = world.alloc::<f64>(2 * vertices)?;
    let sums = world.alloc::<f64>(4)?;
    let mut run = Run {
        world: &world,
        params,
        exchange: args.exchange,
        ranges,
        part,
        out_degree,
        along,
        sums,
    };
    let (ranks, iterations, change, took) = run.iterate(vertices)?;

    run.publish(&ranks)?;
    if let Some(graph) = graph {
        let ranks = run.gather(vertices)?;
        let rate = edges as f64 * f64::from(iterations) / took.as_secs_f64();
        println!(
            "{}: {vertices} vertices, {edges} edges; {} PEs: {iterations} iterations in {:.3} s, \
             {:.1} million edges/s, last change {change:.1e}",
            args.file.display(),
            world.n_pes(),
            took.as_secs_f64(),
            rate / 1e6,
        );
        print_top(&graph, &ranks, args.top);
        verify(args, &params, &graph, &ranks)?;
    }
    world.barrier_all()?; // PE 0 may be reading ranks until now.
    world.free(sums)?;
    world.free(along)?;
    world.finalize()?;
    Ok(())
}

struct Run<'a> {
    world: &'a World,
    params: Params,
    exchange: Exchange,
    ranges: Vec<Range<usize>>,
    part: Part,
    out_degree: Vec<u32>,
    along: Sym<f64>,
    sums: Sym<f64>,
}

impl Run<'_> {
    fn mine(&self) -> Range<usize> {
        self.ranges[self.world.my_pe()].clone()
    }

    /// Returns the ranks of this PE's vertices, the number of steps, the last step's change and the
    /// time.
    fn iterate(&mut self, vertices: usize) -> anyhow::Result<(Vec<f64>, u32, f64, Duration)> {
        let mut ranks = vec![1.0 / vertices as f64; self.part.vertices()];
        let mut mine = vec![0.0; self.part.vertices()];
        let mut along = vec![0.0; vertices];
        let (mut iterations, mut change) = (0, f64::INFINITY);
        self.world.barrier_all()?;
        let start = Instant::now();
        loop {
            let dangling = pagerank::share(&ranks, &self.out_degree, &mut mine);
            let copy = iterations as usize % 2 * vertices;
            self.exchange(self.along.range(copy..copy + vertices)?, &mine, &mut along)?;
            let [dangling, changed] = self.sum([dangling, change])?;
            if changed < self.params.tolerance || iterations == self.params.max_iterations {
                return Ok((ranks, iterations, changed, start.elapsed()));
            }
            change = pagerank::step(
                &self.part,
                &along,
                dangling,
                self.params.damping,
                &mut ranks,
            );
            iterations += 1;
        }
    }

    /// Collects every PE's share in `all` on each PE, by way of `shared`.
    fn exchange(&self, shared: Sym<f64>, mine: &[f64], all: &mut [f64]) -> anyhow::Result<()> {
        let (world, me) = (self.world, self.world.my_pe());
        // Starts with the next PE, so that not all PEs access the same one at a time.
        let others = (1..world.n_pes()).map(|ahead| (me + ahead) % world.n_pes());
        match self.exchange {
            Exchange::Put => {
                let place = shared.range(self.mine())?;
                world.write(place, mine)?;
                for pe in others {
                    world.put(place, mine, pe)?;
                }
                world.barrier_all()?;
                world.read(all, shared)?;
            }
            Exchange::Get => {
                world.write(shared.range(self.mine())?, mine)?;
                world.barrier_all()?;
                all[self.mine()].copy_from_slice(mine);
                for pe in others {
                    let theirs = self.ranges[pe].clone();
                    world.get(&mut all[theirs.clone()], shared.range(theirs)?, pe)?;
                }
            }
        }
        Ok(())
    }

    /// Adds up two numbers over all PEs. All get the same bits, so all end at the same step.
    fn sum(&self, mine: [f64; 2]) -> anyhow::Result<[f64; 2]> {
        let (from, to) = (self.sums.range(..2)?, self.sums.range(2..)?);
        self.world.write(from, &mine)?;
        self.world.sum_reduce(to, from)?;
        let mut sums = [0.0; 2];
        self.world.read(&mut sums, to)?;
        Ok(sums)
    }

    /// Writes this PE's ranks to where PE 0 can get them.
    fn publish(&self, ranks: &[f64]) -> anyhow::Result<()> {
        self.world.barrier_all()?; // The last exchange may still be read.
        self.world.write(self.along.range(self.mine())?, ranks)?;
        self.world.barrier_all()?;
        Ok(())
    }

    /// All ranks, got from their owners.
    fn gather(&self, vertices: usize) -> anyhow::Result<Vec<f64>> {
        let mut ranks = vec![0.0; vertices];
        for (pe, range) in self.ranges.iter().enumerate() {
            self.world.get(
                &mut ranks[range.clone()],
                self.along.range(range.clone())?,
                pe,
            )?;
        }
        Ok(ranks)
    }
}

fn print_top(graph: &Graph, ranks: &[f64], top: usize) {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_unstable_by(|&a, &b| ranks[b].total_cmp(&ranks[a]).then(a.cmp(&b)));
    for (place, vertex) in order.into_iter().take(top).enumerate() {
        println!(
            "{:>4}  {:.6}  {}",
            place + 1,
            ranks[vertex],
            graph.names()[vertex]
        );
    }
}

/// Runs of different sizes add in different orders. Ranks may differ by a rounding error, or by the
/// tolerance if that changes the last step.
fn close_enough(difference: f64, params: &Params) -> bool {
    difference <= params.tolerance.max(1e-12)
}

fn verify(args: &Args, params: &Params, graph: &Graph, ranks: &[f64]) -> anyhow::Result<()> {
    let sum: f64 = ranks.iter().sum();
    ensure!(
        (sum - 1.0).abs() < 1e-9,
        "wrong: the ranks sum to {sum} instead of 1"
    );
    if args.check {
        let serial = pagerank::serial(graph, params);
        let difference = pagerank::max_difference(ranks, &serial.ranks);
        ensure!(
            close_enough(difference, params),
            "wrong: {difference:.1e} off a serial run's ranks"
        );
        println!("checked: ranks sum to 1, at most {difference:.1e} off a serial run");
    }
    if let Some(file) = &args.compare {
        let difference = compare(file, graph, ranks)?;
        let file = file.display();
        ensure!(
            close_enough(difference, params),
            "wrong: {difference:.1e} off the ranks in {file}"
        );
        println!("compared: at most {difference:.1e} off the ranks in {file}");
    }
    if let Some(file) = &args.save {
        save(file, graph, ranks).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn save(file: &Path, graph: &Graph, ranks: &[f64]) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    for (name, rank) in graph.names().iter().zip(ranks) {
        writeln!(out, "{rank:e}\t{name}")?;
    }
    out.flush()
}

fn compare(file: &Path, graph: &Graph, ranks: &[f64]) -> anyhow::Result<f64> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {shown}"))?;
    let mut saved = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let pair = line
            .split_once('\t')
            .and_then(|(r, name)| Some((name, r.parse::<f64>().ok()?)));
        let Some((name, rank)) = pair else {
            bail!(
                "{shown}:{}: not a line that --save wrote; save again",
                number + 1
            );
        };
        saved.insert(name, rank);
    }
    ensure!(
        saved.len() == ranks.len(),
        "{shown} holds {} ranks, this graph has {} vertices: not the same graph",
        saved.len(),
        ranks.len()
    );
    graph
        .names()
        .iter()
        .zip(ranks)
        .try_fold(0.0, |largest: f64, (name, rank)| match saved.get(&**name) {
            Some(other) => Ok(largest.max((rank - other).abs())),
            None => bail!("{shown} has no rank of {name}: not the same graph"),
        })
}
