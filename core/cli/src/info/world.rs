//! The job: its PEs, the settings that they agreed on, and the route of each pair.

use std::fmt;

use oxshmem::{Result, Route, World};
use oxshmem_figures::units::Rounded;
use serde::{Deserialize, Serialize};

use crate::gather::gather;
use crate::job::allowed_cpus;

#[derive(Serialize)]
pub struct JobReport {
    pes: usize,
    bootstrap: String,
    /// Bytes of each PE's heap.
    heap_limit: usize,
    memory_model: String,
    visibility: String,
    /// How collective calls of all PEs move their data.
    collectives: Vec<Collective>,
    /// Each PE's report.
    by_pe: Vec<PeReport>,
}

#[derive(Serialize)]
struct Collective {
    call: &'static str,
    /// The largest contribution of a PE, in bytes, that uses scratch memory in one synchronisation;
    /// larger ones go directly.
    scratch: usize,
    /// Whether OXSHMEM_COLLECTIVES sets it.
    set: bool,
    /// Whether the PEs of each host do a part of it among themselves.
    by_host: bool,
}

/// One PE's report of itself.
#[derive(Serialize, Deserialize)]
struct PeReport {
    /// The host identifier by which PEs know whether they share memory.
    host: String,
    hostname: String,
    pid: u32,
    /// The CPUs that it may use.
    cpus: String,
    /// The route to each PE.
    routes: Vec<RouteReport>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RouteReport {
    transport: Option<String>,
    device: Option<String>,
    mapped: bool,
    /// Ordered from best to worst.
    considered: Vec<TransportAnswer>,
}

/// A transport's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TransportAnswer {
    transport: String,
    answer: String,
}

impl RouteReport {
    fn of(route: &Route) -> Self {
        let answers = route.considered.iter();
        RouteReport {
            transport: route.transport.map(str::to_owned),
            device: route.device.clone(),
            mapped: route.mapped,
            considered: answers
                .map(|c| TransportAnswer {
                    transport: c.transport.clone(),
                    answer: c.answer.clone(),
                })
                .collect(),
        }
    }

    fn short(&self) -> String {
        let Some(transport) = &self.transport else {
            let refusals = self.considered.iter();
            let refusals = refusals.map(|c| format!("{}: {}", c.transport, c.answer));
            return format!(
                "by no transport; {}",
                refusals.collect::<Vec<_>>().join("; ")
            );
        };
        let device = self.device.iter().map(|device| format!(" ({device})"));
        let device: String = device.collect();
        let how = if self.mapped {
            "loaded and stored directly"
        } else {
            "by operations on a lane"
        };
        format!("{transport}{device}, {how}")
    }
}

/// Collects the reports of all PEs at PE 0; `None` on the others. Collective.
pub fn see(world: &World) -> Result<Option<JobReport>> {
    let me = world.my_pe();
    let mine = PeReport {
        host: world.hosts().get(me).cloned().unwrap_or_default(),
        hostname: oxshmem_topo::hostname(),
        pid: std::process::id(),
        cpus: allowed_cpus(),
        routes: world.routes().iter().map(RouteReport::of).collect(),
    };
    // Strings, numbers and lists only: JSON can represent all of it.
    let reports = gather(world, &serde_json::to_string(&mine).unwrap_or_default())?;
    if me != 0 {
        return Ok(None);
    }
    Ok(Some(JobReport {
        pes: world.n_pes(),
        bootstrap: world.bootstrap(),
        heap_limit: world.heap_limit(),
        memory_model: format!("{:?}", world.model()).to_lowercase(),
        visibility: format!("{:?}", world.visibility()).to_lowercase(),
        collectives: world
            .collective_choices()
            .iter()
            .map(|choice| Collective {
                call: choice.call,
                scratch: choice.scratch,
                set: choice.set,
                by_host: choice.by_host,
            })
            .collect(),
        by_pe: reports
            .iter()
            .filter_map(|report| serde_json::from_str(report).ok())
            .collect(),
    }))
}

impl fmt::Display for JobReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PEs           {}, by {}", self.pes, self.bootstrap)?;
        writeln!(f, "heap limit    {} a PE", Rounded(self.heap_limit))?;
        writeln!(
            f,
            "memory model  {}; visibility {}",
            self.memory_model, self.visibility
        )?;
        self.places(f)?;
        self.routes(f)
    }
}

impl JobReport {
    /// Writes where the PEs run. PEs of a host with the same CPUs share a line.
    fn places(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut places: Vec<(&PeReport, Vec<usize>)> = Vec::new();
        for (pe, report) in self.by_pe.iter().enumerate() {
            let place = |report: &PeReport| (report.host.clone(), report.cpus.clone());
            match places
                .iter_mut()
                .find(|(known, _)| place(known) == place(report))
            {
                Some((_, pes)) => pes.push(pe),
                None => places.push((report, vec![pe])),
            }
        }
        writeln!(f)?;
        for (report, pes) in places {
            let pes = ranges(&pes);
            writeln!(f, "PE {pes} on {}, CPUs {}", report.hostname, report.cpus)?;
        }
        Ok(())
    }

    /// Writes each route once, with the pairs that use it.
    fn routes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: Vec<(String, Vec<Pairs>)> = Vec::new();
        for (from, report) in self.by_pe.iter().enumerate() {
            for (way, to) in report.ways() {
                match groups.iter_mut().find(|(known, _)| *known == way) {
                    Some((_, pairs)) => Pairs::add(pairs, from, to),
                    None => groups.push((
                        way,
                        vec![Pairs {
                            from: vec![from],
                            to,
                        }],
                    )),
                }
            }
        }
        writeln!(f)?;
        for (way, pairs) in groups {
            for Pairs { from, to } in pairs {
                writeln!(f, "PE {} to PE {}: {way}", ranges(&from), ranges(&to))?;
            }
        }
        Ok(())
    }

    /// Writes how collective calls move data.
    pub fn collectives(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "collective    by scratch memory, in one arrival    beyond"
        )?;
        for collective in &self.collectives {
            let up_to = match collective.scratch {
                0 => "never".into(),
                bytes => format!("up to {} a PE", Rounded(bytes)),
            };
            let levels = if collective.by_host {
                ", in each host and across"
            } else {
                ""
            };
            let why = if collective.set {
                " (OXSHMEM_COLLECTIVES)"
            } else {
                ""
            };
            writeln!(f, "{:<13} {up_to:<36} direct{levels}{why}", collective.call)?;
        }
        let met = if self.collectives.iter().any(|collective| collective.by_host) {
            "those of each host, then across"
        } else {
            "all of them"
        };
        writeln!(
            f,
            "reduce_scatter goes as alltoall, inscan and exscan as scan"
        )?;
        writeln!(
            f,
            "PEs meet, by barrier, sync and in all of these, in rounds: {met}"
        )
    }
}

impl PeReport {
    /// The distinct routes from this PE, each with its target PEs.
    fn ways(&self) -> Vec<(String, Vec<usize>)> {
        let mut ways: Vec<(String, Vec<usize>)> = Vec::new();
        for (to, way) in self.routes.iter().map(RouteReport::short).enumerate() {
            match ways.iter_mut().find(|(known, _)| *known == way) {
                Some((_, targets)) => targets.push(to),
                None => ways.push((way, vec![to])),
            }
        }
        ways
    }
}

/// All pairs from some PEs to others.
struct Pairs {
    from: Vec<usize>,
    to: Vec<usize>,
}

impl Pairs {
    /// Adds pairs; origins with the same targets share an entry.
    fn add(all: &mut Vec<Pairs>, from: usize, to: Vec<usize>) {
        match all.iter_mut().find(|pairs| pairs.to == to) {
            Some(pairs) => pairs.from.push(from),
            None => all.push(Pairs {
                from: vec![from],
                to,
            }),
        }
    }
}

/// Formats ascending numbers as `0-3,5`.
pub fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |&(start, end): &(usize, usize)| {
        if start == end {
            start.to_string()
        } else {
            format!("{start}-{end}")
        }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 5, 7, 8]), "0-3,5,7-8");
        assert_eq!(ranges(&[]), "");
    }

    fn way(transport: Option<&str>, mapped: bool, answer: &str) -> RouteReport {
        RouteReport {
            transport: transport.map(str::to_owned),
            device: transport.map(|_| "memory".into()),
            mapped,
            considered: vec![TransportAnswer {
                transport: "loopback".into(),
                answer: answer.into(),
            }],
        }
    }

    fn collective(call: &'static str, scratch: usize, set: bool, by_host: bool) -> Collective {
        Collective {
            call,
            scratch,
            set,
            by_host,
        }
    }

    /// The shown text; the flag adds that of the collectives.
    struct Shown<'a>(&'a JobReport, bool);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if self.1 {
                self.0.collectives(f)
            } else {
                self.0.fmt(f)
            }
        }
    }

    fn seen(by_pe: Vec<Vec<RouteReport>>) -> String {
        Shown(&seen_with(Vec::new(), by_pe), false).to_string()
    }

    fn seen_with(collectives: Vec<Collective>, by_pe: Vec<Vec<RouteReport>>) -> JobReport {
        JobReport {
            pes: by_pe.len(),
            bootstrap: "none".into(),
            heap_limit: 4096,
            memory_model: "ordered".into(),
            visibility: "local".into(),
            collectives,
            by_pe: by_pe
                .into_iter()
                .map(|routes| PeReport {
                    host: "id".into(),
                    hostname: "h".into(),
                    pid: 1,
                    cpus: "0".into(),
                    routes,
                })
                .collect(),
        }
    }

    #[test]
    fn pairs_that_go_the_same_way_are_told_together() {
        let (local, remote) = (
            way(Some("loopback"), true, "same host"),
            way(None, false, "elsewhere"),
        );
        // Answers that differ do not matter where a transport was chosen.
        let other = way(Some("loopback"), true, "the same host");
        let text = seen(vec![
            vec![local.clone(), other, remote.clone()],
            vec![local.clone(), local.clone(), remote.clone()],
            vec![remote.clone(), remote, local],
        ]);
        let mapped = "loopback (memory), loaded and stored directly";
        let none = "by no transport; loopback: elsewhere";
        let expected = format!(
            "\nPE 0-1 to PE 0-1: {mapped}\nPE 2 to PE 2: {mapped}\nPE 0-1 to PE 2: {none}\n\
             PE 2 to PE 0-1: {none}\n"
        );
        assert!(text.ends_with(&expected), "{text}");
        assert!(text.contains("\nPE 0-2 on h, CPUs 0\n"), "{text}");
    }

    #[test]
    fn collectives_are_shown_as_they_go() {
        let own = vec![vec![way(Some("loopback"), true, "same host")]];
        let collectives = vec![
            collective("reduce", 2048, false, true),
            collective("scan", 512, true, false),
            collective("alltoall", 0, true, false),
        ];
        let text = Shown(&seen_with(collectives, own), true).to_string();
        let mut rows = text.lines().skip_while(|line| !line.starts_with("reduce "));
        for expected in [
            "reduce up to 2.0 KiB a PE direct, in each host and across",
            "scan up to 512 B a PE direct (OXSHMEM_COLLECTIVES)",
            "alltoall never direct (OXSHMEM_COLLECTIVES)",
        ] {
            let words: Vec<_> = rows.next().unwrap_or_default().split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "{text}");
        }
        let met = text.lines().last().unwrap();
        assert!(
            met.ends_with("in rounds: those of each host, then across"),
            "{met}"
        );
    }

    #[test]
    fn many_pes_take_few_lines() {
        let text = seen(vec![vec![way(Some("loopback"), true, "same host"); 40]; 40]);
        assert!(text.contains("PE 0-39 to PE 0-39:"), "{text}");
        assert!(text.lines().count() < 8, "{text}");
    }
}
