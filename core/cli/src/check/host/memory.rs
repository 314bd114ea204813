//! Memory: huge pages, shared memory, overcommitment.

use oxshmem_figures::units::Rounded;

use crate::check::finding::Finding;
use crate::check::system::System;

use super::facts::Facts;

pub fn check(system: &System, facts: &mut Facts) -> Vec<Finding> {
    vec![
        transparent(system, facts),
        pools(system, facts),
        overcommit(system, facts),
        shm(system),
    ]
}

fn transparent(system: &System, facts: &mut Facts) -> Finding {
    let topic = "transparent huge pages";
    let folder = "sys/kernel/mm/transparent_hugepage";
    let Some(text) = system.text(&format!("{folder}/enabled")) else {
        return Finding::unseen(topic, "not visible: the kernel has none");
    };
    let chosen = text.split(['[', ']']).nth(1).unwrap_or(&text).to_owned();
    facts.insert(topic.into(), chosen.clone());
    if chosen == "never" {
        let mend = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and \
                    transparent_hugepage=madvise on the kernel's command line";
        return Finding::warning(
            topic,
            "never: access to heaps misses the TLB more often",
            mend,
        );
    }
    Finding::ok(topic, chosen)
}

/// Pools of huge pages, which are only needed where a setting asks for them.
fn pools(system: &System, facts: &mut Facts) -> Finding {
    let topic = "huge page pools";
    let folder = "sys/kernel/mm/hugepages";
    let pool = |name: &String| {
        let kib: usize = name
            .strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()?;
        let pages = system.number(&format!("{folder}/{name}/nr_hugepages"))?;
        Some((kib, pages))
    };
    let pools: Vec<(usize, i64)> = system.names(folder).iter().filter_map(pool).collect();
    let shown: Vec<String> = pools
        .iter()
        .filter(|(_, pages)| *pages > 0)
        .map(|(kib, pages)| format!("{pages} of {}", Rounded(kib << 10)))
        .collect();
    let shown = if shown.is_empty() {
        "none".into()
    } else {
        shown.join(", ")
    };
    facts.insert(topic.into(), shown.clone());
    let wanted = system.variable("OXSHMEM_HUGE_PAGES");
    let kib = match wanted.as_deref() {
        Some("2M") => 2 << 10,
        Some("1G") => 1 << 20,
        _ => return Finding::ok(topic, shown),
    };
    if pools.iter().any(|(size, pages)| *size == kib && *pages > 0) {
        return Finding::ok(topic, shown);
    }
    let mend = format!("echo NUMBER > /sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages");
    let text = format!(
        "{shown}, but OXSHMEM_HUGE_PAGES={} asks for them",
        wanted.unwrap_or_default()
    );
    Finding::fault(topic, text, mend)
}

fn overcommit(system: &System, facts: &mut Facts) -> Finding {
    let topic = "overcommitment";
    let Some(mode) = system.number("proc/sys/vm/overcommit_memory") else {
        return Finding::unseen(topic, "not visible");
    };
    facts.insert(topic.into(), mode.to_string());
    if mode == 2 {
        let mend = "sysctl vm.overcommit_memory=0, or a smaller OXSHMEM_SYMMETRIC_SIZE";
        let text = "strict: the heaps' limits count as used memory";
        return Finding::warning(topic, text, mend);
    }
    Finding::ok(topic, if mode == 1 { "always" } else { "heuristic" })
}

/// `/dev/shm`. Heaps lie elsewhere; MPI libraries and process managers need it.
fn shm(system: &System) -> Finding {
    const LEAST: u64 = 32 << 20;
    let topic = "/dev/shm";
    let mounts = system.text("proc/mounts").unwrap_or_default();
    let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mount = mounts
        .lines()
        .map(fields)
        .rfind(|mount| mount.get(1).is_some_and(|place| place == topic));
    let mend = "mount -t tmpfs -o mode=1777,size=50% shm /dev/shm (Docker: --shm-size=4g)";
    let Some(mount) = mount else {
        let text = "not mounted: MPI's launchers and libraries need it";
        return Finding::warning(topic, text, mend);
    };
    let options = mount.get(3).map_or("", String::as_str);
    if options.split(',').any(|option| option == "ro") {
        return Finding::warning(topic, "not writable", mend);
    }
    match shm_size(system, options) {
        Some(size) if size < LEAST => {
            let text = format!("{}: too little for MPI's libraries", Rounded(size as usize));
            Finding::warning(topic, text, mend)
        }
        Some(size) => Finding::ok(topic, Rounded(size as usize).to_string()),
        None => Finding::ok(topic, "half of the memory"),
    }
}

/// Bytes, as the kernel or else the mount's options say; none for the default.
fn shm_size(system: &System, options: &str) -> Option<u64> {
    if system.is_live()
        && let Ok(all) = rustix::fs::statvfs("/dev/shm")
    {
        return Some(all.f_blocks * all.f_frsize);
    }
    let size = options
        .split(',')
        .find_map(|option| option.strip_prefix("size="))?;
    let (digits, factor) = match size.strip_suffix('k') {
        Some(kib) => (kib, 1 << 10),
        None => (size, 1),
    };
    Some(digits.parse::<u64>().ok()? * factor)
}
