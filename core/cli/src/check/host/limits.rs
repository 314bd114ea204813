//! Limits of the process and of its control group.

use oxshmem_figures::units::Rounded;

use crate::check::finding::Finding;
use crate::check::system::System;

use super::facts::Facts;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Checks the limits, given whether there are RDMA devices, which lock the memory that they reach.
pub fn check(system: &System, facts: &mut Facts, rdma: bool) -> Vec<Finding> {
    let limits = Limits::read(system);
    let memory = total_memory(system);
    let mut found = vec![
        locked(&limits, facts, rdma, memory),
        descriptors(&limits, facts),
        processes(&limits, facts),
    ];
    for (topic, line) in [
        ("address space", "Max address space"),
        ("data size", "Max data size"),
    ] {
        found.push(address_space(topic, limits.of(line), facts));
    }
    found.extend(groups(system, facts, memory));
    found
}

/// Bytes of memory of the machine.
pub fn total_memory(system: &System) -> Option<u64> {
    let text = system.text("proc/meminfo")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// The soft and the hard limit; `u64::MAX` is none.
type Pair = (u64, u64);

/// The limits of `/proc/self/limits`.
struct Limits(Option<String>);

impl Limits {
    fn read(system: &System) -> Self {
        Self(system.text("proc/self/limits"))
    }

    fn of(&self, name: &str) -> Option<Pair> {
        let text = self.0.as_deref()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let mut words = line.split_whitespace();
        let mut limit = || match words.next()? {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        };
        Some((limit()?, limit()?))
    }
}

fn size(bytes: u64) -> String {
    if bytes == u64::MAX {
        "unlimited".into()
    } else {
        Rounded(bytes as usize).to_string()
    }
}

fn count(number: u64) -> String {
    if number == u64::MAX {
        "unlimited".into()
    } else {
        number.to_string()
    }
}

fn untold(topic: &str) -> Finding {
    Finding::unseen(topic, "not visible: there is no /proc/self/limits")
}

fn locked(limits: &Limits, facts: &mut Facts, rdma: bool, memory: Option<u64>) -> Finding {
    let topic = "locked memory";
    let Some((soft, _)) = limits.of("Max locked memory") else {
        return untold(topic);
    };
    facts.insert(topic.into(), size(soft));
    let mend = "set `* soft memlock unlimited` and `* hard memlock unlimited` in \
                /etc/security/limits.conf; for Slurm LimitMEMLOCK=infinity in slurmd.service, for \
                a container --ulimit memlock=-1";
    let half = memory.unwrap_or(0) / 2;
    let shown = size(soft);
    if !rdma {
        Finding::ok(topic, format!("{shown}; no RDMA device locks memory"))
    } else if soft < 64 * MIB {
        let text = format!("{shown}: RDMA devices cannot register a heap");
        Finding::fault(topic, text, mend)
    } else if soft < half {
        let text = format!("{shown}: heaps on RDMA devices are limited to that");
        Finding::warning(topic, text, mend)
    } else {
        Finding::ok(topic, shown)
    }
}

fn descriptors(limits: &Limits, facts: &mut Facts) -> Finding {
    let topic = "descriptors";
    let Some((_, hard)) = limits.of("Max open files") else {
        return untold(topic);
    };
    facts.insert(topic.into(), count(hard));
    // The library raises the soft limit by itself.
    let shown = format!("{} (hard limit)", count(hard));
    let mend = "set `* hard nofile 1048576` in /etc/security/limits.conf, or LimitNOFILE in the \
                service that starts jobs";
    match hard {
        0..256 => Finding::fault(topic, format!("{shown}: even small jobs run out"), mend),
        256..4096 => Finding::warning(topic, format!("{shown}: jobs of many PEs run out"), mend),
        _ => Finding::ok(topic, shown),
    }
}

fn processes(limits: &Limits, facts: &mut Facts) -> Finding {
    let topic = "processes";
    let Some((soft, _)) = limits.of("Max processes") else {
        return untold(topic);
    };
    facts.insert(topic.into(), count(soft));
    if soft < 1024 {
        let mend = "set `* soft nproc 65536` in /etc/security/limits.conf";
        let text = format!("{soft}: PEs and their threads run out");
        return Finding::warning(topic, text, mend);
    }
    Finding::ok(topic, count(soft))
}

fn address_space(topic: &str, limit: Option<Pair>, facts: &mut Facts) -> Finding {
    let Some((soft, _)) = limit else {
        return untold(topic);
    };
    facts.insert(topic.into(), size(soft));
    if soft == u64::MAX {
        return Finding::ok(topic, "unlimited");
    }
    let flag = if topic == "data size" { 'd' } else { 'v' };
    let mend = format!("`ulimit -{flag} unlimited` before the job starts");
    let text = format!(
        "{}: the heaps of all PEs of a host are mapped in each",
        size(soft)
    );
    Finding::fault(topic, text, mend)
}

/// The limits of the control group, and of those above it.
fn groups(system: &System, facts: &mut Facts, memory: Option<u64>) -> Vec<Finding> {
    let group = Group::of(system);
    let mut found = Vec::new();
    let whole = memory.unwrap_or(u64::MAX);
    let limit = group.least("memory", "memory.max", "memory.limit_in_bytes");
    let limit = limit.filter(|limit| *limit < whole);
    facts.insert(
        "memory of the group".into(),
        limit.map_or("all".into(), size),
    );
    found.push(match limit {
        None => Finding::ok("memory of the group", "not limited"),
        Some(limit) if limit < GIB => Finding::warning(
            "memory of the group",
            format!("{}: heaps count to it, and to locked memory", size(limit)),
            "give the job more memory (Slurm --mem, Docker --memory), or set OXSHMEM_SYMMETRIC_SIZE",
        ),
        Some(limit) => Finding::ok("memory of the group", size(limit)),
    });
    if let Some(cpus) = group.cpus() {
        facts.insert("CPU quota".into(), format!("{cpus:.2}"));
        found.push(Finding::warning(
            "CPU quota",
            format!("{cpus:.2} CPUs: a PE that waits spends the time of those that work"),
            "give whole CPUs by a set (Docker --cpuset-cpus, Kubernetes' static policy) and no quota",
        ));
    } else {
        facts.insert("CPU quota".into(), "none".into());
        found.push(Finding::ok("CPU quota", "none"));
    }
    let rdma = group.texts("rdma", "rdma.max");
    let limited: Vec<String> = rdma
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| {
            let mut values = line
                .split_whitespace()
                .filter_map(|word| word.split_once('='));
            values.any(|(_, value)| value != "max")
        })
        .map(str::to_owned)
        .collect();
    if let Some(line) = limited.first() {
        found.push(Finding::warning(
            "RDMA of the group",
            format!("{line}: queue pairs and regions count to it"),
            "write `DEVICE hca_handle=max hca_object=max` to rdma.max of the control group",
        ));
    }
    found
}

/// The control group of this process, versions 1 and 2.
struct Group<'s> {
    system: &'s System,
    /// Lines of `/proc/self/cgroup`: the controllers, and the path.
    paths: Vec<(String, String)>,
}

impl<'s> Group<'s> {
    fn of(system: &'s System) -> Self {
        let text = system.text("proc/self/cgroup").unwrap_or_default();
        let paths = text.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
        });
        Self {
            system,
            paths: paths.collect(),
        }
    }

    /// The folders of the group and those above it, for version 2, then for a controller of version 1.
    fn folders(&self, controller: &str) -> Vec<String> {
        let mut folders = Vec::new();
        for (controllers, path) in &self.paths {
            let base = match controllers.as_str() {
                "" => "sys/fs/cgroup".to_owned(),
                some if some.split(',').any(|one| one == controller) => {
                    format!("sys/fs/cgroup/{controller}")
                }
                _ => continue,
            };
            // A path outside of what is mounted leads nowhere; its last folder, the mount point, stays.
            let mut path = path.as_str();
            while !path.is_empty() && path != "/" {
                folders.push(format!("{base}{path}"));
                path = path.rsplit_once('/').map_or("", |(above, _)| above);
            }
            folders.push(base);
        }
        folders
    }

    fn texts(&self, controller: &str, file: &str) -> Vec<String> {
        let folders = self.folders(controller).into_iter();
        folders
            .filter_map(|folder| self.system.text(&format!("{folder}/{file}")))
            .collect()
    }

    /// The least of the numbers in these files.
    fn least(&self, controller: &str, two: &str, one: &str) -> Option<u64> {
        let texts = [two, one].map(|file| self.texts(controller, file));
        texts
            .concat()
            .iter()
            .filter_map(|text| text.parse().ok())
            .min()
    }

    /// The CPU time per time, where it is limited.
    fn cpus(&self) -> Option<f64> {
        let two = self.texts("cpu", "cpu.max").into_iter().filter_map(|text| {
            let (quota, period) = text.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        });
        let quotas = self.texts("cpu", "cpu.cfs_quota_us");
        let periods = self.texts("cpu", "cpu.cfs_period_us");
        let one = quotas.iter().zip(&periods).filter_map(|(quota, period)| {
            let quota = quota.parse::<f64>().ok().filter(|quota| *quota > 0.0)?;
            Some(quota / period.parse::<f64>().ok()?)
        });
        two.chain(one)
            .filter(|cpus| cpus.is_finite())
            .min_by(f64::total_cmp)
    }
}
