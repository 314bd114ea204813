//! Descriptions of hosts, as hwloc's XML, for tests: this package's and, behind the feature
//! `fixtures`, others'. A remark at the head of each says what it shows.

/// Three GPUs, each behind a PCI switch with a NIC of its own; two switches at the first socket.
pub const DGX_LIKE: &str = include_str!("../fixtures/dgx-like.xml");
/// Eight GPUs and eight NICs behind eight PCI switches, and NVSwitch.
pub const EIGHT_GPUS_EIGHT_NICS: &str = include_str!("../fixtures/eight-gpus-eight-nics.xml");
/// Two sockets and one NIC, at the second.
pub const TWO_SOCKETS_ONE_NIC: &str = include_str!("../fixtures/two-sockets-one-nic.xml");
/// Four GPUs, joined by NVLink in two pairs, and three NICs, one of them narrow.
pub const NVLINK_PAIRS: &str = include_str!("../fixtures/nvlink-pairs.xml");
/// One Arm socket with a GPU and two NICs, each in a PCI domain of its own.
pub const ARM_HOST: &str = include_str!("../fixtures/arm-host.xml");
/// A virtual machine whose two GPUs and two NICs hang from one flat bus.
pub const CLOUD_VM: &str = include_str!("../fixtures/cloud-vm.xml");
/// A server without NICs and GPUs.
pub const NO_NICS: &str = include_str!("../fixtures/no-nics.xml");

/// All of them: name and XML.
pub const ALL: [(&str, &str); 7] = [
    ("dgx-like", DGX_LIKE),
    ("eight-gpus-eight-nics", EIGHT_GPUS_EIGHT_NICS),
    ("two-sockets-one-nic", TWO_SOCKETS_ONE_NIC),
    ("nvlink-pairs", NVLINK_PAIRS),
    ("arm-host", ARM_HOST),
    ("cloud-vm", CLOUD_VM),
    ("no-nics", NO_NICS),
];
