//! The libraries that oxshmem opens at run time, and their versions.

use std::path::PathBuf;

use crate::check::finding::Finding;
use crate::check::system::System;

use super::facts::Facts;

/// A library that is opened at run time.
struct Wanted {
    topic: &'static str,
    /// The names by which it is opened.
    names: &'static [&'static str],
    package: &'static str,
}

const VERBS: Wanted = Wanted {
    topic: "libibverbs",
    names: &["libibverbs.so.1"],
    package: "libibverbs1 and ibverbs-providers (Debian), rdma-core (Red Hat)",
};
const FABRIC: Wanted = Wanted {
    topic: "libfabric",
    names: &["libfabric.so.1", "libfabric.so.2"],
    package: "libfabric1 (Debian), libfabric (Red Hat)",
};
const HWLOC: Wanted = Wanted {
    topic: "hwloc",
    names: &["libhwloc.so.15"],
    package: "libhwloc15 (Debian), hwloc-libs (Red Hat)",
};
const CUDA: Wanted = Wanted {
    topic: "CUDA driver",
    names: &["libcuda.so.1"],
    package: "NVIDIA's driver",
};

/// Checks the libraries, given whether there are RDMA devices and NVIDIA GPUs.
pub fn check(system: &System, facts: &mut Facts, rdma: bool, gpus: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    let verbs = seen(system, facts, &VERBS, cfg!(feature = "verbs"), &mut found);
    if let (Seen::Missing, true) = (verbs, rdma) {
        found.push(missing(&VERBS, "the RDMA devices here cannot be used"));
    } else if let Seen::Missing = verbs {
        found.push(Finding::ok(
            VERBS.topic,
            "not installed; no RDMA device needs it",
        ));
    }
    let fabric = seen(system, facts, &FABRIC, cfg!(feature = "ofi"), &mut found);
    if let (Seen::Missing, false) = (fabric, rdma) {
        let why = "without it and without RDMA devices, no other host can be reached";
        found.push(Finding::warning(
            FABRIC.topic,
            format!("not installed: {why}"),
            install(&FABRIC),
        ));
    } else if let Seen::Missing = fabric {
        found.push(Finding::ok(
            FABRIC.topic,
            "not installed; the RDMA devices do without",
        ));
    }
    if let Seen::Missing = seen(system, facts, &HWLOC, cfg!(feature = "hwloc"), &mut found) {
        found.push(Finding::ok(
            HWLOC.topic,
            "not installed; the topology comes from sysfs",
        ));
    }
    let cuda = seen(system, facts, &CUDA, cfg!(feature = "cuda"), &mut found);
    if let (Seen::Missing, 1..) = (cuda, gpus) {
        found.push(missing(
            &CUDA,
            &format!("{gpus} NVIDIA GPUs cannot be used"),
        ));
    } else if let Seen::Missing = cuda {
        found.push(Finding::ok(
            CUDA.topic,
            "not installed; no NVIDIA GPU needs it",
        ));
    }
    found
}

fn install(wanted: &Wanted) -> String {
    format!("install {}", wanted.package)
}

fn missing(wanted: &Wanted, why: &str) -> Finding {
    Finding::fault(
        wanted.topic,
        format!("not installed: {why}"),
        install(wanted),
    )
}

#[derive(Clone, Copy)]
enum Seen {
    /// Told already.
    Told,
    Missing,
}

/// Tells of a library that is found, or that this build does not open.
fn seen(
    system: &System,
    facts: &mut Facts,
    wanted: &Wanted,
    built: bool,
    found: &mut Vec<Finding>,
) -> Seen {
    let topic = wanted.topic;
    if !built {
        found.push(Finding::ok(topic, "not used: this build leaves it out"));
        return Seen::Told;
    }
    let path = match system.variable("OXSHMEM_CUDA_LIBRARY") {
        Some(other) if topic == CUDA.topic => opened(&other),
        _ if system.is_live() => wanted.names.iter().find_map(|name| opened(name)),
        _ => wanted.names.iter().find_map(|name| in_folder(system, name)),
    };
    let Some(path) = path else {
        return Seen::Missing;
    };
    // The file's name has the version: libibverbs.so.1.14.44.0.
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let version = name
        .split_once(".so.")
        .map_or(&*name, |(_, version)| version);
    found.push(Finding::ok(topic, format!("{version}, {}", path.display())));
    facts.insert(topic.into(), version.into());
    Seen::Told
}

/// Opens a library as a job would, and finds the file that it lies in.
fn opened(name: &str) -> Option<PathBuf> {
    // SAFETY: the libraries' initializers are those that every job runs; nothing of them is called here.
    let library = unsafe { libloading::Library::new(name) }.ok()?;
    // It stays open: some libraries start threads that would lose their code.
    std::mem::forget(library);
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let stem = name
        .rsplit('/')
        .next()
        .unwrap_or(name)
        .split(".so")
        .next()?;
    let path = maps.lines().find_map(|line| {
        let path = line.get(line.find('/')?..)?;
        let file = path.rsplit('/').next()?;
        let rest = file.strip_prefix(stem)?;
        rest.starts_with(".so").then(|| PathBuf::from(path))
    });
    Some(path.unwrap_or_else(|| PathBuf::from(name)))
}

/// The library's file in a folder, where its link leads to.
fn in_folder(system: &System, name: &str) -> Option<PathBuf> {
    let folders = ["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "lib64"];
    let path = folders
        .iter()
        .map(|folder| system.path(&format!("{folder}/{name}")))
        .find(|path| path.exists())?;
    path.canonicalize().ok()
}
