//! The findings about links: what is named, wrong data, and links below a bound.

use oxshmem_figures::units::PerSecond;

use super::args::Least;
use super::finding::Finding;
use super::judge::{Judge, Named, Subject};
use super::measured::{Measured, cells};
use super::statistics::better_median;

/// A share of their rate that links are expected to reach.
const EXPECTED: f64 = 0.6;
/// Lines of one kind at most.
const MOST_LINES: usize = 16;

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
    use super::super::judge::named;
    use super::super::judge::tests::{links, members};
    use super::super::links::Link;
    use super::*;

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
}
