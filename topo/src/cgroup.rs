//! The CPU time that the process's control group leaves it, versions 1 and 2.

use std::path::{Component, Path};

use crate::tree::Tree;

/// The version, told by which files hold the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
    One,
    /// `cpu.max`.
    Two,
}

/// The smallest limit from this process's group up to the top that is mounted here, in CPUs.
/// None where there is none. What cannot be read or understood limits nothing.
pub(crate) fn cpu_quota(tree: Tree<'_>) -> Option<f64> {
    let groups = tree.text("proc/self/cgroup").ok()??;
    let mounts = tree.text("proc/self/mountinfo").ok()??;
    let limits = mounts.lines().filter_map(|line| {
        let mount = Mount::parse(line)?;
        let group = groups
            .lines()
            .find_map(|line| group_of(line, mount.version))?;
        mount.quota(tree, group)
    });
    limits.min_by(f64::total_cmp)
}

/// A hierarchy that carries the cpu controller, where it is mounted.
#[derive(Debug)]
struct Mount {
    version: Version,
    /// The group that is seen at the mount point; not `/` inside many containers.
    root: String,
    point: String,
}

impl Mount {
    /// From a line of mountinfo; none if it is about something else.
    fn parse(line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let version = match kind.next()? {
            "cgroup2" => Version::Two,
            "cgroup" if kind.nth(1)?.split(',').any(|option| option == "cpu") => Version::One,
            _ => return None,
        };
        Some(Self {
            version,
            root: unescape(root),
            point: unescape(point),
        })
    }

    /// The smallest limit from `group` up to the mount point.
    fn quota(&self, tree: Tree<'_>, group: &str) -> Option<f64> {
        // A group outside what is mounted (a container that sees its host's names): the mount
        // point is the nearest that can be seen.
        let below = Path::new(group)
            .strip_prefix(&self.root)
            .unwrap_or(Path::new(""));
        let inside = below
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let below = if inside { below } else { Path::new("") };
        let folders = below.ancestors().filter_map(|folder| {
            let folder = Path::new(&self.point).join(folder);
            self.limit(tree, folder.to_str()?.trim_end_matches('/'))
        });
        folders.min_by(f64::total_cmp)
    }

    /// The limit of the group in `folder` itself.
    fn limit(&self, tree: Tree<'_>, folder: &str) -> Option<f64> {
        let text = |file: &str| tree.text(&format!("{folder}/{file}")).ok()?;
        let (quota, period) = match self.version {
            Version::Two => {
                let max = text("cpu.max")?;
                let mut max = max.split_whitespace().map(str::to_owned);
                (max.next()?, max.next()?)
            }
            Version::One => (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?),
        };
        // "max" and -1 mean no limit, and neither parses as an unsigned number.
        let quota: u32 = quota.trim().parse().ok()?;
        let period: u32 = period.trim().parse().ok()?;
        (quota > 0 && period > 0).then(|| f64::from(quota) / f64::from(period))
    }
}

/// The path in a line of `/proc/self/cgroup`, if the line is about this version's cpu controller.
fn group_of(line: &str, version: Version) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let ours = match version {
        Version::Two => controllers.is_empty(),
        Version::One => controllers.split(',').any(|controller| controller == "cpu"),
    };
    ours.then_some(path)
}

/// Undoes mountinfo's octal escapes of blanks and backslashes.
fn unescape(field: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(field.to_owned(), |field, (escape, plain)| {
        field.replace(escape, plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    fn quota(files: &str) -> Option<f64> {
        cpu_quota(Fixture::new(files).tree())
    }

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn version_two_takes_the_smallest_limit_up_the_hierarchy() {
        let files = |max: &str| {
            format!(
                "proc/self/cgroup = 0::/user.slice/job\n\
                 proc/self/mountinfo = 22 27 0:21 / /proc rw - proc proc rw\\n{V2}\n\
                 sys/fs/cgroup/user.slice/cpu.max = {max} 100000\n\
                 sys/fs/cgroup/user.slice/job/cpu.max = 400000 100000"
            )
        };
        assert_eq!(quota(&files("150000")), Some(1.5));
        assert_eq!(quota(&files("max")), Some(4.0));
    }

    #[test]
    fn version_one_is_read_where_the_cpu_controller_is_mounted() {
        let files = |quota: i32| {
            format!(
                "proc/self/cgroup = 3:cpuset:/\\n1:cpuacct,cpu:/a b\\n0::/\n\
                 proc/self/mountinfo = 32 31 0:29 / /cg\\040roup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n\
                 cg roup/cpu/a b/cpu.cfs_quota_us = {quota}\n\
                 cg roup/cpu/a b/cpu.cfs_period_us = 50000"
            )
        };
        assert_eq!(quota(&files(100_000)), Some(2.0));
        assert_eq!(quota(&files(-1)), None);
    }

    #[test]
    fn a_container_that_sees_its_hosts_names_is_limited_at_the_mount_point() {
        let mount = V2.replace("0:26 /", "0:26 /docker/f00");
        for group in ["/docker/f00", "/elsewhere", "/../../x", ""] {
            let files = format!(
                "proc/self/cgroup = 0::{group}\nproc/self/mountinfo = {mount}\n\
                 sys/fs/cgroup/cpu.max = 300000 100000"
            );
            assert_eq!(quota(&files), Some(3.0), "{group}");
        }
    }

    #[test]
    fn what_is_missing_or_malformed_limits_nothing() {
        assert_eq!(quota(""), None);
        for max in [
            "",
            "max",
            "1",
            "-5 10",
            "5 0",
            "0 5",
            "a b",
            "99999999999 1",
        ] {
            let files = format!(
                "proc/self/cgroup = 0::/\nproc/self/mountinfo = {V2}\nsys/fs/cgroup/cpu.max = {max}"
            );
            assert_eq!(quota(&files), None, "{max}");
        }
        for mounts in ["x", " - ", "1 2 3 4 5 - cgroup", "- cgroup2 cgroup2 rw"] {
            let files = format!("proc/self/cgroup = ::\\n0\nproc/self/mountinfo = {mounts}");
            assert_eq!(quota(&files), None, "{mounts}");
        }
    }
}
