//! The names of what is slow: rails, members and links.

use std::collections::BTreeMap;

use oxshmem_figures::units::{PerSecond, Time};

use super::links::Link;
use super::measured::Measured;
use super::members::Member;
use super::statistics::{Matrix, Outliers, Slow, outliers};

/// A latency is named from twice the usual one on.
const LATENCY_TOLERANCE: f64 = 0.5;
/// The bandwidth of both ways depends on more than the link: a smaller difference means nothing.
const BOTH_WAYS_TOLERANCE: f64 = 0.4;

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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn members(count: usize) -> Vec<Member> {
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
    pub fn links(count: usize, change: impl Fn(usize, usize) -> f64) -> Vec<Link> {
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
