//! The job: how many PEs, what they agreed on, and how each reaches each.

use std::fmt;

use oxshmem::{Result, Route, World};
use oxshmem_figures::units::Rounded;
use serde::{Deserialize, Serialize};

use crate::gather::gather;
use crate::perf::allowed_cpus;

#[derive(Serialize)]
pub struct Seen {
    pes: usize,
    bootstrap: String,
    /// Of each PE, in bytes.
    heap_limit: usize,
    memory_model: String,
    visibility: String,
    /// How collective calls of all PEs move their data.
    collectives: Vec<Collective>,
    /// What each PE tells.
    by_pe: Vec<Told>,
}

#[derive(Serialize)]
struct Collective {
    call: &'static str,
    /// Up to so many bytes from each PE in one arrival, by scratch memory; beyond, directly.
    scratch: usize,
    /// Whether OXSHMEM_COLLECTIVES says so.
    set: bool,
    /// Whether the PEs of each host have a part of it among themselves.
    by_host: bool,
}

/// What one PE tells of itself.
#[derive(Serialize, Deserialize)]
struct Told {
    host: String,
    pid: u32,
    /// The CPUs that it may use.
    cpus: String,
    /// How it reaches each PE.
    routes: Vec<Way>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Way {
    transport: Option<String>,
    mapped: bool,
    /// Best first.
    considered: Vec<Answer>,
}

/// What a transport said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Answer {
    transport: String,
    answer: String,
}

impl Way {
    fn of(route: &Route) -> Self {
        let answers = route.considered.iter();
        Way {
            transport: route.transport.map(str::to_owned),
            mapped: route.mapped,
            considered: answers
                .map(|c| Answer {
                    transport: c.transport.clone(),
                    answer: c.answer.clone(),
                })
                .collect(),
        }
    }

    fn short(&self) -> String {
        match (&self.transport, self.mapped) {
            (None, _) => "none".into(),
            (Some(name), true) => name.clone(),
            (Some(name), false) => format!("{name}*"),
        }
    }
}

/// What PE 0 knows from all PEs; none on the others. Collective.
pub fn see(world: &World) -> Result<Option<Seen>> {
    let me = world.my_pe();
    let mine = Told {
        host: world.hosts().get(me).cloned().unwrap_or_default(),
        pid: std::process::id(),
        cpus: allowed_cpus(),
        routes: world.routes().iter().map(Way::of).collect(),
    };
    // Strings, numbers and lists: there is nothing in it that JSON cannot say.
    let told = gather(world, &serde_json::to_string(&mine).unwrap_or_default())?;
    if me != 0 {
        return Ok(None);
    }
    Ok(Some(Seen {
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
        by_pe: told
            .iter()
            .filter_map(|told| serde_json::from_str(told).ok())
            .collect(),
    }))
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PEs           {}", self.pes)?;
        writeln!(f, "bootstrap     {}", self.bootstrap)?;
        let rounded = Rounded(self.heap_limit);
        writeln!(
            f,
            "heap limit    {rounded} ({} bytes) a PE",
            self.heap_limit
        )?;
        writeln!(f, "memory model  {}", self.memory_model)?;
        writeln!(f, "visibility    {}", self.visibility)?;
        writeln!(f, "\nPE    pid       CPUs          host")?;
        for (pe, told) in self.by_pe.iter().enumerate() {
            writeln!(f, "{pe:<5} {:<9} {:<13} {}", told.pid, told.cpus, told.host)?;
        }
        self.matrix(f)?;
        self.reasons(f)?;
        writeln!(
            f,
            "collective    by scratch memory, in one arrival    beyond"
        )?;
        for collective in &self.collectives {
            let up_to = match collective.scratch {
                0 => "never".into(),
                bytes => format!("up to {} a PE", Rounded(bytes)),
            };
            let levels = match collective.by_host {
                true => ", in each host and across",
                false => "",
            };
            let why = match collective.set {
                true => " (OXSHMEM_COLLECTIVES)",
                false => "",
            };
            writeln!(f, "{:<13} {up_to:<36} direct{levels}{why}", collective.call)?;
        }
        let met = match self.collectives.iter().any(|collective| collective.by_host) {
            true => "those of each host, then across",
            false => "all of them",
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

/// Up to so many PEs the matrix fits a terminal.
const WIDEST: usize = 16;

impl Seen {
    fn matrix(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pes > WIDEST {
            return Ok(());
        }
        let ways = self.by_pe.iter().flat_map(|told| &told.routes);
        let width = ways.map(|way| way.short().len()).max().unwrap_or(0).max(3);
        write!(f, "\n{:<7}", "from\\to")?;
        for pe in 0..self.pes {
            write!(f, "  {pe:>width$}")?;
        }
        writeln!(f)?;
        for (from, told) in self.by_pe.iter().enumerate() {
            write!(f, "{from:<7}")?;
            for way in &told.routes {
                write!(f, "  {:>width$}", way.short())?;
            }
            writeln!(f)?;
        }
        let mut ways = self.by_pe.iter().flat_map(|told| &told.routes);
        if ways.any(|way| way.transport.is_some() && !way.mapped) {
            writeln!(
                f,
                "* by operations on a lane; the others are loaded and stored directly"
            )?;
        }
        Ok(())
    }

    /// Each way once, with the pairs that go it and why.
    fn reasons(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: Vec<(&Way, Vec<Pairs>)> = Vec::new();
        for (from, told) in self.by_pe.iter().enumerate() {
            for (way, to) in told.ways() {
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
                writeln!(f, "PE {} to PE {}:", ranges(&from), ranges(&to))?;
            }
            for Answer { transport, answer } in &way.considered {
                writeln!(f, "    {transport}: {answer}")?;
            }
        }
        Ok(())
    }
}

impl Told {
    /// Each way that this PE goes, and to which PEs.
    fn ways(&self) -> Vec<(&Way, Vec<usize>)> {
        let mut ways: Vec<(&Way, Vec<usize>)> = Vec::new();
        for (to, way) in self.routes.iter().enumerate() {
            match ways.iter_mut().find(|(known, _)| *known == way) {
                Some((_, targets)) => targets.push(to),
                None => ways.push((way, vec![to])),
            }
        }
        ways
    }
}

/// From each of some PEs to each of others.
struct Pairs {
    from: Vec<usize>,
    to: Vec<usize>,
}

impl Pairs {
    /// Origins with the same targets share an entry.
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

/// Ascending numbers as `0-3,5`.
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

    fn way(transport: Option<&str>, mapped: bool, answer: &str) -> Way {
        Way {
            transport: transport.map(str::to_owned),
            mapped,
            considered: vec![Answer {
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

    fn seen(by_pe: Vec<Vec<Way>>) -> String {
        seen_with(
            vec![
                collective("reduce", 0, false, true),
                collective("collect", 0, false, false),
            ],
            by_pe,
        )
    }

    fn seen_with(collectives: Vec<Collective>, by_pe: Vec<Vec<Way>>) -> String {
        Seen {
            pes: by_pe.len(),
            bootstrap: "none".into(),
            heap_limit: 4096,
            memory_model: "ordered".into(),
            visibility: "local".into(),
            collectives,
            by_pe: by_pe
                .into_iter()
                .map(|routes| Told {
                    host: "h".into(),
                    pid: 1,
                    cpus: "0".into(),
                    routes,
                })
                .collect(),
        }
        .to_string()
    }

    #[test]
    fn pairs_that_go_the_same_way_share_its_reasons() {
        let (near, far) = (
            way(Some("loopback"), true, "same host"),
            way(None, false, "elsewhere"),
        );
        let text = seen(vec![
            vec![near.clone(), near.clone(), far.clone()],
            vec![near.clone(), near.clone(), far.clone()],
            vec![far.clone(), far, near],
        ]);
        assert!(
            text.contains("PE 0-1 to PE 0-1:\nPE 2 to PE 2:\n    loopback: same host"),
            "{text}"
        );
        assert!(
            text.contains("PE 0-1 to PE 2:\nPE 2 to PE 0-1:\n    loopback: elsewhere"),
            "{text}"
        );
        assert!(text.contains("loopback  loopback      none"), "{text}");
        let ends = ["never direct, in each host and across", "never direct"];
        let mut last = text.lines().rev();
        let met = last.next().unwrap();
        assert!(
            met.ends_with("in rounds: those of each host, then across"),
            "{met}"
        );
        for (line, end) in last.skip(1).zip(ends.iter().rev()) {
            let words: Vec<_> = line.split_whitespace().skip(1).collect();
            assert_eq!(words.join(" "), *end);
        }
    }

    #[test]
    fn collectives_are_shown_as_they_go() {
        let own = vec![vec![way(Some("loopback"), true, "same host")]];
        let collectives = vec![
            collective("reduce", 2048, false, true),
            collective("scan", 512, true, false),
            collective("alltoall", 0, true, false),
        ];
        let text = seen_with(collectives, own);
        let mut rows = text.lines().skip_while(|line| !line.starts_with("reduce "));
        for expected in [
            "reduce up to 2.0 KiB a PE direct, in each host and across",
            "scan up to 512 B a PE direct (OXSHMEM_COLLECTIVES)",
            "alltoall never direct (OXSHMEM_COLLECTIVES)",
        ] {
            let words: Vec<_> = rows.next().unwrap_or_default().split_whitespace().collect();
            assert_eq!(words.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn many_pes_are_shown_by_reason_only() {
        let text = seen(vec![vec![way(Some("loopback"), true, "same host"); 40]; 40]);
        assert!(!text.contains("from\\to"), "{text}");
        assert!(text.contains("PE 0-39 to PE 0-39:"), "{text}");
    }
}
