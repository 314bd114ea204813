//! `oxshmem info --topology` and `--svg`: the machine, its devices, and which of them PEs chose.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use oxshmem::{Result, World};
use oxshmem_topo::{CpuSet, DrawnRoute, End, Policy, Topology, svg};
use serde::{Deserialize, Serialize};

use crate::gather::gather;
use crate::job::{allowed_cpus, shown_by_another};
use crate::output;

/// One PE's report: the devices that it chose, and the place it chose them from.
#[derive(Debug, Serialize, Deserialize)]
struct PeReport {
    host: String,
    cpus: String,
    devices: Vec<String>,
}

/// Prints the tree, or writes the drawing to a file (`-` is stdout), or both.
pub fn main(tree: bool, drawing: Option<&Path>) -> anyhow::Result<ExitCode> {
    // A tree needs no world.
    if drawing.is_none() && shown_by_another() {
        return Ok(ExitCode::SUCCESS);
    }
    let to_stdout = |file: &Path| file == Path::new("-");
    anyhow::ensure!(
        !(tree && drawing.is_some_and(to_stdout)),
        "--topology and --svg - would both go to stdout; give --svg a file"
    );
    let described = oxshmem::described_topology()?;
    let reports = match drawing {
        None => Vec::new(),
        Some(_) => match join()? {
            None => return Ok(ExitCode::SUCCESS),
            Some(reports) => reports,
        },
    };
    let (topology, reports) = match described {
        Some(topology) => {
            let reports = planned(&topology, &reports)?;
            (topology, reports)
        }
        None => (Topology::discover()?, reports),
    };
    if tree {
        output::print(&topology.to_string())?;
    }
    match drawing {
        None => {}
        Some(file) if to_stdout(file) => output::print(&draw(&topology, &reports))?,
        Some(file) => std::fs::write(file, draw(&topology, &reports))
            .with_context(|| format!("cannot write the drawing to {}", file.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Each PE's report on PE 0; `None` on the others.
fn join() -> Result<Option<Vec<PeReport>>> {
    let world = World::init()?;
    let me = world.my_pe();
    let mine = PeReport {
        host: world.hosts().get(me).cloned().unwrap_or_default(),
        cpus: allowed_cpus(),
        devices: world.devices().into_iter().map(|d| d.device).collect(),
    };
    // Strings and lists only: JSON can represent all of it.
    let texts = gather(&world, &serde_json::to_string(&mine).unwrap_or_default())?;
    world.finalize()?;
    let read = |text: &String| serde_json::from_str(text).ok();
    Ok((me == 0).then(|| texts.iter().filter_map(read).collect()))
}

/// The reports that PEs of PE 0's host would give on a described machine, each bound to a core.
fn planned(topology: &Topology, reports: &[PeReport]) -> Result<Vec<PeReport>> {
    let host = reports.first().map(|first| &first.host);
    let pes = reports
        .iter()
        .filter(|report| Some(&report.host) == host)
        .count();
    let machine = &topology.machine;
    let bound = machine.binding(pes, Policy::Core, &machine.cpus);
    let sets: Vec<CpuSet> = bound.into_iter().map(CpuSet::from_iter).collect();
    let devices = oxshmem::planned_devices(topology, &sets)?;
    let would_report = |(cpus, devices): (&CpuSet, Vec<String>)| PeReport {
        host: machine.hostname.clone(),
        cpus: cpus.to_string(),
        devices,
    };
    Ok(sets.iter().zip(devices).map(would_report).collect())
}

/// Draws a line from each PE on PE 0's host, which is the one drawn, to the NICs that it chose. A
/// line starts at the PE's GPU if it has one, else at its CPUs. PEs with the same ends share a
/// line.
fn draw(topology: &Topology, reports: &[PeReport]) -> String {
    let host = reports.first().map(|first| &first.host);
    let sets: Vec<CpuSet> = reports
        .iter()
        .map(|report| report.cpus.parse().unwrap_or_default())
        .collect();
    let mut lines: Vec<(End<'_>, End<'_>, Vec<usize>)> = Vec::new();
    let here = reports.iter().zip(&sets).enumerate();
    for (pe, (report, cpus)) in here.filter(|(_, (report, _))| Some(&report.host) == host) {
        let devices = || report.devices.iter().map(String::as_str);
        let gpu = devices().find_map(|device| topology.gpu(device));
        let from = gpu.map_or(End::from(cpus), End::from);
        for nic in devices().filter_map(|device| topology.nic(device)) {
            let to = End::from(nic);
            match lines
                .iter_mut()
                .find(|line| same(line.0, from) && same(line.1, to))
            {
                Some((.., pes)) => pes.push(pe),
                None => lines.push((from, to, vec![pe])),
            }
        }
    }
    let labels: Vec<String> = lines
        .iter()
        .map(|(.., pes)| format!("PE {}", super::world::ranges(pes)))
        .collect();
    let routes: Vec<DrawnRoute<'_>> = lines
        .iter()
        .zip(&labels)
        .map(|(&(from, to, _), label)| DrawnRoute { from, to, label })
        .collect();
    svg(topology, &routes)
}

fn same(one: End<'_>, other: End<'_>) -> bool {
    match (one, other) {
        (End::Gpu(one), End::Gpu(other)) => one.name == other.name,
        (End::Nic(one), End::Nic(other)) => one.name == other.name,
        (End::Cpus(one), End::Cpus(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem_topo::fixtures;

    fn report(host: &str, cpus: &str, devices: &[&str]) -> PeReport {
        PeReport {
            host: host.into(),
            cpus: cpus.into(),
            devices: devices.iter().map(|d| (*d).into()).collect(),
        }
    }

    /// The labels at routes, in order.
    fn labels(drawing: &str) -> Vec<&str> {
        let lines = drawing
            .lines()
            .filter(|line| line.starts_with(r#"<g class="route">"#));
        lines
            .filter_map(|line| {
                let (line, _) = line.rsplit_once("</text>")?;
                line.rsplit_once('>').map(|(_, label)| label)
            })
            .collect()
    }

    #[test]
    fn each_pe_of_this_host_has_a_line_to_its_nic() {
        let host = Topology::from_xml(fixtures::DGX_LIKE).unwrap();
        let all = host.machine.cpus.to_string();
        let drawing = draw(
            &host,
            &[
                report("a", &all, &["memory", "gpu0", "mlx5_0:1"]),
                report("a", &all, &["memory", "gpu1", "mlx5_1:1"]),
                report("a", &all, &["memory", "mlx5_2"]),
                report("b", &all, &["memory", "gpu0", "mlx5_0:1"]),
                report("a", &all, &["memory", "mlx5_2"]),
            ],
        );
        assert_eq!(labels(&drawing), ["PE 0", "PE 1", "PE 2,4"]);
    }

    #[test]
    fn on_a_described_machine_each_pe_has_a_line_to_what_it_would_choose() {
        let host = Topology::from_xml(fixtures::EIGHT_GPUS_EIGHT_NICS).unwrap();
        let here: Vec<PeReport> = (0..8).map(|_| report("a", "0-1", &["memory"])).collect();
        let planned = planned(&host, &here).unwrap();
        let drawing = draw(&host, &planned);
        let mut found = labels(&drawing);
        found.sort_unstable();
        let expected: Vec<String> = (0..8).map(|pe| format!("PE {pe}")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn without_nics_there_are_no_lines() {
        let host = Topology::from_xml(fixtures::NO_NICS).unwrap();
        let all = host.machine.cpus.to_string();
        let drawing = draw(&host, &[report("a", &all, &["memory"])]);
        assert!(drawing.starts_with("<svg") && drawing.ends_with("</svg>\n"));
        assert!(labels(&drawing).is_empty());
    }
}
