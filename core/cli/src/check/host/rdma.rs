//! RDMA devices and their ports.

use std::collections::BTreeMap;

use crate::check::finding::Finding;
use crate::check::system::System;

use super::cpu::node_names;
use super::facts::Facts;
use super::pci::Functions;

const DEVICES: &str = "sys/class/infiniband";

/// The names of the RDMA devices.
pub fn devices(system: &System) -> Vec<String> {
    system.names(DEVICES)
}

pub fn check(
    system: &System,
    facts: &mut Facts,
    devices: &[String],
    functions: &Functions,
) -> Vec<Finding> {
    let topic = "RDMA devices";
    let opened: Vec<Result<String, Finding>> = devices
        .iter()
        .map(|device| character_device(system, device))
        .collect();
    let usable: Vec<&String> = devices
        .iter()
        .zip(&opened)
        .filter(|(_, file)| file.is_ok())
        .map(|(name, _)| name)
        .collect();
    // Names may differ between hosts, so devices are compared by their numbers.
    facts.insert(topic.into(), usable.len().to_string());
    if devices.is_empty() {
        return vec![match functions.nics.first() {
            None => Finding::ok(topic, "none: jobs on several hosts use TCP"),
            Some(address) => Finding::warning(
                topic,
                format!("none, though the NIC at {address} may be one"),
                "modprobe mlx5_ib (or the driver of this NIC), and install rdma-core",
            ),
        }];
    }
    let mut found = vec![Finding::ok(topic, devices.join(" "))];
    for why in opened.iter().filter_map(|file| file.as_ref().err()) {
        // A container may have been given some devices of its host.
        found.push(if usable.is_empty() {
            why.clone()
        } else {
            Finding::unseen(&*why.topic, &*why.text)
        });
    }
    let numbered = || (1..).zip(&usable);
    for (number, device) in numbered() {
        found.extend(place(system, facts, number, device));
        found.extend(link(system, facts, number, device));
    }
    let ports: Vec<Port> = numbered()
        .flat_map(|(number, device)| Port::all(system, number, device))
        .collect();
    let any_active = ports.iter().any(|port| port.state() == Some(ACTIVE));
    for port in &ports {
        found.push(port.check(facts, any_active));
    }
    found
}

/// The words for a device in comparisons between hosts.
fn numbered_name(number: usize) -> String {
    format!("RDMA device {number}")
}

/// The words for a port in comparisons, given its name, such as `mlx5_0:1`; none for a device that cannot be used.
pub fn compared_port(system: &System, name: &str) -> Option<String> {
    let (device, port) = name.split_once(':')?;
    let all = devices(system);
    let mut usable = all
        .iter()
        .filter(|device| character_device(system, device).is_ok());
    let number = usable.position(|other| other == device)? + 1;
    Some(format!("{}, port {port}", numbered_name(number)))
}

/// The file that programs open, or why there is none for them.
fn character_device(system: &System, device: &str) -> Result<String, Finding> {
    let verbs = "sys/class/infiniband_verbs";
    let names = system.names(verbs);
    let its = names.iter().find(|name| {
        let file = format!("{verbs}/{name}/ibdev");
        system.text(&file).as_deref() == Some(device)
    });
    let Some(name) = its else {
        let text = "no device of verbs belongs to it, so that no program can open it";
        return Err(Finding::fault(device, text, "modprobe ib_uverbs"));
    };
    let file = format!("dev/infiniband/{name}");
    if !system.exists(&file) {
        let text = format!("there is no /{file}");
        let mend =
            "give the container the devices: --device=/dev/infiniband; else modprobe ib_uverbs";
        return Err(Finding::fault(device, text, mend));
    }
    let opened = std::fs::File::options()
        .read(true)
        .write(true)
        .open(system.path(&file));
    if opened.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
        let mend = format!("chmod 666 /{file} (rdma-core has rules for udev that do so)");
        return Err(Finding::fault(
            device,
            format!("this user may not open /{file}"),
            mend,
        ));
    }
    Ok(file)
}

/// The NUMA node that the device lies at.
fn place(system: &System, facts: &mut Facts, number: usize, device: &str) -> Option<Finding> {
    let node = system.number(&format!("{DEVICES}/{device}/device/numa_node"))?;
    let topic = format!("place of {device}");
    facts.insert(
        format!("place of {}", numbered_name(number)),
        format!("node {node}"),
    );
    if node < 0 && node_names(system).len() > 1 {
        let mend =
            "look for a NUMA setting of the PCI slots in the firmware, or set OXSHMEM_NIC_MAP";
        let text = "the firmware does not tell its NUMA node, so PEs may take a far NIC";
        return Some(Finding::warning(topic, text, mend));
    }
    Some(Finding::ok(topic, format!("NUMA node {}", node.max(0))))
}

/// The device's link to PCI Express.
fn link(system: &System, facts: &mut Facts, number: usize, device: &str) -> Option<Finding> {
    let folder = format!("{DEVICES}/{device}/device");
    let text = |file: &str| system.text(&format!("{folder}/{file}"));
    let value = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
    let (speed, most_speed) = (text("current_link_speed")?, text("max_link_speed")?);
    let (width, most_width) = (text("current_link_width")?, text("max_link_width")?);
    let topic = format!("PCI link of {device}");
    let shown = format!("{speed} x{width}");
    facts.insert(
        format!("PCI link of {}", numbered_name(number)),
        shown.clone(),
    );
    let slower = value(&speed)? < value(&most_speed)?;
    let narrower = value(&width)? < value(&most_width)?;
    if slower || narrower {
        let mend = "seat the card again, or in a slot with all lanes; look for a speed limit in the firmware";
        let text = format!("{shown}, of {most_speed} x{most_width}");
        return Some(Finding::warning(topic, text, mend));
    }
    Some(Finding::ok(topic, shown))
}

const ACTIVE: u32 = 4;

/// A port of a device.
struct Port<'s> {
    system: &'s System,
    /// As `mlx5_0:1`.
    name: String,
    /// Its words in comparisons.
    compared: String,
    folder: String,
}

impl<'s> Port<'s> {
    fn all(system: &'s System, number: usize, device: &str) -> Vec<Port<'s>> {
        let ports = system
            .names(&format!("{DEVICES}/{device}/ports"))
            .into_iter();
        ports
            .map(|port| Port {
                system,
                name: format!("{device}:{port}"),
                compared: format!("{}, port {port}", numbered_name(number)),
                folder: format!("{DEVICES}/{device}/ports/{port}"),
            })
            .collect()
    }

    fn text(&self, file: &str) -> Option<String> {
        self.system.text(&format!("{}/{file}", self.folder))
    }

    /// The number of the state, as in `4: ACTIVE`.
    fn state(&self) -> Option<u32> {
        self.text("state")?.split(':').next()?.parse().ok()
    }

    fn is_ethernet(&self) -> bool {
        self.text("link_layer").as_deref() == Some("Ethernet")
    }

    fn check(&self, facts: &mut Facts, any_active: bool) -> Finding {
        let topic = format!("port {}", self.name);
        let state = self
            .text("state")
            .unwrap_or_else(|| "of no known state".into());
        if self.state() != Some(ACTIVE) {
            facts.insert(format!("state of {}", self.compared), state.clone());
            return self.not_active(topic, &state, any_active);
        }
        let layer = self.text("link_layer").unwrap_or_default();
        let rate = self.text("rate").unwrap_or_else(|| "rate not known".into());
        facts.insert(
            format!("link of {}", self.compared),
            format!("{layer}, {rate}"),
        );
        let partitions = self.partitions();
        let shown: Vec<String> = partitions.iter().map(|key| format!("{key:#06x}")).collect();
        let keys = shown.join(" ");
        facts.insert(format!("P_Keys of {}", self.compared), keys.clone());
        let head = format!("active, {layer}, {rate}, P_Keys {keys}");
        if self.is_ethernet() {
            self.roce(topic, facts, &head)
        } else {
            self.infiniband(topic, &partitions, &head)
        }
    }

    fn not_active(&self, topic: String, state: &str, any_active: bool) -> Finding {
        let physical = self.text("phys_state").unwrap_or_default();
        let text = format!("{state} ({physical})");
        let mend = match self.state() {
            Some(2 | 3) if !self.is_ethernet() => {
                "start a subnet manager (opensm) on the fabric, or look at the one that runs"
            }
            _ if self.is_ethernet() => {
                "ip link set INTERFACE up; look at the cable and the switch's port"
            }
            _ => {
                "look at the cable and the switch's port; ibportstate enables a port that was disabled"
            }
        };
        // A card's second port is often left empty.
        if any_active {
            Finding::warning(topic, text, mend)
        } else {
            Finding::fault(topic, text, mend)
        }
    }

    fn infiniband(&self, topic: String, partitions: &[u16], head: &str) -> Finding {
        let manager = self.text("sm_lid").unwrap_or_default();
        let lid = self.text("lid").unwrap_or_default();
        let text = format!("{head}, LID {lid}");
        if manager == "0x0" || manager == "0" {
            let mend = "start a subnet manager (opensm) on the fabric";
            return Finding::fault(topic, format!("{text}: no subnet manager is known"), mend);
        }
        // The highest bit is full membership; two limited members may not talk to each other.
        if !partitions.iter().any(|key| key & 0x8000 != 0) {
            let mend =
                "make the port a full member in the subnet manager's partitions.conf (`=full`)";
            let text = format!(
                "{text}: a limited member of each partition, hosts cannot reach each other"
            );
            return Finding::fault(topic, text, mend);
        }
        Finding::ok(topic, text)
    }

    fn roce(&self, topic: String, facts: &mut Facts, head: &str) -> Finding {
        let gids = self.gids();
        let of_version_2 = |kind: &str, gid: &str| kind == "RoCE v2" && !gid.starts_with("fe80:");
        let count = gids
            .iter()
            .filter(|(kind, gid)| of_version_2(kind, gid))
            .count();
        let kinds = gids.iter().map(|(kind, _)| kind.as_str());
        let mut kinds: Vec<&str> = kinds.collect();
        kinds.sort_unstable();
        kinds.dedup();
        facts.insert(format!("GID types of {}", self.compared), kinds.join(", "));
        let text = format!("{head}, {} GIDs ({})", gids.len(), kinds.join(", "));
        let interface = self.interface();
        if count == 0 {
            let interface = interface.as_deref().unwrap_or("INTERFACE");
            let mend =
                format!("give the interface an address: ip address add A.B.C.D/24 dev {interface}");
            let why = "none is of RoCE v2 with an address";
            return Finding::fault(topic, format!("{text}: {why}"), mend);
        }
        let mtu = interface.as_ref().and_then(|name| {
            Some((
                name,
                self.system.number(&format!("sys/class/net/{name}/mtu"))?,
            ))
        });
        let Some((name, mtu)) = mtu else {
            return Finding::ok(topic, text);
        };
        let packet = packet(mtu);
        facts.insert(format!("MTU of {}", self.compared), packet.to_string());
        let text = format!("{text}, MTU {mtu} of {name}: packets of {packet} bytes");
        if packet < 4096 {
            let mend =
                format!("ip link set {name} mtu 4200 (or 9000), on all hosts and switches alike");
            return Finding::warning(topic, text, mend);
        }
        Finding::ok(topic, text)
    }

    fn partitions(&self) -> Vec<u16> {
        let folder = format!("{}/pkeys", self.folder);
        let read = |name: &String| {
            let text = self.text(&format!("pkeys/{name}"))?;
            u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        };
        let names = self.system.names(&folder);
        names
            .iter()
            .filter_map(read)
            .filter(|key| *key != 0)
            .collect()
    }

    /// The types and values of the GIDs that are set.
    fn gids(&self) -> Vec<(String, String)> {
        let read = |index: &String| {
            let gid = self.text(&format!("gids/{index}"))?;
            let is_set = gid.bytes().any(|byte| byte != b'0' && byte != b':');
            // An entry that is not set has no type.
            let kind = self.text(&format!("gid_attrs/types/{index}"))?;
            is_set.then_some((kind, gid))
        };
        let names = self.system.names(&format!("{}/gids", self.folder));
        names.iter().filter_map(read).collect()
    }

    /// The network interface of a port on Ethernet.
    fn interface(&self) -> Option<String> {
        let folder = format!("{}/gid_attrs/ndevs", self.folder);
        let names = self.system.names(&folder).into_iter();
        let mut read = names.filter_map(|index| self.text(&format!("gid_attrs/ndevs/{index}")));
        read.find(|name| !name.is_empty())
    }
}

/// Bytes of a packet of RoCE on an interface with this MTU: the greatest power of two that fits with its headers.
fn packet(mtu: i64) -> i64 {
    // Global route, transport, RDMA and atomic headers, checksum.
    const HEADERS: i64 = 40 + 8 + 12 + 28 + 4;
    let sizes = [4096, 2048, 1024, 512, 256];
    sizes
        .into_iter()
        .find(|size| size + HEADERS <= mtu)
        .unwrap_or(0)
}

/// Gigabytes per second that a port has by its rate, such as `100 Gb/sec (4X EDR)`. None for a device made
/// of software, whose rate means nothing.
pub fn rate(system: &System, device: &str, port: &str) -> Option<f64> {
    let folder = format!("{DEVICES}/{device}");
    if !system.exists(&format!("{folder}/device")) {
        return None;
    }
    let text = system.text(&format!("{folder}/ports/{port}/rate"))?;
    let gigabits: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(gigabits / 8.0)
}

/// The counters of errors on links that a port has, by port and counter.
pub fn errors(system: &System) -> BTreeMap<String, u64> {
    const COUNTERS: [&str; 5] = [
        "symbol_error",
        "link_error_recovery",
        "link_downed",
        "port_rcv_errors",
        "local_link_integrity_errors",
    ];
    let mut errors = BTreeMap::new();
    for device in devices(system) {
        for port in Port::all(system, 0, &device) {
            for counter in COUNTERS {
                let value = port.text(&format!("counters/{counter}"));
                if let Some(value) = value.and_then(|value| value.parse().ok()) {
                    errors.insert(format!("{} of {}", counter, port.name), value);
                }
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_room_for_headers() {
        let sizes = [9000, 4200, 4096, 1500, 200].map(packet);
        assert_eq!(sizes, [4096, 4096, 2048, 1024, 0]);
    }
}
