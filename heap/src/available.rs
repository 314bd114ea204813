//! How much memory there is: the machine's, or less where a control group limits this process.
//!
//! Committing a page of a memfd when the group is at its limit does not fail: it has the kernel
//! kill a process. So a heap asks here before it commits. Both versions of control groups are read,
//! at every level from this process's group up to the root that is mounted.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory, as of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// Bytes that there are in all, used or not: the machine's, or the lowest limit.
    pub total: u64,
    /// Bytes that can still be had, without touching swap.
    pub free: u64,
    /// The tighter bound, in words: the machine, or the control group by its path.
    pub bound: String,
}

impl Available {
    /// Reads it from /proc and the mounted control groups. None where /proc is not there to read.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::read(Path::new("/"))
    }

    /// As [`now`](Self::now), below another root directory.
    fn read(root: &Path) -> Option<Self> {
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
        let total = field(&meminfo, "MemTotal:")? * 1024;
        let free = field(&meminfo, "MemAvailable:").or_else(|| field(&meminfo, "MemFree:"))? * 1024;
        let mut least = Available {
            total,
            free,
            bound: "this machine".to_owned(),
        };
        for level in levels(root) {
            let Some((limit, free)) = level.read() else {
                continue;
            };
            least.total = least.total.min(limit);
            if free < least.free {
                least.free = free;
                least.bound = format!("control group {}", level.directory.display());
            }
        }
        Some(least)
    }
}

/// One control group that this process is in, or is below.
struct Level {
    directory: PathBuf,
    files: &'static Files,
}

/// The file names of a version of control groups.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// The fields of memory.stat that count file pages, which can be dropped.
    reclaimable: [&'static str; 2],
}

const VERSION_2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: ["inactive_file", "active_file"],
};

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
};

impl Level {
    /// Its limit and what is left of it. None if it has no limit.
    fn read(&self) -> Option<(u64, u64)> {
        let number = |name| -> Option<u64> {
            fs::read_to_string(self.directory.join(name))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        let limit = number(self.files.limit)?;
        let usage = number(self.files.usage)?;
        let stat = fs::read_to_string(self.directory.join("memory.stat")).unwrap_or_default();
        let files: u64 = self
            .files
            .reclaimable
            .iter()
            .filter_map(|name| field(&stat, name))
            .sum();
        Some((limit, limit.saturating_sub(usage.saturating_sub(files))))
    }
}

/// The number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok())?
    })
}

/// Every level of this process's control groups that may limit memory.
fn levels(root: &Path) -> Vec<Level> {
    let read = |path| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let mut levels = Vec::new();
    for line in groups.lines() {
        // "4:memory:/path", or "0::/path" in version 2.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (kind, files) = match controllers {
            "" => ("cgroup2", &VERSION_2),
            list if list.split(',').any(|name| name == "memory") => ("cgroup", &VERSION_1),
            _ => continue,
        };
        let Some((from, at)) = mounts.lines().find_map(|line| mount(line, kind)) else {
            continue;
        };
        let top = root.join(at.strip_prefix('/').unwrap_or(at));
        // Seen from another namespace the path may lie outside the mount: then its top counts.
        let below = Path::new(path).strip_prefix(from).unwrap_or(Path::new(""));
        if below.components().any(|part| part.as_os_str() == "..") {
            levels.push(Level {
                directory: top,
                files,
            });
            continue;
        }
        levels.extend(below.ancestors().map(|part| Level {
            directory: top.join(part),
            files,
        }));
    }
    levels
}

/// From a line of mountinfo: the group that is mounted, and where; if the line mounts control
/// groups of this kind with the memory controller.
fn mount<'a>(line: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    let (front, back) = line.split_once(" - ")?;
    let mut back = back.split(' ');
    let is_kind = back.next()? == kind;
    let options = back.nth(1)?;
    let has_memory = kind == "cgroup2" || options.split(',').any(|option| option == "memory");
    let mut front = front.split(' ').skip(3);
    (is_kind && has_memory).then_some((front.next()?, front.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with files, gone when dropped.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let name = format!("oxshmem-heap-{name}-{}", std::process::id());
            let root = Root(std::env::temp_dir().join(name));
            for (path, text) in files {
                let path = root.0.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            root
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:  16384 kB\nMemFree: 1024 kB\nMemAvailable:  8192 kB\n",
    );

    #[test]
    fn without_control_groups_the_machine_counts() {
        let root = Root::new("none", &[MEMINFO]);
        let memory = Available::read(&root.0).unwrap();
        assert_eq!((memory.total, memory.free), (16 << 20, 8 << 20));
        assert_eq!(memory.bound, "this machine");
    }

    #[test]
    fn version_2_takes_the_tightest_level() {
        let root = Root::new(
            "v2",
            &[
                MEMINFO,
                ("proc/self/cgroup", "0::/job/step\n"),
                (
                    "proc/self/mountinfo",
                    "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                ),
                ("sys/fs/cgroup/job/step/memory.max", "max\n"),
                ("sys/fs/cgroup/job/step/memory.current", "1000\n"),
                ("sys/fs/cgroup/job/memory.max", "4000000\n"),
                ("sys/fs/cgroup/job/memory.current", "3000000\n"),
                (
                    "sys/fs/cgroup/job/memory.stat",
                    "anon 7\ninactive_file 100\nactive_file 20\n",
                ),
            ],
        );
        let memory = Available::read(&root.0).unwrap();
        assert_eq!((memory.total, memory.free), (4_000_000, 1_000_120));
        assert!(
            memory.bound.ends_with("/sys/fs/cgroup/job"),
            "{}",
            memory.bound
        );
    }

    #[test]
    fn version_1_is_found_by_its_memory_controller() {
        let root = Root::new(
            "v1",
            &[
                MEMINFO,
                ("proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/abc\n0::/\n"),
                (
                    "proc/self/mountinfo",
                    "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 31 23 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
                ),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "6000000\n"),
                (
                    "sys/fs/cgroup/memory/memory.stat",
                    "total_inactive_file 0\n",
                ),
            ],
        );
        let memory = Available::read(&root.0).unwrap();
        assert_eq!((memory.total, memory.free), (5_000_000, 0));
    }

    #[test]
    fn a_group_whose_name_only_begins_like_the_mounted_one_is_not_below_it() {
        let root = Root::new(
            "names",
            &[
                MEMINFO,
                ("proc/self/cgroup", "0::/jobs\n"),
                (
                    "proc/self/mountinfo",
                    "30 23 0:26 /job /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                ),
                ("sys/fs/cgroup/memory.max", "4000000\n"),
                ("sys/fs/cgroup/memory.current", "3000000\n"),
                ("sys/fs/cgroup/s/memory.max", "5\n"),
                ("sys/fs/cgroup/s/memory.current", "5\n"),
            ],
        );
        assert_eq!(Available::read(&root.0).unwrap().free, 1_000_000);
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = Available::now().unwrap();
        assert!(memory.free > 0 && memory.free <= memory.total);
    }
}
