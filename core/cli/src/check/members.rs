//! The members of the measurement: for each host one PE a NIC.

use oxshmem::World;
use serde::{Deserialize, Serialize};

use crate::gather::gather;

/// One PE's way to other hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Way {
    pub transport: String,
    /// The device, as the transport names it.
    pub device: String,
}

/// A member: a PE that stands for a NIC of its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    pub pe: usize,
    /// The number of its host.
    #[serde(skip)]
    pub host: usize,
    /// Its name in tables: the host's, and the NIC's if the host has several.
    pub name: String,
    pub transport: String,
    /// Its NIC, without what differs between hosts.
    pub rail: String,
}

impl Member {
    /// A member of which only the PE and its host are known.
    pub fn unnamed(pe: usize, host: Option<&usize>) -> Self {
        Member {
            pe,
            host: host.copied().unwrap_or_default(),
            name: String::new(),
            transport: String::new(),
            rail: String::new(),
        }
    }
}

/// This PE's way to the first PE on another host; `hosts` are the numbers of the PEs' hosts.
fn way(world: &World, hosts: &[usize]) -> oxshmem::Result<Option<Way>> {
    let own = hosts.get(world.my_pe());
    let Some(other) = hosts.iter().position(|host| Some(host) != own) else {
        return Ok(None);
    };
    let route = world.explain(other)?.host;
    Ok(Some(Way {
        transport: route.transport.unwrap_or("none").to_owned(),
        device: route.device.unwrap_or_else(|| "memory".into()),
    }))
}

/// Every PE's way, on PE 0. Collective.
pub fn ways(world: &World, hosts: &[usize]) -> oxshmem::Result<Vec<Option<Way>>> {
    let mine = way(world, hosts)?;
    // Strings only: JSON can represent them.
    let texts = gather(world, &serde_json::to_string(&mine).unwrap_or_default())?;
    Ok(texts
        .iter()
        .map(|text| serde_json::from_str(text).unwrap_or_default())
        .collect())
}

/// The members: of each host the first PE of each device. `hosts` are the numbers of the PEs' hosts, `names` the
/// hosts' names.
pub fn members(ways: &[Option<Way>], hosts: &[usize], names: &[String]) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for (pe, (way, &host)) in ways.iter().zip(hosts).enumerate() {
        let Some(way) = way else { continue };
        // Sockets' devices have the host's own address behind their name.
        let rail = way.device.split(' ').next().unwrap_or_default().to_owned();
        if !members
            .iter()
            .any(|member| member.host == host && member.rail == rail)
        {
            members.push(Member {
                pe,
                host,
                name: names.get(host).cloned().unwrap_or_default(),
                transport: way.transport.clone(),
                rail,
            });
        }
    }
    members.sort_by(|a, b| (a.host, &a.rail).cmp(&(b.host, &b.rail)));
    let several = |member: &Member| members.iter().filter(|m| m.host == member.host).count() > 1;
    let more: Vec<bool> = members.iter().map(several).collect();
    for (member, more) in members.iter_mut().zip(more) {
        if more {
            member.name = format!("{}/{}", member.name, member.rail);
        }
    }
    members
}

/// The hosts' numbers by PE, in the order of their first PEs.
pub fn host_numbers(ids: &[String]) -> Vec<usize> {
    let mut known: Vec<&String> = Vec::new();
    ids.iter()
        .map(|id| {
            known
                .iter()
                .position(|other| *other == id)
                .unwrap_or_else(|| {
                    known.push(id);
                    known.len() - 1
                })
        })
        .collect()
}

/// Names for the hosts: their own, with the id behind if several have the same.
pub fn host_names(hostnames: &[String], ids: &[String]) -> Vec<String> {
    let unique = |name: &String| hostnames.iter().filter(|other| *other == name).count() == 1;
    let pairs = hostnames.iter().zip(ids);
    pairs
        .map(|(name, id)| {
            if unique(name) {
                name.clone()
            } else {
                format!("{name}[{id}]")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &str) -> Vec<String> {
        words.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_host_has_a_member_for_each_nic() {
        let way = |device: &str| {
            Some(Way {
                transport: "verbs".into(),
                device: device.into(),
            })
        };
        let ways = [
            way("mlx5_1:1"),
            way("mlx5_0:1"),
            way("mlx5_0:1"),
            way("eth0 10.0.0.2"),
            None,
        ];
        let hosts = host_numbers(&strings("x x x y x"));
        assert_eq!(hosts, [0, 0, 0, 1, 0]);
        let found = members(&ways, &hosts, &strings("a b"));
        let shown: Vec<(usize, &str)> = found.iter().map(|m| (m.pe, m.name.as_str())).collect();
        assert_eq!(shown, [(1, "a/mlx5_0:1"), (0, "a/mlx5_1:1"), (3, "b")]);
        assert_eq!(found[2].rail, "eth0");
    }

    #[test]
    fn hosts_of_one_name_are_told_apart() {
        let names = host_names(&strings("vm vm n1"), &strings("p q r"));
        assert_eq!(names, ["vm[p]", "vm[q]", "n1"]);
    }
}
