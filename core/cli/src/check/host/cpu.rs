//! CPUs: their frequency, their NUMA nodes, the clock; virtual machine or container.

use crate::check::finding::Finding;
use crate::check::system::System;

use super::facts::Facts;

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

pub fn check(system: &System, facts: &mut Facts) -> Vec<Finding> {
    vec![
        surroundings(system, facts),
        model(system, facts),
        nodes(system, facts),
        governor(system, facts),
        frequency(system),
        clock_source(system, facts),
    ]
}

/// Folders with a number behind `stem`, such as `cpu3`.
fn numbered(system: &System, folder: &str, stem: &str) -> Vec<String> {
    let mut names = system.names(folder);
    names.retain(|name| {
        let number = name.strip_prefix(stem);
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    });
    names
}

/// The numbers of the NUMA nodes.
pub fn node_names(system: &System) -> Vec<String> {
    numbered(system, NODES, "node")
}

fn surroundings(system: &System, facts: &mut Facts) -> Finding {
    let cpuinfo = system.text("proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let virtual_machine = flags.is_some_and(|f| f.split_whitespace().any(|f| f == "hypervisor"));
    let groups = system.text("proc/1/cgroup").unwrap_or_default();
    let container = ["run/.containerenv", ".dockerenv"]
        .iter()
        .any(|file| system.exists(file))
        || ["docker", "kubepods", "lxc"]
            .iter()
            .any(|word| groups.contains(word));
    let text = match (virtual_machine, container) {
        (true, true) => "a container on a virtual machine",
        (true, false) => "a virtual machine",
        (false, true) => "a container",
        (false, false) => "no virtual machine, no container",
    };
    facts.insert("surroundings".into(), text.into());
    Finding::ok("surroundings", text)
}

fn model(system: &System, facts: &mut Facts) -> Finding {
    let cpuinfo = system.text("proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = value("model name").or_else(|| value("CPU part"));
    let model = model.unwrap_or_else(|| "of a model that the kernel does not name".into());
    let online = system.text(&format!("{CPUS}/online")).unwrap_or_default();
    let count = online
        .parse()
        .map_or(0, |set: oxshmem_topo::CpuSet| set.len());
    facts.insert("CPUs".into(), format!("{count}, {model}"));
    Finding::ok("CPUs", format!("{count}, {model}"))
}

fn nodes(system: &System, facts: &mut Facts) -> Finding {
    let nodes = node_names(system);
    facts.insert("NUMA nodes".into(), nodes.len().max(1).to_string());
    let list = |node: &String| {
        let cpus = system.text(&format!("{NODES}/{node}/cpulist"))?;
        Some(format!("{node}: CPUs {cpus}"))
    };
    let lists: Vec<String> = nodes.iter().filter_map(list).collect();
    if lists.is_empty() {
        return Finding::ok("NUMA nodes", "one");
    }
    Finding::ok("NUMA nodes", lists.join("; "))
}

fn governor(system: &System, facts: &mut Facts) -> Finding {
    let topic = "CPU governor";
    let cpus = numbered(system, CPUS, "cpu");
    let governor = |cpu: &String| system.text(&format!("{CPUS}/{cpu}/cpufreq/scaling_governor"));
    let all: Vec<(&String, String)> = cpus
        .iter()
        .filter_map(|cpu| Some((cpu, governor(cpu)?)))
        .collect();
    let Some((_, first)) = all.first() else {
        return Finding::unseen(topic, "not visible: the firmware or the hypervisor governs");
    };
    let other = all.iter().find(|(_, governor)| governor != "performance");
    facts.insert(
        topic.into(),
        other.map_or(first, |(_, governor)| governor).clone(),
    );
    match other {
        None => Finding::ok(topic, "performance"),
        Some((cpu, governor)) => Finding::warning(
            topic,
            format!("{governor} ({cpu}): latencies grow with each rise of the frequency"),
            "cpupower frequency-set -g performance",
        ),
    }
}

/// The highest frequency that is allowed, and the one that the CPU could have.
fn frequency(system: &System) -> Finding {
    let topic = "CPU frequency";
    let cpus = numbered(system, CPUS, "cpu");
    let read = |cpu: &String| {
        let folder = format!("{CPUS}/{cpu}/cpufreq");
        let allowed = system.number(&format!("{folder}/scaling_max_freq"))?;
        Some((
            cpu.clone(),
            allowed,
            system.number(&format!("{folder}/cpuinfo_max_freq"))?,
        ))
    };
    let all: Vec<(String, i64, i64)> = cpus.iter().filter_map(read).collect();
    let Some((_, allowed, _)) = all.first() else {
        return Finding::unseen(topic, "not visible: the firmware or the hypervisor governs");
    };
    let gigahertz = |kilohertz: i64| kilohertz as f64 / 1e6;
    // Below nine tenths.
    match all
        .iter()
        .find(|(_, allowed, most)| 10 * allowed < 9 * most)
    {
        None => Finding::ok(topic, format!("up to {:.2} GHz", gigahertz(*allowed))),
        Some((cpu, allowed, most)) => Finding::warning(
            topic,
            format!(
                "{cpu} is held at {:.2} of {:.2} GHz",
                gigahertz(*allowed),
                gigahertz(*most)
            ),
            format!(
                "cpupower frequency-set -u {most}kHz, and look for a power cap in the firmware"
            ),
        ),
    }
}

fn clock_source(system: &System, facts: &mut Facts) -> Finding {
    let topic = "clock source";
    let file = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Some(source) = system.text(file) else {
        return Finding::unseen(topic, "not visible");
    };
    facts.insert(topic.into(), source.clone());
    if ["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&source.as_str()) {
        return Finding::warning(
            topic,
            format!("{source}: each look at the clock takes about a microsecond"),
            "tsc=reliable on the kernel's command line, if the CPU's counter is (dmesg | grep -i tsc)",
        );
    }
    Finding::ok(topic, source)
}
