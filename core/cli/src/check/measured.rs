//! Figures of all links as matrices over the members, and the names of what is slow.

use std::collections::BTreeMap;

use oxshmem_figures::units::{PerSecond, Time};

use super::args::Least;
use super::finding::Finding;
use super::links::Link;
use super::members::Member;
use super::statistics::{Matrix, Outliers, Slow, better_median, outliers};

/// A latency is named from twice the usual one on.
const LATENCY_TOLERANCE: f64 = 0.5;
/// The bandwidth of both ways depends on more than the link: a smaller difference means nothing.
const BOTH_WAYS_TOLERANCE: f64 = 0.4;
/// A share of their rate that links are expected to reach.
const EXPECTED: f64 = 0.6;
/// Lines of one kind at most.
const MOST_LINES: usize = 16;

/// The figures of all links. Bandwidths are bytes per second, latencies nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub one_way: Matrix,
    pub both_ways: Matrix,
    pub latency: Matrix,
    /// Words with wrong data, from a member to another.
    pub wrong: Vec<(usize, usize, u64)>,
}

impl Measured {
    /// The medians of all measurements of each link.
    pub fn of(members: usize, links: &[Link]) -> Self {
        let median = |values: &[f64]| better_median(values.iter().copied());
        Self::by(members, links, median, median)
    }

    /// The best of all measurements of each link.
    fn best_of(members: usize, links: &[Link]) -> Self {
        let most = |values: &[f64]| values.iter().copied().max_by(f64::total_cmp);
        let least = |values: &[f64]| values.iter().copied().min_by(f64::total_cmp);
        Self::by(members, links, most, least)
    }

    /// One figure of each link from all its measurements: of bandwidths, and of latencies.
    fn by(
        members: usize,
        links: &[Link],
        bandwidth: fn(&[f64]) -> Option<f64>,
        latency: fn(&[f64]) -> Option<f64>,
    ) -> Self {
        let mut by_link: BTreeMap<(usize, usize), Vec<&Link>> = BTreeMap::new();
        for link in links
            .iter()
            .filter(|link| link.from < members && link.to < members)
        {
            by_link.entry((link.from, link.to)).or_default().push(link);
        }
        let empty = vec![vec![None; members]; members];
        let mut measured = Measured {
            one_way: empty.clone(),
            both_ways: empty.clone(),
            latency: empty,
            wrong: Vec::new(),
        };
        for (&(from, to), links) in &by_link {
            let of =
                |value: fn(&Link) -> f64| links.iter().map(|link| value(link)).collect::<Vec<_>>();
            measured.one_way[from][to] = bandwidth(&of(|link| link.one_way));
            measured.both_ways[from][to] = bandwidth(&of(|link| link.both_ways));
            measured.latency[from][to] = latency(&of(|link| link.latency));
            let wrong: u64 = links.iter().map(|link| link.wrong).sum();
            if wrong > 0 {
                // The receiver found it.
                measured.wrong.push((to, from, wrong));
            }
        }
        measured
    }

    /// The usual bandwidth one way.
    pub fn usual(&self) -> Option<f64> {
        better_median(cells(&self.one_way).map(|(_, _, value)| value))
    }

    /// The least bandwidth one way.
    pub fn least(&self) -> Option<f64> {
        cells(&self.one_way)
            .map(|(_, _, value)| value)
            .min_by(f64::total_cmp)
    }

    /// Takes the better figures of a second measurement. Of each member in `again`, the links that were not
    /// measured again no longer count.
    pub fn with_again(&self, links: &[Link], again: &[usize]) -> Self {
        let members = self.one_way.len();
        let second = Measured::best_of(members, links);
        let merge = |first: &Matrix, second: &Matrix, better: fn(f64, f64) -> f64| -> Matrix {
            let cell = |from: usize, to: usize| {
                let (one, two) = (first[from][to], second[from][to]);
                match (one, two) {
                    (Some(one), Some(two)) => Some(better(one, two)),
                    _ if again.contains(&from) || again.contains(&to) => None,
                    _ => one,
                }
            };
            (0..members)
                .map(|from| (0..members).map(|to| cell(from, to)).collect())
                .collect()
        };
        Measured {
            one_way: merge(&self.one_way, &second.one_way, f64::max),
            both_ways: merge(&self.both_ways, &second.both_ways, f64::max),
            latency: merge(&self.latency, &second.latency, f64::min),
            wrong: second.wrong,
        }
    }
}

/// Something that is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Rail(String),
    Member(usize),
    /// The smaller member first.
    Link(usize, usize),
}

/// Everything that is named, each with its reasons, by the place of the metric and the direction.
pub type Named = BTreeMap<Subject, BTreeMap<(u8, String), String>>;

/// A metric, as a matrix of goodness.
struct Metric<'m> {
    /// Its place among the metrics.
    place: u8,
    /// The word before its figures.
    word: &'static str,
    matrix: Matrix,
    tolerance: f64,
    scale: &'m Scale,
    shown: fn(f64) -> String,
    /// Whether the two directions of a link are told apart.
    directed: bool,
}

/// The members, and how they are judged.
#[derive(Clone, Copy)]
pub struct Judge<'j> {
    pub members: &'j [Member],
    /// The bytes per second of the members' NICs where they are known.
    pub rates: &'j [Option<f64>],
    /// The share below the usual bandwidth at which something is named.
    pub tolerance: f64,
    /// Whether something may be named for its latency.
    pub latency: bool,
}

/// Names what is slow. Members that are `cleared` are not.
pub fn named(measured: &Measured, judge: Judge<'_>, cleared: &[usize]) -> Named {
    let Judge {
        members,
        rates,
        tolerance,
        latency,
    } = judge;
    let (scale, plain) = (Scale::of(rates), Scale::none(members.len()));
    let bandwidth = |value: f64| PerSecond(value, "B/s").to_string();
    let metric = |place, word, matrix: &Matrix, tolerance, directed| Metric {
        place,
        word,
        matrix: scale.applied(matrix),
        tolerance,
        scale: &scale,
        shown: bandwidth,
        directed,
    };
    let metrics = [
        metric(0, "", &measured.one_way, tolerance, true),
        metric(
            1,
            "both ways at once ",
            &measured.both_ways,
            tolerance.max(BOTH_WAYS_TOLERANCE),
            false,
        ),
        Metric {
            place: 2,
            word: "latency ",
            matrix: inverse(&measured.latency),
            tolerance: LATENCY_TOLERANCE,
            scale: &plain,
            shown: |value| Time(1.0 / value).to_string(),
            directed: false,
        },
    ];
    let mut named = Named::new();
    // The latency is the last one.
    let count = if latency { 3 } else { 2 };
    for metric in metrics.iter().take(count) {
        metric.add(members, &mut named);
    }
    named.retain(
        |subject, _| !matches!(subject, Subject::Member(member) if cleared.contains(member)),
    );
    without_explained(named, members)
}

/// Names what is slow in a second measurement, too. Of the members `looked_at` only links of that count, and where
/// they then are as usual, their links are judged for themselves.
pub fn named_again(
    first: &Measured,
    second: &[Link],
    looked_at: &[usize],
    judge: Judge<'_>,
) -> Named {
    let strict = named(&first.with_again(second, looked_at), judge, &[]);
    let is_slow = |member: &&usize| strict.contains_key(&Subject::Member(**member));
    let (slow, cleared): (Vec<usize>, Vec<usize>) = looked_at.iter().partition(is_slow);
    if cleared.is_empty() {
        return strict;
    }
    named(&first.with_again(second, &slow), judge, &cleared)
}

impl Metric<'_> {
    /// Adds what is slow by this metric.
    fn add(&self, members: &[Member], named: &mut Named) {
        let rails: Vec<String> = members.iter().map(|member| member.rail.clone()).collect();
        let name = |member: usize| members.get(member).map_or("?", |member| &*member.name);
        let found = outliers(&self.matrix, &rails, self.tolerance);
        let mut add = |subject: Subject, way: String, value: f64, usual: f64, factor: f64| {
            // Undirected metrics are told once for both ends.
            let way = if self.directed { way } else { String::new() };
            let (value, usual) = ((self.shown)(value * factor), (self.shown)(usual * factor));
            let text = format!("{way}{}{value}, usual {usual}", self.word);
            let reasons = named.entry(subject).or_default();
            reasons.entry((self.place, way)).or_insert(text);
        };
        for slow in &found.rails {
            let factor = self.scale.link(0, 0);
            add(
                Subject::Rail(slow.it.clone()),
                String::new(),
                slow.value,
                slow.usual,
                factor,
            );
        }
        for (way, slow) in ways(&found) {
            let factor = self.scale.link(slow.it, slow.it);
            add(
                Subject::Member(slow.it),
                way.into(),
                slow.value,
                slow.usual,
                factor,
            );
        }
        for slow in &found.links {
            let (from, to) = slow.it;
            let way = format!("{} to {}: ", name(from), name(to));
            let link = Subject::Link(from.min(to), from.max(to));
            add(link, way, slow.value, slow.usual, self.scale.link(from, to));
        }
    }
}

/// The slow senders and receivers, each with its way.
fn ways(found: &Outliers) -> impl Iterator<Item = (&'static str, &Slow<usize>)> {
    let senders = found.senders.iter().map(|slow| ("sends ", slow));
    senders.chain(found.receivers.iter().map(|slow| ("receives ", slow)))
}

/// Leaves out links of slow members, and members of slow rails.
fn without_explained(mut named: Named, members: &[Member]) -> Named {
    let rails: Vec<String> = named
        .keys()
        .filter_map(|s| match s {
            Subject::Rail(rail) => Some(rail.clone()),
            _ => None,
        })
        .collect();
    let slow: Vec<usize> = named
        .keys()
        .filter_map(|s| match s {
            Subject::Member(member) => Some(*member),
            _ => None,
        })
        .collect();
    let on_rail = |member: &usize| {
        members
            .get(*member)
            .is_some_and(|m| rails.contains(&m.rail))
    };
    named.retain(|subject, _| match subject {
        Subject::Rail(_) => true,
        Subject::Member(member) => !on_rail(member),
        Subject::Link(a, b) => ![a, b].iter().any(|end| slow.contains(end) || on_rail(end)),
    });
    named
}

/// Latencies as goodness.
fn inverse(matrix: &Matrix) -> Matrix {
    let row = |row: &Vec<Option<f64>>| {
        row.iter()
            .map(|cell| cell.map(|value| 1.0 / value))
            .collect()
    };
    matrix.iter().map(row).collect()
}

/// The rates by which bandwidths are divided where NICs of several rates are mixed.
struct Scale(Vec<f64>);

impl Scale {
    fn of(rates: &[Option<f64>]) -> Self {
        let known: Vec<f64> = rates.iter().copied().flatten().collect();
        let mixed = known.iter().any(|rate| Some(rate) != known.first());
        if known.len() == rates.len() && mixed {
            Scale(known)
        } else {
            Scale::none(rates.len())
        }
    }

    fn none(members: usize) -> Self {
        Scale(vec![1.0; members])
    }

    fn link(&self, from: usize, to: usize) -> f64 {
        let rate = |member: usize| self.0.get(member).copied().unwrap_or(1.0);
        rate(from).min(rate(to))
    }

    fn applied(&self, matrix: &Matrix) -> Matrix {
        let mut scaled = matrix.clone();
        for (from, row) in scaled.iter_mut().enumerate() {
            for (to, cell) in row.iter_mut().enumerate() {
                *cell = cell.map(|value| value / self.link(from, to));
            }
        }
        scaled
    }
}

/// The pairs that are measured again, alone, before anything is named; and the members of whom only those count.
pub fn again(named: &Named, members: usize) -> (Vec<(usize, usize)>, Vec<usize>) {
    const PARTNERS: usize = 8;
    const PAIRS: usize = 64;
    let mut pairs = Vec::new();
    let mut whole = Vec::new();
    for subject in named.keys() {
        match *subject {
            Subject::Rail(_) => {}
            Subject::Link(a, b) => pairs.push((a, b)),
            Subject::Member(member) => {
                whole.push(member);
                let others: Vec<usize> = (0..members).filter(|other| *other != member).collect();
                let step = others.len().div_ceil(PARTNERS).max(1);
                let some = others.iter().step_by(step);
                pairs.extend(some.map(|&other| (member.min(other), member.max(other))));
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.truncate(PAIRS);
    (pairs, whole)
}

/// The findings about links.
pub fn findings(
    named: &Named,
    measured: &Measured,
    judge: Judge<'_>,
    least: Option<Least>,
) -> Vec<Finding> {
    let Judge { members, rates, .. } = judge;
    let name = |member: usize| members.get(member).map_or("?", |member| &*member.name);
    let mut found: Vec<Finding> = measured
        .wrong
        .iter()
        .map(|(from, to, words)| {
            let text = format!("{words} words of data arrived wrong");
            let mend = "take the hosts out of service; look at memory errors (EDAC), the NIC's firmware and the cable";
            Finding::fault(format!("link {} to {}", name(*from), name(*to)), text, mend)
        })
        .collect();
    found.extend(named.iter().map(|(subject, reasons)| {
        let reasons: Vec<&str> = reasons.values().map(String::as_str).collect();
        let text = reasons.join("; ");
        match subject {
            Subject::Rail(rail) => Finding::warning(
                format!("rail {rail}"),
                format!("slow on most hosts: {text}"),
                "look at the switches of that rail, and at the slot and firmware of its NICs",
            ),
            Subject::Member(member) => Finding::warning(
                format!("host {}", name(*member)),
                format!("slow to all others: {text}"),
                "look at its NIC's PCI link and cable, its CPU governor, and at what else runs there",
            ),
            Subject::Link(a, b) => Finding::warning(
                format!("link {} - {}", name(*a), name(*b)),
                text,
                "look at the cables and switch ports between the two, and at their error counters",
            ),
        }
    }));
    found.extend(expectation(measured, rates));
    found.extend(below(measured, rates, least, &name));
    found
}

/// A warning if links in general are far from their rate.
fn expectation(measured: &Measured, rates: &[Option<f64>]) -> Option<Finding> {
    let share = |(from, to, value): (usize, usize, f64)| Some(value / rate_of(rates, from, to)?);
    let shares: Option<Vec<f64>> = cells(&measured.one_way).map(share).collect();
    let usual = better_median(shares?)?;
    let text = format!("links reach {:.0} % of their NICs' rate", 100.0 * usual);
    if usual < EXPECTED {
        let mend = "bind PEs near the NIC (oxshmem run --bind nic); look at the PCI links, the MTU and relaxed ordering";
        return Some(Finding::warning("bandwidth", text, mend));
    }
    Some(Finding::ok("bandwidth", text))
}

fn rate_of(rates: &[Option<f64>], from: usize, to: usize) -> Option<f64> {
    let rate = |member: usize| rates.get(member).copied().flatten();
    Some(rate(from)?.min(rate(to)?))
}

fn cells(matrix: &Matrix) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
    matrix.iter().enumerate().flat_map(|(from, row)| {
        let cell = move |(to, value): (usize, &Option<f64>)| Some((from, to, (*value)?));
        row.iter().enumerate().filter_map(cell)
    })
}

/// Faults for links below the least bandwidth.
fn below<'n>(
    measured: &Measured,
    rates: &[Option<f64>],
    least: Option<Least>,
    name: &impl Fn(usize) -> &'n str,
) -> Vec<Finding> {
    let Some(least) = least else {
        return Vec::new();
    };
    let usual = measured.usual().unwrap_or(0.0);
    let bound = |from, to| match least {
        Least::Rate(rate) => rate,
        Least::Share(share) => share * rate_of(rates, from, to).unwrap_or(usual),
    };
    let low = cells(&measured.one_way).filter(|(from, to, value)| *value < bound(*from, *to));
    let low: Vec<(usize, usize, f64)> = low.collect();
    let mend = "look at the link, or give a lower bound";
    let mut found: Vec<Finding> = low
        .iter()
        .take(MOST_LINES)
        .map(|(from, to, value)| {
            let (value, bound) = (
                PerSecond(*value, "B/s"),
                PerSecond(bound(*from, *to), "B/s"),
            );
            let text = format!("{value}, below {bound} (--fail-below)");
            Finding::fault(format!("link {} to {}", name(*from), name(*to)), text, mend)
        })
        .collect();
    if low.len() > MOST_LINES {
        let text = format!("{} more are below it", low.len() - MOST_LINES);
        found.push(Finding::fault("links", text, mend));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: usize) -> Vec<Member> {
        let member = |pe| Member {
            pe,
            host: pe,
            name: format!("n{pe}"),
            transport: "ofi".into(),
            rail: "eth0".into(),
        };
        (0..count).map(member).collect()
    }

    /// All links at 1 GB/s and 10 us; `change` makes some slower.
    fn links(count: usize, change: impl Fn(usize, usize) -> f64) -> Vec<Link> {
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let link = |(from, to): (usize, usize)| Link {
            from,
            to,
            latency: 1e4 / change(from, to).max(change(to, from)),
            one_way: 1e9 * change(from, to),
            both_ways: 2e9 * change(from, to).min(change(to, from)),
            wrong: 0,
        };
        pairs.filter(|(from, to)| from != to).map(link).collect()
    }

    fn told(
        links: &[Link],
        count: usize,
        rates: &[Option<f64>],
        least: Option<Least>,
    ) -> Vec<String> {
        let measured = Measured::of(count, links);
        let members = members(count);
        let judge = Judge {
            members: &members,
            rates,
            tolerance: 0.3,
            latency: true,
        };
        let named = named(&measured, judge, &[]);
        let found = findings(&named, &measured, judge, least);
        found
            .iter()
            .map(|finding| format!("{}: {}", finding.topic, finding.text))
            .collect()
    }

    #[test]
    fn a_slow_link_and_a_slow_host_are_named_alone() {
        let none = [None; 4];
        assert_eq!(
            told(&links(4, |_, _| 1.0), 4, &none, None),
            Vec::<String>::new()
        );
        let link = links(4, |from, to| if (from, to) == (2, 1) { 0.1 } else { 1.0 });
        let found = told(&link, 4, &none, None);
        let expected = "link n1 - n2: n2 to n1: 100 MB/s, usual 1.00 GB/s; both ways at once 200 MB/s, usual 2.00 GB/s";
        assert_eq!(found, [expected]);
        let host = links(4, |from, to| if from == 3 || to == 3 { 0.1 } else { 1.0 });
        let found = told(&host, 4, &none, None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("host n3: slow to all others: "),
            "{found:?}"
        );
        assert!(
            found[0].contains("sends 100 MB/s, usual 1.00 GB/s"),
            "{found:?}"
        );
        assert!(
            found[0].contains("latency 100 µs, usual 10.0 µs"),
            "{found:?}"
        );
    }

    #[test]
    fn nics_of_different_rates_are_compared_by_their_rates() {
        let rates = [Some(1e9), Some(1e9), Some(1e9), Some(0.2e9)];
        let slow_nic = links(4, |from, to| if from == 3 || to == 3 { 0.2 } else { 1.0 });
        let slow_nic: Vec<Link> = slow_nic
            .into_iter()
            .map(|link| Link {
                latency: 1e4,
                ..link
            })
            .collect();
        let found = told(&slow_nic, 4, &rates, None);
        assert_eq!(found, ["bandwidth: links reach 100 % of their NICs' rate"]);
        let found = told(&slow_nic, 4, &[Some(1e10); 4], None);
        assert!(
            found.iter().any(|line| line.starts_with("host n3")),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|line| line.starts_with("bandwidth: links reach 10 %")),
            "{found:?}"
        );
    }

    #[test]
    fn links_below_the_bound_are_faults() {
        let all = links(3, |from, to| if (from, to) == (0, 2) { 0.8 } else { 1.0 });
        let none = [None; 3];
        for (least, count) in [
            (Least::Rate(0.9e9), 1),
            (Least::Rate(0.7e9), 0),
            (Least::Share(0.9), 1),
            (Least::Rate(2e9), 6),
        ] {
            let found = told(&all, 3, &none, Some(least));
            assert_eq!(found.len(), count, "{least:?}: {found:?}");
        }
        let found = told(&all, 3, &[Some(1.25e9); 3], Some(Least::Share(0.75)));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].contains("800 MB/s, below 938 MB/s"), "{found:?}");
        let wide = told(&links(8, |_, _| 1.0), 8, &[None; 8], Some(Least::Rate(2e9)));
        assert_eq!(wide.len(), MOST_LINES + 1);
    }

    #[test]
    fn wrong_data_is_a_fault_of_the_link_that_it_came_by() {
        let mut all = links(3, |_, _| 1.0);
        all[0].wrong = 5;
        assert_eq!((all[0].from, all[0].to), (0, 1));
        let found = told(&all, 3, &[None; 3], None);
        assert_eq!(found, ["link n1 to n0: 5 words of data arrived wrong"]);
    }

    #[test]
    fn what_was_slow_once_is_not_named_if_it_is_not_slow_again() {
        let count = 6;
        let first = links(count, |from, to| match (from, to) {
            (1, 2) => 0.1,
            (4, _) | (_, 4) => 0.2,
            _ => 1.0,
        });
        let (measured, members) = (Measured::of(count, &first), members(count));
        let rates = [None; 6];
        let judge = Judge {
            members: &members,
            rates: &rates,
            tolerance: 0.3,
            latency: true,
        };
        let named_first = named(&measured, judge, &[]);
        let subjects: Vec<&Subject> = named_first.keys().collect();
        assert_eq!(subjects, [&Subject::Member(4), &Subject::Link(1, 2)]);
        let (pairs, looked_at) = again(&named_first, count);
        assert_eq!(looked_at, [4]);
        assert!(pairs.contains(&(1, 2)) && pairs.len() == 6, "{pairs:?}");
        let among = |link: &Link| pairs.contains(&(link.from.min(link.to), link.from.max(link.to)));
        let mut good = links(count, |_, _| 1.0);
        good.retain(among);
        let second = named_again(&measured, &good, &looked_at, judge);
        assert!(second.is_empty(), "{second:?}");
        let mut bad = first.clone();
        bad.retain(among);
        let second = named_again(&measured, &bad, &looked_at, judge);
        assert_eq!(second.keys().collect::<Vec<_>>(), subjects);
        // By its latency alone, a host is named only if that is wanted.
        let late = links(count, |_, _| 1.0).into_iter();
        let late: Vec<Link> = late
            .map(|link| match (link.from, link.to) {
                (4, _) | (_, 4) => Link {
                    latency: 5e4,
                    ..link
                },
                _ => link,
            })
            .collect();
        let late = Measured::of(count, &late);
        assert_eq!(named(&late, judge, &[]).len(), 1);
        let latency = false;
        assert!(named(&late, Judge { latency, ..judge }, &[]).is_empty());
        // A host that was slow once, and one of its links that stays slow.
        let mixed = links(
            count,
            |from, to| if (from, to) == (4, 1) { 0.2 } else { 1.0 },
        );
        let mixed: Vec<Link> = mixed.into_iter().filter(among).collect();
        let second = named_again(&measured, &mixed, &looked_at, judge);
        assert_eq!(second.keys().collect::<Vec<_>>(), [&Subject::Link(1, 4)]);
    }
}
