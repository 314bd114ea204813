//! The check of a job: the hosts' set-ups first, by the bootstrap alone, then the links, by the library.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use oxshmem::{World, bindings};
use oxshmem_bootstrap::{Bootstrap, exchange};
use serde::{Deserialize, Serialize};

use super::args::Args;
use super::compare::{clocks, compare};
use super::finding::Finding;
use super::host::{self, Host};
use super::judge::{self, Judge, Named};
use super::link_findings;
use super::links::{Prober, Share};
use super::measured::Measured;
use super::members::{self, Member};
use super::report::{Out, Pattern, Results};
use super::schedule::{Rounds, bisection};
use super::system::System;
use crate::gather::gather;
use crate::output;

/// The limit of a wait for another PE, where none is set: a link that carries nothing is told, and nothing hangs.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Time that PE 0 has for its results before the others end, and the job by that.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Exchanges of clocks.
const EXCHANGES: usize = 5;
/// How often links that look slow are measured again, and the pause before, which grows from turn to turn.
const TURNS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// The duration that all hosts send at once, by the bandwidth of the slowest link.
const PATTERN: f64 = 0.1;

/// The hosts of the job, as every PE knows them.
struct Hosts {
    /// The number of each PE's host.
    of_pe: Vec<usize>,
    /// The first PE of each host.
    leaders: Vec<usize>,
    names: Vec<String>,
    /// Their set-ups, on PE 0.
    all: Vec<Host>,
}

pub fn main(args: &Args, system: &System) -> anyhow::Result<ExitCode> {
    let deadline = bindings::bootstrap_deadline()?;
    let bootstrap = oxshmem_bootstrap::join(&bindings::variable, deadline)?;
    let me = bootstrap.rank() as usize;
    let hosts = Hosts::gather(args, &*bootstrap, system)?;
    let times = exchange_clocks(&*bootstrap, &hosts)?;
    let mut out = (me == 0).then(|| Out::new(args));
    let mut results = Results::new(args, me, &hosts.names, &hosts.all);
    results.setup = compare(&hosts.all, &hosts.names);
    results.setup.extend(clocks(&times, &hosts.names));
    let measures = !args.host_only && hosts.leaders.len() > 1;
    if !measures && !args.host_only {
        let text = "the job is on one host: start it on several for the links between them";
        results.setup.push(Finding::ok("links", text));
    }
    if let Some(out) = &mut out {
        out.check_writable(args)?;
        out.setup(&results, bootstrap.size() as usize)?;
    }
    if !measures {
        bootstrap.barrier()?;
        bootstrap.leave();
        bootstrap.outlast();
        return out.map_or(Ok(ExitCode::SUCCESS), |out| out.finish(args, &results));
    }
    let world = match join(bootstrap) {
        // PE 0 tells the reason, and the job fails through it.
        Err(_) if me != 0 => return Ok(ExitCode::SUCCESS),
        joined => joined?,
    };
    match links(args, &world, system, &hosts, &mut results, out.as_mut()) {
        Ok(()) => {}
        Err(error) if error.is::<output::Closed>() => return Err(error),
        Err(error) => {
            // Printed before the others lose this PE and the job ends.
            let text = output::with_causes(&error);
            output::complain("check", &format!("PE {me}: {text}"));
            match out {
                None => std::thread::sleep(LAST_WORDS),
                Some(out) if !results.members.is_empty() => {
                    let mend = "look at the hosts that are named above, and give slow links less to do (--size)";
                    let told = Finding::fault("all at once", text, mend);
                    results.links.push(told);
                    out.finish(args, &results)?;
                }
                Some(_) => {}
            }
            return Ok(ExitCode::FAILURE);
        }
    }
    world.finalize()?;
    out.map_or(Ok(ExitCode::SUCCESS), |out| out.finish(args, &results))
}

fn join(bootstrap: Arc<dyn Bootstrap>) -> anyhow::Result<World> {
    let builder = World::builder().bootstrap(bootstrap);
    let builder = match bindings::variable("OXSHMEM_TIMEOUT") {
        Some(_) => builder,
        None => builder.timeout(TIMEOUT),
    };
    builder
        .join()
        .context("the hosts cannot form a job, so no link is measured")
}

impl Hosts {
    /// Looks at each host once, and gathers what was seen. Collective.
    fn gather(args: &Args, bootstrap: &dyn Bootstrap, system: &System) -> anyhow::Result<Hosts> {
        let me = bootstrap.rank() as usize;
        let id = if args.each_pe {
            format!("PE {me}")
        } else {
            bindings::host_id()
        };
        let ids: Vec<String> = exchange(bootstrap, &id)?;
        let of_pe = members::host_numbers(&ids);
        let count = of_pe.iter().max().map_or(0, |last| last + 1);
        let leaders: Vec<usize> = (0..count)
            .filter_map(|host| of_pe.iter().position(|other| *other == host))
            .collect();
        let mine = leaders.contains(&me).then(|| host::see(system));
        let seen: Vec<Option<Host>> = exchange(bootstrap, &mine)?;
        let all: Vec<Host> = leaders
            .iter()
            .map(|leader| seen.get(*leader).cloned().flatten().unwrap_or_default())
            .collect();
        let hostnames: Vec<String> = all.iter().map(|host| host.hostname.clone()).collect();
        let ids: Vec<String> = leaders
            .iter()
            .filter_map(|pe| ids.get(*pe).cloned())
            .collect();
        Ok(Hosts {
            names: members::host_names(&hostnames, &ids),
            of_pe,
            leaders,
            all,
        })
    }
}

/// The clocks of the hosts in some exchanges, in seconds. Collective.
fn exchange_clocks(bootstrap: &dyn Bootstrap, hosts: &Hosts) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut exchanges = Vec::new();
    for _ in 0..EXCHANGES {
        // All leave the barrier at about the same time.
        bootstrap.barrier()?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let all: Vec<f64> = exchange(bootstrap, &now.as_secs_f64())?;
        let of_leaders = hosts.leaders.iter().filter_map(|pe| all.get(*pe).copied());
        exchanges.push(of_leaders.collect());
    }
    Ok(exchanges)
}

/// Measures and judges the links. Collective; PE 0 keeps the results.
fn links(
    args: &Args,
    world: &World,
    system: &System,
    hosts: &Hosts,
    results: &mut Results,
    mut out: Option<&mut Out>,
) -> anyhow::Result<()> {
    let errors = errors_of_ports(world, system, hosts)?;
    let ways = members::ways(world, &hosts.of_pe)?;
    let mut all = members::members(&ways, &hosts.of_pe, &hosts.names);
    let pes: Vec<u64> = all.iter().map(|member| member.pe as u64).collect();
    let pes: Vec<usize> = tell(world, &pes)?.iter().map(|pe| *pe as usize).collect();
    // Only PE 0 knows their names; the others need their hosts.
    if world.my_pe() != 0 {
        all = pes
            .iter()
            .map(|pe| Member::unnamed(*pe, hosts.of_pe.get(*pe)))
            .collect();
    }
    let count = pes.len();
    let mut prober = Prober::new(world, args.effort(), pes).with_context(|| {
        format!(
            "blocks of {} bytes (see --size, and OXSHMEM_SYMMETRIC_SIZE)",
            args.effort().block_bytes
        )
    })?;
    let mut rounds = args.schedule(count);
    apart(&mut rounds, &all);
    let mut found = Vec::new();
    for (at, round) in rounds.iter().enumerate() {
        if let Some(out) = &mut out {
            out.progress(at, rounds.len());
        }
        found.extend(prober.round(round)?);
    }
    let found = gather_all(world, &found)?;
    let rates = rates_of(&all, hosts);
    let mut measured = Measured::of(count, &found);
    let judge = Judge {
        members: &all,
        rates: &rates,
        tolerance: args.tolerance(),
        latency: !args.no_latency,
    };
    let named = confirmed(world, &mut prober, &mut measured, judge)?;
    results.links = link_findings::findings(&named, &measured, judge, args.fail_below);
    results.rounds = rounds.len();
    results.members = all;
    results.measured = measured;
    results.patterns = patterns(world, &mut prober, count, &results.measured)?;
    prober.free()?;
    let after = errors_of_ports(world, system, hosts)?;
    results.links.extend(grown(&errors, &after, hosts));
    let wrong: u64 = results.patterns.iter().map(|pattern| pattern.wrong).sum();
    if wrong > 0 {
        let text = format!("{wrong} words of data arrived wrong while all hosts sent at once");
        let mend = "look for memory errors (EDAC) and at the NICs' firmware";
        results.links.push(Finding::fault("data", text, mend));
    }
    Ok(())
}

/// Names what is slow, on PE 0. It is measured again first, without other traffic, until nothing is named or all
/// turns are over. Collective.
fn confirmed(
    world: &World,
    prober: &mut Prober<'_>,
    measured: &mut Measured,
    judge: Judge<'_>,
) -> anyhow::Result<Named> {
    let mut named = judge::named(measured, judge, &[]);
    let (mut second, mut looked_at) = (Vec::new(), Vec::new());
    for turn in 1..=TURNS {
        let (pairs, whole) = judge::again(&named, judge.members.len());
        looked_at.extend(whole);
        looked_at.sort_unstable();
        looked_at.dedup();
        let words = pairs.iter().flat_map(|(a, b)| [*a as u64, *b as u64]);
        let words = tell(world, &words.collect::<Vec<u64>>())?;
        let (pairs, _) = words.as_chunks::<2>();
        let mut pairs: Rounds = pairs
            .iter()
            .map(|[a, b]| vec![(*a as usize, *b as usize)])
            .collect();
        apart(&mut pairs, judge.members);
        if pairs.is_empty() {
            break;
        }
        // Some other work of a host is over after a while.
        std::thread::sleep(PAUSE * turn);
        let mut links = Vec::new();
        for pair in &pairs {
            links.extend(prober.round(pair)?);
        }
        let links = gather_all(world, &links)?;
        if world.my_pe() == 0 {
            second.extend(links);
            named = judge::named_again(measured, &second, &looked_at, judge);
        }
    }
    measured
        .wrong
        .extend(Measured::of(judge.members.len(), &second).wrong);
    Ok(named)
}

/// Leaves out pairs of NICs of one host.
fn apart(rounds: &mut Rounds, members: &[Member]) {
    let host = |member: usize| members.get(member).map(|member| member.host);
    for round in rounds.iter_mut() {
        round.retain(|&(a, b)| host(a) != host(b));
    }
    rounds.retain(|round| !round.is_empty());
}

/// PE 0's numbers, on every PE. Collective.
fn tell(world: &World, numbers: &[u64]) -> oxshmem::Result<Vec<u64>> {
    let me = world.my_pe();
    let word = world.alloc_zeroed::<u64>(1)?;
    if me == 0 {
        world.write(word, &[numbers.len() as u64])?;
    }
    world.broadcast(word, word, 0)?;
    let count = world.g(word, me)? as usize;
    world.free(word)?;
    let list = world.alloc_zeroed::<u64>(count.max(1))?;
    if me == 0 {
        world.write(list.range(..count)?, numbers)?;
    }
    world.broadcast(list, list, 0)?;
    let mut told = vec![0; count];
    world.read(&mut told, list.range(..count)?)?;
    world.free(list)?;
    Ok(told)
}

/// Every PE's items, on PE 0. Collective.
fn gather_all<T: Serialize + for<'de> Deserialize<'de>>(
    world: &World,
    mine: &[T],
) -> anyhow::Result<Vec<T>> {
    let texts = gather(world, &serde_json::to_string(mine)?)?;
    let read = |text: &String| serde_json::from_str::<Vec<T>>(text).context("a PE's results");
    Ok(texts
        .iter()
        .map(read)
        .collect::<anyhow::Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// The counters of errors of each host's ports, on PE 0. Collective.
fn errors_of_ports(
    world: &World,
    system: &System,
    hosts: &Hosts,
) -> anyhow::Result<Vec<(usize, BTreeMap<String, u64>)>> {
    let me = world.my_pe();
    let mine: Vec<(usize, BTreeMap<String, u64>)> = hosts
        .leaders
        .iter()
        .position(|leader| *leader == me)
        .map(|host| (host, host::errors(system)))
        .into_iter()
        .collect();
    gather_all(world, &mine)
}

/// Warnings for counters of errors that grew.
fn grown(
    before: &[(usize, BTreeMap<String, u64>)],
    after: &[(usize, BTreeMap<String, u64>)],
    hosts: &Hosts,
) -> Vec<Finding> {
    let earlier: BTreeMap<(usize, &str), u64> = before
        .iter()
        .flat_map(|(host, errors)| {
            errors
                .iter()
                .map(|(name, value)| ((*host, &**name), *value))
        })
        .collect();
    let mut found = Vec::new();
    for (host, errors) in after {
        for (counter, value) in errors {
            let old = earlier
                .get(&(*host, counter.as_str()))
                .copied()
                .unwrap_or(*value);
            if *value > old {
                let name = hosts.names.get(*host).map_or("?", String::as_str);
                let text = format!("{counter} grew by {} during the check", value - old);
                let mend =
                    "clean or replace the cable or the transceiver, and look at the switch's port";
                found.push(Finding::warning(format!("host {name}"), text, mend));
            }
        }
    }
    found
}

/// Bytes per second of the members' NICs, where they are known.
fn rates_of(members: &[Member], hosts: &Hosts) -> Vec<Option<f64>> {
    let rate = |member: &Member| {
        let rates = &hosts.all.get(member.host)?.rates;
        Some(rates.get(&member.rail)? * 1e9)
    };
    members.iter().map(rate).collect()
}

/// The members to which a member sends.
type Targets<'t> = &'t dyn Fn(usize) -> Vec<usize>;

/// All hosts send at once: in a ring, each to all, and across a bisection. Collective.
fn patterns(
    world: &World,
    prober: &mut Prober<'_>,
    count: usize,
    measured: &Measured,
) -> anyhow::Result<Vec<Pattern>> {
    // By the slowest link, which would take all too long for more.
    let least = measured.least().unwrap_or(0.0);
    let bytes = tell(world, &[(least * PATTERN) as u64])?;
    let bytes = bytes.first().copied().unwrap_or_default() as f64;
    let halves = bisection(count);
    let across = |member: usize| {
        let pair = halves.iter().find(|(a, b)| *a == member || *b == member);
        let other = pair.map(|&(a, b)| if a == member { b } else { a });
        other.into_iter().collect::<Vec<_>>()
    };
    let kinds: [(&'static str, Targets<'_>); 3] = [
        ("ring", &|member| vec![(member + 1) % count]),
        ("all to all", &|member| {
            (1..count).map(|step| (member + step) % count).collect()
        }),
        ("bisection", &across),
    ];
    let mut patterns = Vec::new();
    for (name, targets) in kinds {
        let mine = prober.all_at_once(bytes, targets)?;
        let shares: Vec<Share> = gather_all(world, mine.as_slice())?;
        patterns.push(Pattern::of(name, &shares));
    }
    Ok(patterns)
}
