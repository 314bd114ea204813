//! Comparison of the hosts' set-ups: the host that differs is named.

use std::collections::BTreeMap;

use super::finding::{Finding, Level};
use super::host::Host;

/// A host's clock may be off by so much before it is told, in seconds.
const SKEW: f64 = 1.0;

/// How much a difference in a property matters, and its mend. Properties that may differ have none.
fn weight(fact: &str) -> Option<(Level, &'static str)> {
    let starts = |stems: &[&str]| stems.iter().any(|stem| fact.starts_with(stem));
    if fact == "oxshmem" {
        return Some((Level::Fault, "install the same build on all hosts"));
    }
    if starts(&["MTU of "]) {
        let mend = "set the same MTU on all hosts, and at least that on all switches: ip link set INTERFACE mtu N";
        return Some((Level::Fault, mend));
    }
    if starts(&["P_Keys of "]) {
        return Some((
            Level::Warning,
            "give all ports the same partitions in the subnet manager's partitions.conf",
        ));
    }
    if starts(&["lib", "hwloc", "CUDA driver", "NVIDIA driver"]) {
        return Some((Level::Warning, "install the same version on all hosts"));
    }
    if starts(&["OXSHMEM_", "SHMEM_", "SMA_", "NVSHMEM_"]) {
        return Some((
            Level::Warning,
            "set the variable for the whole job, not in one host's files",
        ));
    }
    let limits = [
        "locked memory",
        "descriptors",
        "processes",
        "address space",
        "data size",
    ];
    if starts(&limits) {
        return Some((
            Level::Warning,
            "set the same in /etc/security/limits.conf, or in the service that starts jobs",
        ));
    }
    if starts(&["state of "]) {
        return Some((Level::Warning, "look at the port's cable and its switch"));
    }
    let alike = [
        "RDMA devices",
        "link of ",
        "GID types of ",
        "PCI link of ",
        "place of ",
        "speed of ",
        "CPU",
        "NUMA nodes",
        "NVIDIA GPUs",
        "GPU memory for NICs",
        "ACS",
        "IOMMU",
        "transparent huge pages",
        "huge page pools",
        "overcommitment",
        "clock source",
        "memory of the group",
        "surroundings",
    ];
    starts(&alike).then_some((
        Level::Warning,
        "make the hosts alike, or leave this one out",
    ))
}

/// The findings of the hosts, each once with the hosts that have it, and the properties in which hosts
/// differ. `names` are the hosts' names.
pub fn compare(hosts: &[Host], names: &[String]) -> Vec<Finding> {
    let mut all = merged(hosts, names);
    let mut facts: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, host) in hosts.iter().enumerate() {
        for (fact, value) in &host.facts {
            facts.entry(fact).or_default().push((at, value));
        }
    }
    let differences = facts.iter().filter_map(|(fact, values)| {
        let (level, mend) = weight(fact)?;
        let (text, odd) = difference(values, names)?;
        // Nothing is said twice of a host.
        let said = |host: &usize| {
            let findings = hosts.get(*host).map(|host| &host.findings);
            let topics = findings
                .into_iter()
                .flatten()
                .filter(|finding| finding.is_bad());
            topics
                .map(|finding| &*finding.topic)
                .any(|topic| topic == *fact)
        };
        let finding = Finding {
            level,
            topic: (*fact).to_owned(),
            text,
            mend: Some(mend.to_owned()),
        };
        (!odd.iter().all(said)).then_some(finding)
    });
    all.extend(differences.collect::<Vec<_>>());
    if !all.iter().any(Finding::is_bad) && hosts.len() > 1 {
        all.push(Finding::ok(
            "set-up",
            format!("the same on all {} hosts", hosts.len()),
        ));
    }
    all
}

/// The values that differ, and the hosts whose value is not the usual one. None if all are the same.
fn difference(values: &[(usize, &str)], names: &[String]) -> Option<(String, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for &(host, value) in values {
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, hosts)) => hosts.push(host),
            None => groups.push((value, vec![host])),
        }
    }
    if groups.len() < 2 {
        return None;
    }
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    let told = |(value, hosts): &(&str, Vec<usize>)| format!("{value} on {}", listed(hosts, names));
    let [(usual, most), others @ ..] = groups.as_slice() else {
        return None;
    };
    let second = others.first().map_or(0, |(_, hosts)| hosts.len());
    if most.len() == second {
        let all: Vec<String> = groups.iter().map(told).collect();
        return Some((
            all.join("; "),
            values.iter().map(|(host, _)| *host).collect(),
        ));
    }
    let odd: Vec<usize> = others.iter().flat_map(|(_, hosts)| hosts.clone()).collect();
    let shown: Vec<String> = others.iter().map(told).collect();
    let text = format!("{}; {usual} on the other {}", shown.join("; "), most.len());
    Some((text, odd))
}

/// Names of hosts, the first few of many.
fn listed(hosts: &[usize], names: &[String]) -> String {
    const MOST: usize = 8;
    let name = |host: &usize| names.get(*host).map_or("?", String::as_str);
    let shown: Vec<&str> = hosts.iter().take(MOST).map(name).collect();
    match hosts.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Each warning and fault once, with its hosts. Where all is well, only the counts are of interest.
fn merged(hosts: &[Host], names: &[String]) -> Vec<Finding> {
    let mut all: Vec<(Finding, Vec<usize>)> = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        for finding in host.findings.iter().filter(|finding| finding.is_bad()) {
            match all.iter_mut().find(|(known, _)| known == finding) {
                Some((_, of)) => of.push(at),
                None => all.push((finding.clone(), vec![at])),
            }
        }
    }
    let told = |(finding, of): (Finding, Vec<usize>)| {
        let of = if of.len() == hosts.len() && of.len() > 1 {
            "all hosts".to_owned()
        } else {
            listed(&of, names)
        };
        Finding {
            text: format!("on {of}: {}", finding.text),
            ..finding
        }
    };
    all.into_iter().map(told).collect()
}

/// Times of the hosts' clocks, in seconds, in each of some exchanges. A finding for hosts whose clock is off.
pub fn clocks(exchanges: &[Vec<f64>], names: &[String]) -> Vec<Finding> {
    let topic = "clocks";
    let hosts = names.len();
    let offset = |host: usize| {
        let mut offsets: Vec<f64> = exchanges
            .iter()
            .filter_map(|times| {
                let mut sorted = times.clone();
                sorted.sort_by(f64::total_cmp);
                Some(times.get(host)? - sorted.get(sorted.len() / 2)?)
            })
            .collect();
        offsets.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        // The nearest counts: the exchange itself can only add to the difference.
        offsets.first().copied().unwrap_or(0.0)
    };
    let offsets: Vec<f64> = (0..hosts).map(offset).collect();
    let mend = "start a time service: systemctl enable --now chronyd";
    let off = offsets
        .iter()
        .enumerate()
        .filter(|(_, offset)| offset.abs() > SKEW);
    let mut found: Vec<Finding> = off
        .map(|(host, offset)| {
            let way = if *offset > 0.0 { "ahead of" } else { "behind" };
            let name = names.get(host).map_or("?", String::as_str);
            let text = format!("{name} is {:.1} s {way} the others", offset.abs());
            Finding::warning(topic, text, mend)
        })
        .collect();
    if found.is_empty() && hosts > 1 {
        let most = offsets
            .iter()
            .map(|offset| offset.abs())
            .fold(0.0, f64::max);
        let text = format!(
            "they differ by no more than {:.0} ms",
            (1e3 * most).ceil().max(1.0)
        );
        found.push(Finding::ok(topic, text));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(count: usize) -> (Vec<Host>, Vec<String>) {
        let facts = [
            ("oxshmem", "0.1.0"),
            ("MTU of eth0", "9000"),
            ("descriptors", "20000"),
            ("libfabric", "1.17"),
            ("OXSHMEM_SPIN", "unset"),
            ("kernel", "6.1"),
        ];
        let facts = facts.map(|(fact, value)| (fact.to_owned(), value.to_owned()));
        let host = Host {
            facts: facts.into(),
            ..Host::default()
        };
        let names = (0..count).map(|host| format!("n{host}")).collect();
        (vec![host; count], names)
    }

    fn bad(hosts: &[Host], names: &[String]) -> Vec<Finding> {
        let mut found = compare(hosts, names);
        found.retain(Finding::is_bad);
        found
    }

    #[test]
    fn hosts_alike_have_nothing_but_that() {
        let (hosts, names) = hosts(4);
        let found = compare(&hosts, &names);
        assert_eq!(found, [Finding::ok("set-up", "the same on all 4 hosts")]);
    }

    #[test]
    fn the_odd_host_is_named_with_its_value_and_nothing_else() {
        let changes = [
            ("oxshmem", "0.2.0", Level::Fault),
            ("MTU of eth0", "1500", Level::Fault),
            ("descriptors", "64", Level::Warning),
            ("libfabric", "1.11", Level::Warning),
            ("OXSHMEM_SPIN", "0", Level::Warning),
        ];
        for (fact, value, level) in changes {
            let (mut all, names) = hosts(4);
            all[2].facts.insert(fact.into(), value.into());
            let found = bad(&all, &names);
            assert_eq!(found.len(), 1, "{fact}: {found:?}");
            assert_eq!((found[0].level, &*found[0].topic), (level, fact));
            let usual = hosts(1).0[0].facts[fact].clone();
            assert_eq!(
                found[0].text,
                format!("{value} on n2; {usual} on the other 3")
            );
        }
        // A kernel may differ, and an interface may have another name.
        let (mut all, names) = hosts(4);
        all[1].facts.insert("kernel".into(), "6.2".into());
        all[1].facts.insert("MTU of enp1s0".into(), "1500".into());
        assert_eq!(bad(&all, &names), []);
    }

    #[test]
    fn where_no_value_is_the_usual_one_all_are_told() {
        let (mut all, names) = hosts(2);
        all[0].facts.insert("MTU of eth0".into(), "1500".into());
        let found = bad(&all, &names);
        assert_eq!(found[0].text, "1500 on n0; 9000 on n1");
    }

    #[test]
    fn what_a_host_says_itself_is_told_once() {
        let (mut all, names) = hosts(3);
        let low = Finding::fault("descriptors", "64", "raise it");
        all[1].facts.insert("descriptors".into(), "64".into());
        all[1].findings.push(low.clone());
        let found = bad(&all, &names);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].text, "on n1: 64");
        for host in &mut all {
            host.findings = vec![low.clone()];
            host.facts.insert("descriptors".into(), "64".into());
        }
        assert_eq!(bad(&all, &names)[0].text, "on all hosts: 64");
    }

    #[test]
    fn a_clock_that_is_off_is_named() {
        let (_, names) = hosts(3);
        let exchanges = vec![vec![100.0, 100.2, 95.0], vec![101.0, 101.01, 96.0]];
        let found = clocks(&exchanges, &names);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].text.starts_with("n2 is 5.0 s behind"), "{found:?}");
        let found = clocks(&[vec![5.0, 5.002, 5.001]], &names);
        assert!(found.len() == 1 && !found[0].is_bad(), "{found:?}");
    }
}
