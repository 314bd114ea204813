//! The comparison of verbs with perftest: the same two PEs measure both sides, by turns.
//!
//! PE 0 is the client and PE 1 the server. While perftest runs, as their children, both PEs sleep.
//! Each round measures every row of both sides. A ratio compares figures of one round, so that
//! noise which affects both does not count.

mod count;
mod ours;
mod perftest;
mod row;
mod table;

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use oxshmem::World;
use oxshmem_verbs::{Statistics, Verbs};
use serde::Serialize;

use crate::gather::gather;
use crate::perf::parameters::Parameters;
use ours::OxshmemBench;
use perftest::Meeting;
use row::{ROWS, Row};
use table::{Compared, Cost};

/// Operations of a round: a multiple of the length of a list.
const LIST: u64 = 16;
/// The duration of each row's operations in a round, about.
const ROW_NS: f64 = 100e6;
const COUNTS: std::ops::RangeInclusive<u64> = 2 * LIST..=10_000;
/// Attempts at a figure of perftest.
const TRIES: usize = 3;
/// Operations whose system calls are counted.
const TRACED: u64 = 10 * LIST;
/// The first TCP port of perftest's servers; later ones use the ports that follow.
const TCP: u16 = 18515;
const TCP_PORTS: u16 = 64;

/// The complete results, as written to files.
#[derive(Serialize)]
pub struct Results {
    parameters: Parameters,
    perftest: String,
    device: String,
    rounds: usize,
    rows: Vec<Compared>,
}

/// The setup that both PEs know.
struct Setup {
    meeting: Meeting,
    /// The name of PE 1's host.
    server: String,
    /// Whether the device is emulated by software.
    software: bool,
    /// Whether strace is installed.
    strace: bool,
}

/// The events shown on PE 0 during the measurement.
pub enum Event<'a> {
    Line(&'a str),
    /// So many rounds are done.
    Round(usize),
}

/// Compares, and returns the results on PE 0. Collective over two PEs.
pub fn compare(
    world: &World,
    verbs: &Arc<Verbs>,
    rounds: usize,
    parameters: impl FnOnce() -> Parameters,
    on_event: &mut dyn FnMut(Event<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Results>> {
    ensure!(
        world.n_pes() == 2,
        "perftest has two ends, and this job {} PEs; start 2",
        world.n_pes()
    );
    let mut line = |text: &str| on_event(Event::Line(text));
    let setup = Setup::new(world)?;
    let mut bench = OxshmemBench::new(world)?;
    let mut turns = Turns {
        world,
        setup,
        next: 0,
    };
    let device = format!(
        "{}:{}",
        turns.setup.meeting.device, turns.setup.meeting.port
    );
    let results = bench.leads().then(|| Results {
        parameters: parameters(),
        perftest: version(),
        device: device.clone(),
        rounds,
        rows: Vec::new(),
    });
    if let Some(results) = &results {
        line(&format!(
            "{}perftest {}, on {device}; {rounds} rounds by turns\n",
            results.parameters, results.perftest
        ))?;
    }
    let rows = measure_rows(&mut bench, &mut turns, verbs, rounds, on_event)?;
    bench.free()?;
    let Some(mut results) = results else {
        return Ok(None);
    };
    show(&rows, turns.setup.strace, on_event)?;
    results.rows = rows;
    Ok(Some(results))
}

/// Measures both sides of every row, by turns, and then the cost of each. Collective.
fn measure_rows(
    bench: &mut OxshmemBench<'_>,
    turns: &mut Turns<'_>,
    verbs: &Arc<Verbs>,
    rounds: usize,
    on_event: &mut dyn FnMut(Event<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Compared>> {
    let mut counts = [0; ROWS.len()];
    for (row, count) in ROWS.iter().zip(&mut counts) {
        *count = calibrate(bench, row)?;
    }
    let mut samples = vec![Vec::with_capacity(rounds); ROWS.len()];
    for round in 0..rounds {
        if bench.leads() {
            on_event(Event::Round(round))?;
        }
        for ((row, &count), samples) in ROWS.iter().zip(&counts).zip(&mut samples) {
            let theirs = turns.perftest(bench, row, count)?;
            let ours = bench.measure(row, count).context(row.name)?;
            turns.world.barrier_all()?;
            samples.push((ours, theirs));
        }
    }
    let software = turns.setup.software;
    let mut rows = Vec::new();
    for ((row, &count), samples) in ROWS.iter().zip(&counts).zip(&samples) {
        let mut compared = Compared::new(row, count, samples, row.unit.bound(software));
        compared.oxshmem_cost = Some(cost(bench, verbs, row, turns.setup.strace)?);
        let calls = turns.perftest_calls(row)?;
        compared.perftest_cost = Some(Cost::posted(row.posting, calls));
        rows.push(compared);
    }
    Ok(rows)
}

/// Shows the two tables.
fn show(
    rows: &[Compared],
    strace: bool,
    on_event: &mut dyn FnMut(Event<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut line = |text: &str| on_event(Event::Line(text));
    line(&table::times_header())?;
    for row in rows {
        line(&row.times())?;
    }
    line("\nFor one operation, on the PE that begins it, oxshmem / perftest:")?;
    line(&table::costs_header())?;
    for row in rows.iter().filter_map(Compared::costs) {
        line(&row)?;
    }
    if !strace {
        line("System calls are not counted: strace is not there (apt install strace).")?;
    }
    Ok(())
}

impl Setup {
    fn new(world: &World) -> anyhow::Result<Setup> {
        let missing: Vec<&str> = ROWS
            .iter()
            .map(|row| row.program)
            .filter(|program| perftest::find(program).is_none())
            .collect();
        let strace = perftest::find("strace").is_some();
        let peer = 1 - world.my_pe();
        let route = world.routes().into_iter().nth(peer);
        let device = route.and_then(|route| route.device).unwrap_or_default();
        let mine = format!(
            "{}\n{}\n{}\n{device}",
            oxshmem_topo::hostname(),
            missing.join(" "),
            if strace { "strace" } else { "" },
        );
        // Each PE needs both answers, or one would wait for the other.
        let both = share(world, &mine)?;
        let field = |pe: usize, at: usize| {
            let lines = both.get(pe).map(String::as_str).unwrap_or_default();
            lines.split('\n').nth(at).unwrap_or_default().to_owned()
        };
        for pe in [0, 1] {
            let missing = field(pe, 1);
            ensure!(
                missing.is_empty(),
                "{missing} not found on {}; install perftest there (apt install perftest)",
                field(pe, 0)
            );
        }
        let (device, port) = device
            .rsplit_once(':')
            .with_context(|| format!("PE {peer} is not reached by an RDMA device"))?;
        let same = field(0, 0) == field(1, 0);
        Ok(Setup {
            software: is_software(device),
            meeting: Meeting {
                device: device.into(),
                port: port.into(),
                tcp: TCP,
            },
            server: if same {
                "localhost".into()
            } else {
                field(1, 0)
            },
            strace: field(0, 2) == "strace",
        })
    }
}

/// Both PEs' texts, on both.
fn share(world: &World, mine: &str) -> anyhow::Result<Vec<String>> {
    let gathered = gather(world, mine)?;
    let text = gathered.join("\0");
    let length = world.alloc_zeroed::<u64>(1)?;
    world.write(length, &[text.len() as u64])?;
    world.broadcast(length, length, 0)?;
    let bytes = world.g(length, world.my_pe())? as usize;
    world.free(length)?;
    let place = world.alloc_zeroed::<u8>(bytes.max(1))?;
    if world.my_pe() == 0 {
        world.write(place, text.as_bytes())?;
    }
    world.broadcast(place, place, 0)?;
    let mut all = vec![0; bytes];
    world.read(&mut all, place.range(..bytes)?)?;
    world.free(place)?;
    let all = String::from_utf8_lossy(&all).into_owned();
    Ok(all.split('\0').map(str::to_owned).collect())
}

/// Whether a device is emulated by software: its parent is no device of a bus.
fn is_software(device: &str) -> bool {
    !std::path::Path::new("/sys/class/infiniband")
        .join(device)
        .join("device")
        .exists()
}

/// perftest's version, as it prints it.
fn version() -> String {
    let output = std::process::Command::new(ROWS[0].program)
        .arg("--version")
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default()
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or("(unknown version)")
        .into()
}

/// The number of operations of a row in a round; the same on both PEs. Also warms up.
fn calibrate(bench: &mut OxshmemBench<'_>, row: &Row) -> anyhow::Result<u64> {
    let start = std::time::Instant::now();
    bench.measure(row, *COUNTS.start()).context(row.name)?;
    let one = start.elapsed().as_nanos() as f64 / *COUNTS.start() as f64;
    let count = ((ROW_NS / one) as u64).clamp(*COUNTS.start(), *COUNTS.end());
    bench.agree(count.next_multiple_of(LIST))
}

/// The cost of oxshmem's operations on PE 0. Collective.
fn cost(
    bench: &mut OxshmemBench<'_>,
    verbs: &Arc<Verbs>,
    row: &Row,
    strace: bool,
) -> anyhow::Result<Cost> {
    // Not traced, because strace makes waits longer.
    let mut asked = |count: u64| -> anyhow::Result<[u64; 3]> {
        let before = verbs.statistics();
        bench.measure(row, count).context(row.name)?;
        let after = verbs.statistics();
        // Other statistics, such as of the message that lets PE 1 go on, are left out.
        bench.agree(0)?;
        let more = |field: fn(&Statistics) -> u64| field(&after).saturating_sub(field(&before));
        Ok([
            more(|s| s.requests),
            more(|s| s.doorbells),
            more(|s| s.completions),
        ])
    };
    let (few, many) = (asked(TRACED)?, asked(3 * TRACED)?);
    let mut calls = |count: u64| -> anyhow::Result<Option<u64>> {
        let tracer = if bench.leads() && strace {
            Some(count::Tracer::attach(count::file("own"))?)
        } else {
            None
        };
        bench.measure(row, count).context(row.name)?;
        let calls = tracer.map(count::Tracer::finish).transpose()?;
        bench.agree(0)?;
        Ok(calls)
    };
    let calls = calls(TRACED)?.zip(calls(3 * TRACED)?);
    let [requests, doorbells, completions] =
        std::array::from_fn(|at| per_operation(few[at], many[at]));
    Ok(Cost {
        system_calls: calls.map(|(few, many)| per_operation(few, many)),
        requests,
        doorbells,
        completions,
    })
}

/// The cost per operation, from counts with `TRACED` operations and with three times as many:
/// constant costs cancel out.
fn per_operation(few: u64, many: u64) -> f64 {
    (many as f64 - few as f64) / (2 * TRACED) as f64
}

/// perftest's side of the rounds.
struct Turns<'w> {
    world: &'w World,
    setup: Setup,
    /// The next TCP port.
    next: u16,
}

impl Turns<'_> {
    /// Does one run; returns its figure on PE 0. Collective.
    fn perftest(&mut self, bench: &OxshmemBench<'_>, row: &Row, count: u64) -> anyhow::Result<f64> {
        for _ in 0..TRIES {
            let figure = self.run(row, count, |at, server| {
                perftest::client(row, at, count, server)
            })?;
            if bench.agree(u64::from(figure != Some(0.0)))? == 1 {
                return Ok(figure.unwrap_or(f64::NAN));
            }
        }
        bail!("perftest found no figure for {} in {TRIES} runs", row.name)
    }

    /// The system calls of one operation, if they can be counted. Collective.
    fn perftest_calls(&mut self, row: &Row) -> anyhow::Result<Option<f64>> {
        if !self.setup.strace {
            return Ok(None);
        }
        let file = count::file("perftest");
        let mut calls = [0; 2];
        for (calls, count) in calls.iter_mut().zip([TRACED, 3 * TRACED]) {
            let made = self.run(row, count, |at, server| {
                perftest::traced_client(row, at, count, server, &file)
            })?;
            *calls = made.unwrap_or(0);
        }
        let [few, many] = calls;
        Ok(Some(per_operation(few, many)))
    }

    /// Runs a server at PE 1, then `client` at PE 0, and returns its result there.
    fn run<T>(
        &mut self,
        row: &Row,
        count: u64,
        client: impl FnOnce(&Meeting, &str) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let at = Meeting {
            tcp: TCP + self.next,
            ..self.setup.meeting.clone()
        };
        self.next = (self.next + 1) % TCP_PORTS;
        let context = || format!("{}: perftest", row.name);
        if self.world.my_pe() == 0 {
            self.world.barrier_all()?;
            let figure = client(&at, &self.setup.server).with_context(context);
            // An error ends this PE, and so the job with the server.
            let figure = figure?;
            self.world.barrier_all()?;
            return Ok(Some(figure));
        }
        let server = perftest::Server::start(row, &at, count).with_context(context)?;
        self.world.barrier_all()?;
        server.finish().with_context(context)?;
        self.world.barrier_all()?;
        Ok(None)
    }
}
