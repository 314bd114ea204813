//! `oxshmem info --explain`: the choice for a pair of PEs, and why each better one was refused.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

use oxshmem::{Result, Route, RouteExplanation, World};
use serde::{Deserialize, Serialize};

use super::transports;
use super::world::ranges;
use crate::gather::gather;
use crate::output;

/// Origin and target PEs whose routes are all alike.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Group {
    from: Vec<usize>,
    to: Vec<usize>,
    ways: Vec<RouteReport>,
}

/// The route of one kind of operation on one kind of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RouteReport {
    memory: String,
    operations: String,
    transport: Option<String>,
    device: Option<String>,
    device_choice: Option<String>,
    /// The device's port, address and MTU, as the PE that opened it sees them.
    device_description: Option<String>,
    mapped: bool,
    messages: bool,
    staged: bool,
    considered: Vec<(String, String)>,
}

pub fn main(pair: &[usize], json: bool) -> anyhow::Result<ExitCode> {
    let world = World::init()?;
    let unknown = pair.iter().find(|&&pe| pe >= world.n_pes());
    let groups = match unknown {
        None => collect(&world, pair)?,
        Some(_) => None,
    };
    let (me, pes) = (world.my_pe(), world.n_pes());
    world.finalize()?;
    // The same on every PE, so one PE says it.
    if let (Some(pe), 0) = (unknown, me) {
        let last = pes - 1;
        output::complain(
            "info",
            &format!("there is no PE {pe}; this job's PEs are 0 to {last}"),
        );
        return Ok(ExitCode::FAILURE);
    }
    if let Some(groups) = groups {
        output::print(&if json {
            let mut text = serde_json::to_string_pretty(&groups)?;
            text.push('\n');
            text
        } else {
            groups.iter().map(Group::to_string).collect()
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All groups on PE 0; `None` on the others. Collective.
fn collect(world: &World, pair: &[usize]) -> Result<Option<Vec<Group>>> {
    let me = world.my_pe();
    let devices = transports::descriptions();
    let mut mine: Vec<Group> = Vec::new();
    if pair.first().is_none_or(|&from| from == me) {
        let to = match pair.get(1) {
            Some(&to) => to..to + 1,
            None => 0..world.n_pes(),
        };
        for to in to {
            add(
                &mut mine,
                vec![me],
                vec![to],
                ways(&world.explain(to)?, &devices),
            );
        }
    }
    // Strings, numbers and lists only: JSON can represent all of it.
    let texts = gather(world, &serde_json::to_string(&mine).unwrap_or_default())?;
    if me != 0 {
        return Ok(None);
    }
    let mut all: Vec<Group> = Vec::new();
    for text in texts {
        let groups: Vec<Group> = serde_json::from_str(&text).unwrap_or_default();
        for Group { from, to, ways } in groups {
            add(&mut all, from, to, ways);
        }
    }
    Ok(Some(all))
}

/// Joins equal entries: the same targets from another PE, or other targets from the same PE.
fn add(groups: &mut Vec<Group>, from: Vec<usize>, to: Vec<usize>, ways: Vec<RouteReport>) {
    let alike = groups.iter_mut().filter(|group| group.ways == ways);
    for group in alike {
        if group.from == from {
            group.to.extend(to);
            return;
        }
        if group.to == to {
            group.from.extend(from);
            return;
        }
    }
    groups.push(Group { from, to, ways });
}

fn ways(explanation: &RouteExplanation, devices: &BTreeMap<String, String>) -> Vec<RouteReport> {
    let all = [
        ("host memory", "puts and gets", Some(&explanation.host)),
        ("host memory", "atomics", Some(&explanation.host_atomics)),
        ("GPU memory", "puts and gets", explanation.gpu.as_ref()),
        ("GPU memory", "atomics", explanation.gpu_atomics.as_ref()),
    ];
    let way = |(memory, operations, route): (&str, &str, Option<&Route>)| {
        let route = route?;
        let considered = route.considered.iter();
        Some(RouteReport {
            memory: memory.into(),
            operations: operations.into(),
            transport: route.transport.map(str::to_owned),
            device: route.device.clone(),
            device_choice: route.device_choice.clone(),
            device_description: route.device.as_ref().and_then(|d| devices.get(d).cloned()),
            mapped: route.mapped,
            messages: route.messages,
            staged: route.staged,
            considered: considered
                .map(|c| (c.transport.clone(), c.answer.clone()))
                .collect(),
        })
    };
    all.into_iter().filter_map(way).collect()
}

impl Group {
    /// Each route once, with the operations on one kind of memory that use it.
    fn merged(&self) -> Vec<(&RouteReport, Vec<&str>)> {
        let mut merged: Vec<(&RouteReport, Vec<&str>)> = Vec::new();
        for way in &self.ways {
            let same = |(other, _): &&mut (&RouteReport, Vec<&str>)| {
                let operations = other.operations.clone();
                **other
                    == RouteReport {
                        operations,
                        ..way.clone()
                    }
            };
            match merged.iter_mut().find(same) {
                Some((_, operations)) => operations.push(&way.operations),
                None => merged.push((way, vec![&way.operations])),
            }
        }
        merged
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PE {} to PE {}", ranges(&self.from), ranges(&self.to))?;
        for (way, operations) in self.merged() {
            write!(f, "  {}, {}: ", way.memory, operations.join(", "))?;
            match (&way.transport, way.mapped) {
                (None, _) => writeln!(f, "by no transport")?,
                (Some(_), _) if way.staged => {
                    writeln!(f, "staged: by its own process, through host memory")?;
                }
                (Some(name), true) => writeln!(f, "{name}, loaded and stored directly")?,
                (Some(name), false) if way.messages => {
                    writeln!(f, "{name}, by active messages to its CPU")?;
                }
                (Some(name), false) => writeln!(f, "{name}, by operations on a lane")?,
            }
            for (transport, answer) in &way.considered {
                writeln!(f, "      {transport}: {answer}")?;
            }
            if let Some(device) = &way.device {
                let details = [&way.device_description, &way.device_choice];
                let details: Vec<&str> =
                    details.into_iter().flatten().map(String::as_str).collect();
                if !details.is_empty() {
                    writeln!(f, "      {device}: {}", details.join("; "))?;
                }
            }
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(transport: &str) -> Vec<RouteReport> {
        vec![RouteReport {
            memory: "host memory".into(),
            operations: "puts and gets".into(),
            transport: Some(transport.into()),
            device: Some("mlx5_2:1".into()),
            device_choice: Some("the nearest of 8 to gpu2".into()),
            device_description: Some("RoCE, 200 Gb/s, GID 3".into()),
            mapped: false,
            messages: false,
            staged: false,
            considered: vec![("loopback".into(), "another host".into())],
        }]
    }

    #[test]
    fn pairs_alike_are_told_once() {
        let mut groups = Vec::new();
        for from in 0..3 {
            let mut mine = Vec::new();
            for to in 0..4 {
                add(&mut mine, vec![from], vec![to], way("verbs"));
            }
            assert_eq!(mine.len(), 1);
            for group in mine {
                add(&mut groups, group.from, group.to, group.ways);
            }
        }
        add(&mut groups, vec![3], vec![0, 1, 2, 3], way("loopback"));
        let text: String = groups.iter().map(Group::to_string).collect();
        assert!(text.contains("PE 0-2 to PE 0-3\n"), "{text}");
        assert!(text.contains("PE 3 to PE 0-3\n"), "{text}");
        assert_eq!(text.matches("loopback: another host").count(), 2);
        assert!(
            text.contains("mlx5_2:1: RoCE, 200 Gb/s, GID 3; the nearest of 8 to gpu2\n"),
            "{text}"
        );
    }

    #[test]
    fn operations_that_go_alike_are_told_together() {
        let atomics = RouteReport {
            operations: "atomics".into(),
            ..way("verbs")[0].clone()
        };
        let by_messages = RouteReport {
            messages: true,
            ..atomics.clone()
        };
        let shown = |other| {
            let ways = vec![way("verbs")[0].clone(), other];
            let (from, to) = (vec![0], vec![1]);
            Group { from, to, ways }.to_string()
        };
        let text = shown(atomics);
        assert!(
            text.contains("host memory, puts and gets, atomics: verbs"),
            "{text}"
        );
        assert_eq!(text.matches("another host").count(), 1, "{text}");
        let text = shown(by_messages);
        assert!(
            text.contains("host memory, atomics: verbs, by active messages"),
            "{text}"
        );
    }
}
