//! Devices: their number, names and attributes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::config::{Config, Feature, config};
use crate::driver::{Driver, driver};
use crate::kernel::shape::MOST_THREADS;

/// PCI domain of the software devices: no real machine has it.
const PCI_DOMAIN: i32 = 0x5c5c;

/// One device that this process may use.
#[derive(Debug)]
pub(crate) struct Device {
    /// Its number on the machine.
    pub(crate) physical: usize,
    /// The same in every process of this machine until its next boot.
    pub(crate) uuid: [u8; 16],
    memory: u64,
    used: AtomicU64,
}

impl Device {
    fn new(physical: usize, memory: u64) -> Device {
        Device {
            physical,
            uuid: uuid(physical),
            memory,
            used: AtomicU64::new(0),
        }
    }

    /// The devices that `CUDA_VISIBLE_DEVICES` leaves, in its order. As with the real driver, the
    /// first entry that names no device hides itself and all that follow.
    pub(crate) fn visible(config: &Config) -> Vec<Device> {
        let all = || (0..config.devices).map(|physical| Device::new(physical, config.memory));
        let Some(list) = &config.visible else {
            return all().collect();
        };
        let mut devices: Vec<Device> = Vec::new();
        for word in list.split(',').map(str::trim) {
            let found = all().find(|device| {
                word.parse() == Ok(device.physical)
                    || (word.len() > 4 && device.uuid_text().starts_with(word))
            });
            match found {
                // A device named twice makes the list invalid, as for the real driver.
                Some(device) if devices.iter().any(|d| d.physical == device.physical) => {
                    return Vec::new();
                }
                Some(device) => devices.push(device),
                None => break,
            }
        }
        devices
    }

    fn uuid_text(&self) -> String {
        let hex = self.uuid_hex();
        format!(
            "GPU-{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// The UUID as 32 digits.
    pub(crate) fn uuid_hex(&self) -> String {
        self.uuid.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Allocates memory, or fails if there is not enough. Counted per process: see the README.
    pub(crate) fn charge(&self, bytes: u64) -> Outcome {
        // Relaxed: a count that guards nothing else.
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|sum| *sum <= self.memory)
            })
            .map(|_| ())
            .map_err(|_| Code::OUT_OF_MEMORY)
    }

    /// Frees memory.
    pub(crate) fn discharge(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Free and total bytes.
    pub(crate) fn space(&self) -> (u64, u64) {
        (
            self.memory
                .saturating_sub(self.used.load(Ordering::Relaxed)),
            self.memory,
        )
    }

    fn bus_id(&self) -> String {
        format!("{PCI_DOMAIN:04X}:{:02X}:00.0", self.physical + 1)
    }
}

/// Streaming multiprocessors of a device.
pub(crate) fn multiprocessors() -> i32 {
    config().map_or(1, |config| config.multiprocessors)
}

/// The UUID, from the machine's boot id and the device's number: equal in all processes, different
/// on other machines.
fn uuid(physical: usize) -> [u8; 16] {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let text = format!("softcuda {} {physical}", boot.trim());
    let half = |basis: u64| {
        // FNV-1a, then mixed so that near texts differ everywhere.
        let hash = text.bytes().fold(basis, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    };
    let both =
        (u128::from(half(0xcbf2_9ce4_8422_2325)) << 64) | u128::from(half(0x5c5c_5c5c_5c5c_5c5c));
    both.to_be_bytes()
}

impl Driver {
    /// The device with this ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Outcome<&Device> {
        usize::try_from(ordinal)
            .ok()
            .and_then(|ordinal| self.devices.get(ordinal))
            .ok_or(Code::INVALID_DEVICE)
    }

    /// Whether one device can reach another's memory.
    pub(crate) fn peers(&self, one: usize, other: usize) -> bool {
        one != other && self.config.has(Feature::P2p)
    }
}

/// Writes a C string into a caller's buffer.
fn write_text(out: Out<u8>, room: i32, text: &str, cut: bool) -> Outcome {
    out.check()?;
    let room = usize::try_from(room).map_err(|_| Code::INVALID_VALUE)?;
    if room == 0 || (!cut && room <= text.len()) {
        return Err(Code::INVALID_VALUE);
    }
    let length = text.len().min(room - 1);
    // SAFETY: the caller vouches for `room` bytes, and `length` + 1 are not more.
    unsafe {
        out.raw().copy_from_nonoverlapping(text.as_ptr(), length);
        out.raw().add(length).write(0);
    }
    Ok(())
}

fn attribute(driver: &Driver, device: &Device, number: i32) -> Option<i32> {
    let yes = |feature| i32::from(driver.config.has(feature));
    Some(match number {
        1..=3 => {
            if number == 1 {
                MOST_THREADS as i32
            } else {
                1024
            }
        }
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        8 => 48 << 10,
        9 => 64 << 10,
        10 => 32,
        11 => i32::MAX,
        12 | 82 => 65536,
        13 => 1_980_000,
        14 => 512,
        15 => 1,
        16 => multiprocessors(),
        // Mapped host memory, concurrent kernels, unified addressing, priorities, preemption,
        // pinned memory by its host address, cooperative launch, host registration.
        19 | 31 | 41 | 78..=80 | 90 | 91 | 95 | 99 => 1,
        33 => device.physical as i32 + 1,
        34 => 0,
        36 => 2_619_000,
        37 => 5120,
        38 => 50 << 20,
        39 => 2048,
        40 => 3,
        50 => PCI_DOMAIN,
        51 => 32,
        75 => 9,
        76 => 0,
        81 => 228 << 10,
        97 => 227 << 10,
        106 => 32,
        111 => 1 << 10,
        // Stream memory operations: first form, 64 bits, NOR; the second form's words.
        92..=94 | 122 | 123 => yes(Feature::Memops),
        98 => yes(Feature::Memops),
        102 => yes(Feature::Vmm),
        103 => i32::from(driver.config.has(Feature::Vmm) && driver.config.has(Feature::PosixFd)),
        113 => 1,
        115 => 1,
        // GPUDirect RDMA: no NIC can reach these devices. Flush by host call, no ordering.
        116 | 110 | 118 | 119 => 0,
        117 => 1,
        // A memory file is no dma-buf: never offered, whatever SOFTCUDA_WITHOUT says.
        124 => 0,
        126 => 4,
        // Textures, surfaces, managed memory, fabrics, multicast and the rest: not supported.
        _ if (1..=147).contains(&number) => 0,
        _ => return None,
    })
}

driver_calls! {
    /// The number of devices that this process may use.
    fn cuDeviceGetCount(count: Out<i32>) {
        count.set(driver()?.devices.len() as i32)
    }

    /// The device with an ordinal.
    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        driver()?.device(ordinal)?;
        device.set(ordinal)
    }

    /// The device's name, cut to the size of the buffer.
    fn cuDeviceGetName(name: Out<u8>, room: i32, device: i32) {
        let device = driver()?.device(device)?;
        write_text(name, room, &format!("Software CUDA device {}", device.physical), true)
    }

    /// The device's UUID.
    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) {
        uuid.set(driver()?.device(device)?.uuid)
    }

    /// The device's UUID.
    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) {
        uuid.set(driver()?.device(device)?.uuid)
    }

    /// Bytes of the device's memory.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        bytes.set(driver()?.device(device)?.memory as usize)
    }

    /// One attribute of a device.
    fn cuDeviceGetAttribute(value: Out<i32>, number: i32, device: i32) {
        let driver = driver()?;
        let device = driver.device(device)?;
        value.check()?;
        value.set(attribute(driver, device, number).ok_or(Code::INVALID_VALUE)?)
    }

    /// Major and minor compute capability.
    fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        driver()?.device(device)?;
        major.set(9)?;
        minor.set(0)
    }

    /// The device's PCI address.
    fn cuDeviceGetPCIBusId(text: Out<u8>, room: i32, device: i32) {
        write_text(text, room, &driver()?.device(device)?.bus_id(), false)
    }

    /// The device at a PCI address.
    fn cuDeviceGetByPCIBusId(device: Out<i32>, text: In<u8>) {
        let driver = driver()?;
        let wanted = text.text()?;
        let ordinal = driver
            .devices
            .iter()
            .position(|device| device.bus_id().eq_ignore_ascii_case(&wanted))
            .ok_or(Code::INVALID_DEVICE)?;
        device.set(ordinal as i32)
    }

    /// Whether one device can reach another's memory; not itself, as the real driver says.
    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        let driver = driver()?;
        driver.device(device)?;
        driver.device(peer)?;
        can.set(i32::from(driver.peers(device as usize, peer as usize)))
    }

    /// The access that two devices have to each other's memory.
    fn cuDeviceGetP2PAttribute(value: Out<i32>, number: i32, one: i32, other: i32) {
        let driver = driver()?;
        driver.device(one)?;
        driver.device(other)?;
        value.check()?;
        if one == other {
            return Err(Code::INVALID_DEVICE);
        }
        let linked = driver.peers(one as usize, other as usize);
        value.set(match number {
            1 => 0,
            2 | 4 => i32::from(linked),
            3 => i32::from(linked && driver.config.has(Feature::P2pAtomics)),
            _ => return Err(Code::INVALID_VALUE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_stable_and_differ_between_devices() {
        assert_eq!(uuid(0), uuid(0));
        assert_ne!(uuid(0), uuid(1));
    }

    #[test]
    fn memory_is_given_out_once() {
        let device = Device::new(0, 100);
        assert_eq!(device.charge(60), Ok(()));
        assert_eq!(device.charge(60), Err(Code::OUT_OF_MEMORY));
        assert_eq!(device.space(), (40, 100));
        device.discharge(60);
        assert_eq!(device.charge(100), Ok(()));
    }
}
