//! Tests of the doctor over hosts laid out in folders: a good one, and hosts with one thing wrong each.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::check::finding::Level;

/// A host's files in a temporary folder, which is removed when this is dropped.
struct Fixture(PathBuf);

impl Fixture {
    fn good() -> Self {
        // Relaxed: the number only has to differ from the others of this process.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("oxshmem-check-{}-{number}", std::process::id());
        let fixture = Self(std::env::temp_dir().join(name));
        let lines = include_str!("good-host.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            if let Some((file, target)) = line.split_once(" -> ") {
                std::os::unix::fs::symlink(target, fixture.made(file)).unwrap();
            } else {
                let (file, contents) = line.split_once(" = ").unwrap();
                fixture.write(file, contents);
            }
        }
        // Access control without redirection, as root sees it.
        fixture.bridge(0x0011);
        fixture
    }

    fn made(&self, file: &str) -> PathBuf {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn write(&self, file: &str, contents: &str) {
        let contents = contents.replace("\\n", "\n") + "\n";
        std::fs::write(self.made(file), contents).unwrap();
    }

    /// Replaces a text in a file.
    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.0.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    fn remove(&self, file: &str) {
        let path = self.0.join(file);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Gives the bridge this control register of access control.
    fn bridge(&self, control: u16) {
        let mut config = vec![0; 4096];
        config[256..260].copy_from_slice(&0x0001_000d_u32.to_le_bytes());
        config[262..264].copy_from_slice(&control.to_le_bytes());
        std::fs::write(self.made("sys/bus/pci/devices/0000:00:01.0/config"), config).unwrap();
    }

    fn root(&self) -> &Path {
        &self.0
    }

    fn seen(&self) -> Host {
        see(&System::new(Some(self.root())))
    }

    fn bad(&self) -> Vec<Finding> {
        let mut found = self.seen().findings;
        found.retain(Finding::is_bad);
        found
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Best effort: a left-over folder in the temporary place harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_good_host_has_every_line_ok() {
    let host = Fixture::good().seen();
    for finding in &host.findings {
        // libraries that a build leaves out are a line, too
        assert_eq!(finding.level, Level::Ok, "{finding}");
    }
    let line = |topic: &str| {
        let found = host.findings.iter().find(|finding| finding.topic == topic);
        found
            .unwrap_or_else(|| panic!("{topic}: {:?}", host.findings))
            .text
            .clone()
    };
    let infiniband = "active, InfiniBand, 200 Gb/sec (4X HDR), P_Keys 0xffff, LID 0x11";
    assert_eq!(line("port mlx5_0:1"), infiniband);
    assert!(line("port mlx5_1:1").contains("MTU 9000 of ens1: packets of 4096 bytes"));
    assert_eq!(line("PCI link of mlx5_0"), "16.0 GT/s PCIe x16");
    assert_eq!(line("place of mlx5_1"), "NUMA node 1");
    assert_eq!(line("IOMMU"), "passes addresses through");
    assert_eq!(line("ACS"), "off");
    assert_eq!(
        line("GPU memory for NICs"),
        "nvidia_peermem (driver 535.104.05)"
    );
    assert_eq!(line("/dev/shm"), "503.9 GiB");
    assert_eq!(line("descriptors"), "1048576 (hard limit)");
    assert_eq!(
        (&*host.hostname, host.rates["mlx5_0:1"], host.rates["ens1"]),
        ("n1", 25.0, 25.0)
    );
    #[cfg(feature = "verbs")]
    assert!(line("libibverbs").starts_with("1.14.44.0, "));
}

const PORT: &str = "sys/class/infiniband/mlx5_0/ports/1";
const ROCE: &str = "sys/class/infiniband/mlx5_1/ports/1";
const GROUP: &str = "sys/fs/cgroup/system.slice/slurmd.service";

/// The change to the host, the topic that has to be named, its level and a part of its text.
type Case = (
    &'static str,
    fn(&Fixture),
    &'static str,
    Level,
    &'static str,
);

const CASES: &[Case] = &[
    (
        "locked memory",
        |host| {
            host.edit(
                "proc/self/limits",
                "memory         unlimited            unlimited",
                "memory         65536                65536    ",
            );
        },
        "locked memory",
        Level::Fault,
        "64.0 KiB",
    ),
    (
        "locked memory for small heaps only",
        |host| {
            host.edit(
                "proc/self/limits",
                "memory         unlimited            unlimited",
                "memory         8589934592           8589934592",
            );
        },
        "locked memory",
        Level::Warning,
        "8.0 GiB",
    ),
    (
        "descriptors",
        |host| host.edit("proc/self/limits", "1048576", "200    "),
        "descriptors",
        Level::Fault,
        "200",
    ),
    (
        "some descriptors",
        |host| host.edit("proc/self/limits", "1048576", "1024   "),
        "descriptors",
        Level::Warning,
        "1024",
    ),
    (
        "processes",
        |host| {
            host.edit(
                "proc/self/limits",
                "4126822              4126822",
                "100                  100    ",
            )
        },
        "processes",
        Level::Warning,
        "100",
    ),
    (
        "address space",
        |host| {
            host.edit(
                "proc/self/limits",
                "address space         unlimited ",
                "address space         1073741824",
            );
        },
        "address space",
        Level::Fault,
        "1.0 GiB",
    ),
    (
        "memory group",
        |host| host.write(&format!("{GROUP}/memory.max"), "536870912"),
        "memory of the group",
        Level::Warning,
        "512.0 MiB",
    ),
    (
        "memory group above",
        |host| host.write("sys/fs/cgroup/system.slice/memory.max", "536870912"),
        "memory of the group",
        Level::Warning,
        "512.0 MiB",
    ),
    (
        "quota",
        |host| host.write(&format!("{GROUP}/cpu.max"), "150000 100000"),
        "CPU quota",
        Level::Warning,
        "1.50",
    ),
    (
        "RDMA group",
        |host| {
            host.write(
                &format!("{GROUP}/rdma.max"),
                "mlx5_0 hca_handle=2 hca_object=2000",
            )
        },
        "RDMA of the group",
        Level::Warning,
        "hca_handle=2",
    ),
    (
        "huge pages",
        |host| {
            host.write(
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always madvise [never]",
            )
        },
        "transparent huge pages",
        Level::Warning,
        "never",
    ),
    (
        "overcommitment",
        |host| host.write("proc/sys/vm/overcommit_memory", "2"),
        "overcommitment",
        Level::Warning,
        "strict",
    ),
    (
        "small shm",
        |host| host.edit("proc/mounts", "size=528382464k", "size=16384k"),
        "/dev/shm",
        Level::Warning,
        "16.0 MiB",
    ),
    (
        "no shm",
        |host| host.write("proc/mounts", "/dev/sda1 / ext4 rw 0 0"),
        "/dev/shm",
        Level::Warning,
        "not mounted",
    ),
    (
        "governor",
        |host| {
            host.write(
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                "powersave",
            )
        },
        "CPU governor",
        Level::Warning,
        "powersave (cpu1)",
    ),
    (
        "frequency",
        |host| {
            host.write(
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq",
                "1500000",
            )
        },
        "CPU frequency",
        Level::Warning,
        "cpu1 is held at 1.50 of 3.70 GHz",
    ),
    (
        "clock",
        |host| {
            host.write(
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "hpet",
            )
        },
        "clock source",
        Level::Warning,
        "hpet",
    ),
    (
        "port down",
        |host| {
            host.write(&format!("{PORT}/state"), "1: DOWN");
            host.write(&format!("{PORT}/phys_state"), "2: Polling");
        },
        "port mlx5_0:1",
        Level::Warning,
        "1: DOWN (2: Polling)",
    ),
    (
        "no subnet manager",
        |host| host.write(&format!("{PORT}/sm_lid"), "0x0"),
        "port mlx5_0:1",
        Level::Fault,
        "no subnet manager",
    ),
    (
        "port not set up",
        |host| host.write(&format!("{PORT}/state"), "2: INIT"),
        "port mlx5_0:1",
        Level::Warning,
        "2: INIT",
    ),
    (
        "limited partition",
        |host| host.write(&format!("{PORT}/pkeys/0"), "0x7fff"),
        "port mlx5_0:1",
        Level::Fault,
        "limited member",
    ),
    (
        "no address",
        |host| {
            for gid in ["gids/2", "gids/3"] {
                host.write(
                    &format!("{ROCE}/{gid}"),
                    "0000:0000:0000:0000:0000:0000:0000:0000",
                );
            }
        },
        "port mlx5_1:1",
        Level::Fault,
        "none is of RoCE v2 with an address",
    ),
    (
        "only version 1",
        |host| host.write(&format!("{ROCE}/gid_attrs/types/3"), "IB/RoCE v1"),
        "port mlx5_1:1",
        Level::Fault,
        "none is of RoCE v2",
    ),
    (
        "small MTU",
        |host| host.write("sys/class/net/ens1/mtu", "1500"),
        "port mlx5_1:1",
        Level::Warning,
        "packets of 1024 bytes",
    ),
    (
        "half duplex",
        |host| host.write("sys/class/net/eth0/duplex", "half"),
        "interface eth0",
        Level::Warning,
        "half duplex",
    ),
    (
        "no device file",
        |host| {
            host.remove("sys/class/infiniband/mlx5_1");
            host.remove("dev/infiniband/uverbs0");
        },
        "mlx5_0",
        Level::Fault,
        "/dev/infiniband/uverbs0",
    ),
    (
        "no verbs device",
        |host| {
            host.remove("sys/class/infiniband/mlx5_1");
            host.remove("sys/class/infiniband_verbs/uverbs0");
        },
        "mlx5_0",
        Level::Fault,
        "no device of verbs",
    ),
    (
        "slow PCI link",
        |host| host.write("sys/class/infiniband/mlx5_0/device/current_link_width", "8"),
        "PCI link of mlx5_0",
        Level::Warning,
        "16.0 GT/s PCIe x8, of 16.0 GT/s PCIe x16",
    ),
    (
        "place unknown",
        |host| host.write("sys/class/infiniband/mlx5_1/device/numa_node", "-1"),
        "place of mlx5_1",
        Level::Warning,
        "NUMA",
    ),
    (
        "ACS",
        |host| host.bridge(0x001d),
        "ACS",
        Level::Warning,
        "1 of 1 bridges (first 0000:00:01.0)",
    ),
    (
        "IOMMU",
        |host| {
            host.write(
                "sys/class/infiniband/mlx5_0/device/iommu_group/type",
                "DMA-FQ",
            )
        },
        "IOMMU",
        Level::Warning,
        "translates",
    ),
    (
        "peermem",
        |host| host.write("proc/modules", "mlx5_ib 450560 0 - Live 0x0"),
        "GPU memory for NICs",
        Level::Warning,
        "none (driver 535.104.05)",
    ),
    (
        "no NVIDIA driver",
        |host| host.remove("proc/driver/nvidia/version"),
        "GPU memory for NICs",
        Level::Warning,
        "no driver",
    ),
    (
        "no ssh",
        |host| host.remove("usr/bin/ssh"),
        "remote shell",
        Level::Warning,
        "no program ssh",
    ),
    #[cfg(feature = "verbs")]
    (
        "no libibverbs",
        |host| host.remove("usr/lib/x86_64-linux-gnu/libibverbs.so.1"),
        "libibverbs",
        Level::Fault,
        "not installed",
    ),
    #[cfg(feature = "cuda")]
    (
        "no CUDA",
        |host| host.remove("usr/lib/x86_64-linux-gnu/libcuda.so.1"),
        "CUDA driver",
        Level::Fault,
        "1 NVIDIA GPU",
    ),
];

#[test]
fn of_a_host_with_one_thing_wrong_that_is_named_and_nothing_else() {
    for (name, change, topic, level, text) in CASES {
        let host = Fixture::good();
        change(&host);
        let found = host.bad();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_eq!(
            (&*found[0].topic, found[0].level),
            (*topic, *level),
            "{name}: {found:?}"
        );
        assert!(found[0].text.contains(text), "{name}: {found:?}");
        assert!(
            found[0].mend.as_ref().is_some_and(|mend| mend.len() > 10),
            "{name}"
        );
    }
}

#[test]
fn a_host_without_rdma_devices_needs_libfabric_and_no_locked_memory() {
    let host = Fixture::good();
    for folder in [
        "sys/class/infiniband",
        "sys/class/infiniband_verbs",
        "sys/bus/pci",
    ] {
        host.remove(folder);
    }
    host.edit(
        "proc/self/limits",
        "memory         unlimited            unlimited",
        "memory         65536                65536    ",
    );
    assert_eq!(host.bad(), []);
    host.remove("usr/lib/x86_64-linux-gnu/libfabric.so.1");
    #[cfg(feature = "ofi")]
    assert_eq!(host.bad()[0].topic, "libfabric");
    // A NIC without its driver is seen on PCI.
    let host = Fixture::good();
    host.remove("sys/class/infiniband");
    let found = host.bad();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].text.contains("0000:02:00.0"), "{found:?}");
}

#[test]
fn what_cannot_be_seen_is_told_so() {
    let host = Fixture::good();
    std::fs::write(
        host.root().join("sys/bus/pci/devices/0000:00:01.0/config"),
        [0; 64],
    )
    .unwrap();
    host.remove("dev/infiniband/uverbs1");
    host.remove("sys/devices/system/cpu/cpu0/cpufreq");
    host.remove("sys/devices/system/cpu/cpu1/cpufreq");
    let seen = host.seen();
    let unseen = seen
        .findings
        .iter()
        .filter(|finding| finding.level == Level::Unseen);
    let topics: Vec<&str> = unseen.map(|finding| &*finding.topic).collect();
    // A container that was given one of the two NICs.
    assert_eq!(topics, ["mlx5_1", "CPU governor", "CPU frequency", "ACS"]);
    assert_eq!(seen.facts["RDMA devices"], "1");
    assert_eq!(host.bad(), []);
    // An empty folder is no reason to panic.
    let empty = see(&System::new(Some(Path::new("/no/such/folder"))));
    assert!(empty.findings.len() > 10);
}

#[test]
fn counters_of_errors_are_read_by_port() {
    let errors = errors(&System::new(Some(Fixture::good().root())));
    assert_eq!(
        errors.into_iter().collect::<Vec<_>>(),
        [("symbol_error of mlx5_0:1".to_owned(), 3)]
    );
}
