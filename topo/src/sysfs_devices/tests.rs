//! Devices read from fixtures of sysfs.

use proptest::prelude::*;

use super::*;
use crate::distance::Locality;
use crate::fixture::{DEVICES, Fixture, TWO_SOCKETS};

fn load(fixture: &Fixture) -> Result<Topology> {
    Topology::from_sysfs(fixture.root())
}

#[test]
fn devices_and_the_bridges_above_them_are_read_whole() {
    let text = load(&Fixture::new(DEVICES)).unwrap().to_string();
    let expected = "\
host devices: seen by sysfs (sysfs was asked for)
├─ package 0: CPUs 0-1, cores 2
│  ├─ NUMA node 0: not known, CPUs 0-1
│  └─ host bridge 0000:[00-04]: at NUMA node 0
│     └─ PCI bridge 0000:00:01.0: link 31.5 GB/s
│        └─ PCI bridge 0000:01:00.0: link 31.5 GB/s
│           ├─ PCI bridge 0000:02:01.0: link 63 GB/s
│           │  └─ mlx5_0: ib0, 0000:04:00.0, 15b3:1021, link 63 GB/s, \
port 1 active InfiniBand 50 GB/s, at NUMA node 0
│           └─ PCI bridge 0000:02:00.0: link 63 GB/s
│              └─ gpu0: nvidia0, card1, NVIDIA H100 80GB HBM3, 0000:03:00.0, 10de:2330, \
link 63 GB/s, at NUMA node 0
├─ package 1: CPUs 2-3, cores 2
│  ├─ NUMA node 1: not known, CPUs 2-3
│  └─ host bridge 0000:[80-81]: at NUMA node 1
│     └─ PCI bridge 0000:80:01.0
│        └─ mlx5_1: ens1, 0000:81:00.0, 15b3:1019, link 15.8 GB/s, \
port 1 active Ethernet 3.1 GB/s, port 2 down Ethernet 12.5 GB/s, at NUMA node 1
├─ host bridge 10000:[e0-e1]: near no node
│  └─ PCI bridge 10000:e0:01.0: link 31.5 GB/s
│     └─ gpu1: 10000:e1:00.0, 1002:740f, link 31.5 GB/s, near no node
└─ rxe0: not on PCI, port 1 active Ethernet 0.3 GB/s, near no node
";
    assert_eq!(text, expected);
}

#[test]
fn distance_is_that_of_the_kernels_tree() {
    let topology = load(&Fixture::new(DEVICES)).unwrap();
    let gpu = topology
        .gpu("GPU-6f1f7d33-0000-1111-2222-333344445555")
        .unwrap();
    let far = |nic: &str| {
        let distance = topology.distance(gpu, topology.nic(nic).unwrap());
        let rate = distance.bandwidth.map(|rate| rate.mb_per_s());
        (distance.locality, rate)
    };
    assert_eq!(far("mlx5_0"), (Locality::SameSwitch, Some(50_000)));
    // The port that is down does not count.
    assert_eq!(far("mlx5_1"), (Locality::SameHost, Some(3125)));
    assert_eq!(far("rxe0"), (Locality::SameHost, Some(313)));
}

#[test]
fn an_accelerator_is_a_gpu_where_amd_made_it() {
    let fixture = Fixture::new(DEVICES);
    let folder = "sys/bus/pci/devices/10000:e1:00.0";
    let gpus = || load(&fixture).unwrap().gpus.len();
    let before = gpus();
    fixture.write(&format!("{folder}/class"), "0x120000");
    assert_eq!(gpus(), before);
    fixture.write(&format!("{folder}/vendor"), "0x8086");
    assert_eq!(gpus(), before - 1);
}

#[test]
fn a_host_without_device_files_has_no_devices() {
    let topology = load(&Fixture::new(TWO_SOCKETS)).unwrap();
    assert!(topology.nics.is_empty() && topology.gpus.is_empty() && topology.bridges.is_empty());
    assert_eq!(topology.packages.len(), 2);
}

#[test]
fn what_is_added_to_a_known_topology_is_only_what_it_lacks() {
    let fixture = Fixture::new(DEVICES);
    let whole = load(&fixture).unwrap();
    let mut again = whole.clone();
    again.nics[0].ports.clear();
    let left_out = again.nics.pop().unwrap();
    assert_eq!(left_out.name, "rxe0");
    add(&mut again, fixture.tree()).unwrap();
    assert_eq!(again, whole);
}

#[test]
fn links_in_circles_are_errors() {
    let fixture = Fixture::new(TWO_SOCKETS);
    fixture.link("sys/class/infiniband/mlx5_0", "mlx5_1");
    fixture.link("sys/class/infiniband/mlx5_1", "mlx5_0");
    let error = load(&fixture).unwrap_err();
    assert!(error.to_string().contains("infiniband/mlx5_"), "{error}");

    let fixture = Fixture::new(TWO_SOCKETS);
    let twice = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:00:01.0/0000:02:00.0/infiniband/mlx5_0";
    fixture.write(&format!("sys/devices/{twice}/node_type"), "1: CA");
    fixture.link(
        "sys/class/infiniband/mlx5_0",
        &format!("../../devices/{twice}"),
    );
    let error = load(&fixture).unwrap_err();
    assert!(
        error.to_string().contains("0000:00:01.0 lies below itself"),
        "{error}"
    );

    let fixture = Fixture::new(TWO_SOCKETS);
    fixture.link("sys/class/infiniband/mlx5_0", "/proc/self");
    let error = load(&fixture).unwrap_err();
    assert!(error.to_string().contains("leads to /proc"), "{error}");
}

#[test]
fn a_malformed_file_of_a_device_is_named_with_what_it_holds() {
    for (file, contents) in [
        ("sys/devices/pci0000:80/0000:80:02.0/class", "display"),
        (
            "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/vendor",
            "0x+5",
        ),
        ("sys/devices/pci0000:80/0000:80:01.0/numa_node", "one"),
        ("sys/devices/pci0000:80/0000:80:01.0/local_cpulist", "2..3"),
        (
            "sys/devices/pci0000:80/0000:80:01.0/secondary_bus_number",
            "0x81",
        ),
    ] {
        let fixture = Fixture::new(DEVICES);
        fixture.write(file, contents);
        let error = load(&fixture).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{file}: {error}");
        let (message, name) = (error.to_string(), file.rsplit('/').next().unwrap());
        assert!(
            message.contains(name) && message.contains(contents),
            "{message}"
        );
    }
}

#[test]
fn the_running_machines_devices_are_read() {
    let topology = Topology::from_sysfs(Path::new("/")).unwrap();
    let listed = Tree::live().names(RDMA).unwrap();
    assert_eq!(topology.nics.len(), listed.len());
}

#[test]
fn any_contents_of_any_devices_file_give_a_topology_or_an_error() {
    // One set of files for all cases: to write them takes longer than to read them.
    let fixture = Fixture::new(DEVICES);
    let files: Vec<(&str, &str)> = DEVICES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "))
        .collect();
    let contents = "[-0-9,KMx: ]{0,12}|0x[0-9a-f]{0,9}|([0-9.]{1,5} (GT/s|Gb/sec)){0,2}|\\PC{0,9}";
    proptest!(ProptestConfig::with_cases(64), |(file in prop::sample::select(files), text in contents)| {
        let (file, usual) = file;
        fixture.write(file, &text);
        let read = load(&fixture);
        fixture.write(file, &usual.replace("\\n", "\n"));
        if let Ok(topology) = read {
            prop_assert!(topology.to_string().contains("mlx5_0"));
        }
    });
}
