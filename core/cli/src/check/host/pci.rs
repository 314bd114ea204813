//! PCI: GPUs, access control between them and NICs (ACS), the IOMMU, the kernel's way to GPU memory.

use crate::check::finding::Finding;
use crate::check::system::System;

use super::facts::Facts;

const DEVICES: &str = "sys/bus/pci/devices";

/// The functions on PCI that matter here.
#[derive(Debug, Default)]
pub struct Functions {
    /// Addresses of NVIDIA's GPUs.
    pub gpus: Vec<String>,
    /// Addresses of functions that are InfiniBand controllers, or NICs of the vendor of mlx5.
    pub nics: Vec<String>,
    bridges: Vec<String>,
}

impl Functions {
    pub fn read(system: &System) -> Self {
        let mut functions = Functions::default();
        for address in system.names(DEVICES) {
            let folder = format!("{DEVICES}/{address}");
            let hexadecimal = |file: &str| {
                let text = system.text(&format!("{folder}/{file}"))?;
                u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
            };
            let (class, vendor) = (hexadecimal("class"), hexadecimal("vendor"));
            match (class.unwrap_or(0) >> 8, vendor.unwrap_or(0)) {
                (0x0300 | 0x0302, 0x10de) => functions.gpus.push(address),
                (0x0207, _) | (0x0200, 0x15b3) => functions.nics.push(address),
                (0x0604, _) => functions.bridges.push(address),
                _ => {}
            }
        }
        functions
    }
}

/// Checks what concerns NICs and GPUs. `rdma` are the RDMA devices.
pub fn check(
    system: &System,
    facts: &mut Facts,
    functions: &Functions,
    rdma: &[String],
) -> Vec<Finding> {
    let gpus = functions.gpus.len();
    facts.insert("NVIDIA GPUs".into(), gpus.to_string());
    let mut found = vec![gpu_memory(system, facts, gpus, !rdma.is_empty())];
    found.push(acs(system, facts, functions, rdma));
    found.push(iommu(system, facts, rdma, gpus));
    found
}

/// The way by which NICs reach a GPU's memory.
fn gpu_memory(system: &System, facts: &mut Facts, gpus: usize, rdma: bool) -> Finding {
    let topic = "GPU memory for NICs";
    if gpus == 0 {
        return Finding::ok(topic, "not needed: no NVIDIA GPU");
    }
    let Some(driver) = system.text("proc/driver/nvidia/version") else {
        let mend = "install NVIDIA's driver and load it: modprobe nvidia";
        return Finding::warning(
            topic,
            format!("no driver is loaded for {gpus} NVIDIA GPUs"),
            mend,
        );
    };
    let first = driver.lines().next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    // The version is the first word that begins with a digit.
    let version = words
        .iter()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let version = (*version.unwrap_or(&"?")).to_owned();
    facts.insert("NVIDIA driver".into(), version.clone());
    let modules = system.text("proc/modules").unwrap_or_default();
    let peermem = modules.lines().find_map(|line| {
        let name = line.split(' ').next()?;
        ["nvidia_peermem", "nv_peer_mem"]
            .contains(&name)
            .then(|| name.to_owned())
    });
    let way = match (peermem, first.contains("Open Kernel Module")) {
        (Some(module), true) => format!("dma-buf and {module}"),
        (Some(module), false) => module,
        (None, true) => "dma-buf".into(),
        (None, false) => "none".into(),
    };
    facts.insert(topic.into(), way.clone());
    if way == "none" && rdma {
        let mend =
            "modprobe nvidia_peermem, or install NVIDIA's open kernel modules, which have dma-buf";
        let text = format!("none (driver {version}): data of GPUs take a detour by host memory");
        return Finding::warning(topic, text, mend);
    }
    Finding::ok(topic, format!("{way} (driver {version})"))
}

/// The number of the extended capability for access control, and the bits that redirect requests and
/// completions to the root.
const ACS: u16 = 0x000d;
const REDIRECTS: u16 = 0b1100;

/// The control register of access control in a function's configuration: `Err` if it is cut off, so that
/// nothing is known.
fn acs_control(config: &[u8]) -> Result<Option<u16>, ()> {
    let word = |at: usize| {
        let bytes = config.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    if config.len() <= 256 {
        return Err(());
    }
    let mut at = 256;
    // A list has fewer entries than there are places for them; a wrong one ends.
    for _ in 0..960 {
        let Some(head) = word(at).filter(|head| *head != 0) else {
            return Ok(None);
        };
        if head as u16 == ACS {
            return Ok(word(at + 4).map(|registers| (registers >> 16) as u16));
        }
        match (head >> 20) as usize {
            next if next > 255 => at = next,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn acs(system: &System, facts: &mut Facts, functions: &Functions, rdma: &[String]) -> Finding {
    let topic = "ACS";
    if functions.gpus.is_empty() || rdma.is_empty() {
        return Finding::ok(topic, "does not matter without both GPUs and RDMA devices");
    }
    let mut redirecting = Vec::new();
    let mut hidden = 0;
    for bridge in &functions.bridges {
        let config = system.bytes(&format!("{DEVICES}/{bridge}/config"));
        match acs_control(&config.unwrap_or_default()) {
            Ok(Some(control)) if control & REDIRECTS != 0 => redirecting.push(bridge.clone()),
            Ok(_) => {}
            Err(()) => hidden += 1,
        }
    }
    if let Some(first) = redirecting.first() {
        facts.insert(topic.into(), "on".into());
        let mend =
            "turn it off in the firmware, or by `setpci -s BRIDGE ECAP_ACS+6.w=0000` on each start";
        let text = format!(
            "on in {} of {} bridges (first {first}): data between GPU and NIC pass the root complex",
            redirecting.len(),
            functions.bridges.len()
        );
        return Finding::warning(topic, text, mend);
    }
    if hidden > 0 {
        return Finding::unseen(
            topic,
            "not visible: only root may read PCI's whole configuration",
        );
    }
    facts.insert(topic.into(), "off".into());
    Finding::ok(topic, "off")
}

fn iommu(system: &System, facts: &mut Facts, rdma: &[String], gpus: usize) -> Finding {
    let topic = "IOMMU";
    let line = system.text("proc/cmdline").unwrap_or_default();
    let has = |wanted: &str| line.split_whitespace().any(|word| word == wanted);
    let units = system.names("sys/class/iommu");
    if units.is_empty() {
        facts.insert(topic.into(), "off".into());
        return Finding::ok(topic, "off");
    }
    // The group of the first RDMA device says it; else the command line does.
    let group = rdma.iter().find_map(|device| {
        system.text(&format!(
            "sys/class/infiniband/{device}/device/iommu_group/type"
        ))
    });
    let passes = match group.as_deref() {
        Some(kind) => kind == "identity",
        None => has("iommu=pt") || has("iommu.passthrough=1"),
    };
    let mode = if passes {
        "passes addresses through"
    } else {
        "translates"
    };
    facts.insert(topic.into(), mode.into());
    if passes {
        return Finding::ok(topic, mode);
    }
    if rdma.is_empty() && gpus == 0 {
        return Finding::ok(
            topic,
            format!("{mode}; no RDMA device and no GPU is slowed down"),
        );
    }
    let mend = "iommu=pt on the kernel's command line";
    let text = format!("{mode} each address of NICs and GPUs");
    Finding::warning(topic, text, mend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_control_is_found_in_the_list_of_capabilities() {
        let mut config = vec![0; 4096];
        config[256..260].copy_from_slice(&0x2000_0001_u32.to_le_bytes());
        config[0x200..0x204].copy_from_slice(&0x0001_000d_u32.to_le_bytes());
        config[0x206] = 0x1d;
        assert_eq!(acs_control(&config), Ok(Some(0x1d)));
        // A list that leads back to itself has an end, too.
        config[0x200..0x204].copy_from_slice(&0x2000_0001_u32.to_le_bytes());
        assert_eq!(acs_control(&config), Ok(None));
        assert_eq!(acs_control(&config[..256]), Err(()));
        assert_eq!(acs_control(&config[..0x206]), Ok(None));
    }
}
