//! Network interfaces, and the remote shell that starts PEs on other hosts.

use crate::check::finding::Finding;
use crate::check::system::System;

use super::facts::Facts;

const INTERFACES: &str = "sys/class/net";

pub fn check(system: &System, facts: &mut Facts) -> Vec<Finding> {
    let mut found = interfaces(system, facts);
    found.push(remote_shell(system));
    found
}

/// The names of the interfaces that are up, without loopback.
fn up(system: &System) -> Vec<String> {
    let mut names = system.names(INTERFACES);
    names.retain(|name| {
        let state = system.text(&format!("{INTERFACES}/{name}/operstate"));
        name != "lo" && state.is_some_and(|state| state == "up")
    });
    names
}

fn interfaces(system: &System, facts: &mut Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for name in up(system) {
        let folder = format!("{INTERFACES}/{name}");
        let topic = format!("interface {name}");
        let mtu = system.number(&format!("{folder}/mtu")).unwrap_or(0);
        facts.insert(format!("MTU of {name}"), mtu.to_string());
        let speed = system
            .number(&format!("{folder}/speed"))
            .filter(|speed| *speed > 0);
        let shown = match speed {
            Some(megabits) => {
                facts.insert(format!("speed of {name}"), format!("{megabits} Mb/s"));
                format!("MTU {mtu}, {megabits} Mb/s")
            }
            None => format!("MTU {mtu}"),
        };
        let half = system
            .text(&format!("{folder}/duplex"))
            .is_some_and(|way| way == "half");
        found.push(if half {
            let mend = format!("ethtool -s {name} autoneg on, and the same at the switch's port");
            Finding::warning(
                topic,
                format!("{shown}: one direction at a time (half duplex)"),
                mend,
            )
        } else {
            Finding::ok(topic, shown)
        });
    }
    if found.is_empty() {
        let mend = "ip link set INTERFACE up, and give it an address";
        found.push(Finding::warning(
            "interfaces",
            "none is up but loopback",
            mend,
        ));
    }
    found
}

/// Gigabytes per second of a physical interface.
pub fn rate(system: &System, name: &str) -> Option<f64> {
    let folder = format!("{INTERFACES}/{name}");
    // The speed of one made of software means nothing.
    if !system.exists(&format!("{folder}/device")) {
        return None;
    }
    let megabits = system
        .number(&format!("{folder}/speed"))
        .filter(|speed| *speed > 0)?;
    Some(megabits as f64 / 8e3)
}

fn remote_shell(system: &System) -> Finding {
    let topic = "remote shell";
    let command = system
        .variable("OXSHMEM_RSH")
        .unwrap_or_else(|| "ssh".into());
    let program = command.split_whitespace().next().unwrap_or("ssh");
    if system.has_program(program) {
        return Finding::ok(topic, program);
    }
    let mend = "install openssh-client, or start jobs by srun or mpirun";
    let text = format!("no program {program}: oxshmem run --hosts cannot reach other hosts");
    Finding::warning(topic, text, mend)
}
