//! The settings from the environment, which is read once.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// Memory of a device if `SOFTCUDA_MEMORY` is not set.
const DEFAULT_MEMORY: u64 = 1 << 30;
/// The driver version if `SOFTCUDA_DRIVER_VERSION` is not set: 12.8.
const DEFAULT_VERSION: i32 = 12080;
/// Devices at most: a typing error should not create a million.
pub(crate) const MOST_DEVICES: usize = 64;
/// Multiprocessors of a device if `SOFTCUDA_MULTIPROCESSORS` is not set. Each holds 2048 threads, which
/// a program may ask to be there all at once, and each of them then needs a stack.
const DEFAULT_MULTIPROCESSORS: u64 = 4;
/// Seconds in which all blocks that have begun only wait, and others have no room, if `SOFTCUDA_PATIENCE` is not set.
const DEFAULT_PATIENCE: u64 = 60;
/// Multiprocessors at most: with more, a full device has more stacks than Linux allows mappings.
const MOST_MULTIPROCESSORS: u64 = 12;

/// Features that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    Vmm,
    PosixFd,
    P2p,
    Ipc,
    Memops,
    P2pAtomics,
    DmaBuf,
}

impl Feature {
    const ALL: [(Feature, &str); 7] = [
        (Feature::Vmm, "vmm"),
        (Feature::PosixFd, "posix-fd"),
        (Feature::P2p, "p2p"),
        (Feature::Ipc, "ipc"),
        (Feature::Memops, "memops"),
        (Feature::P2pAtomics, "p2p-atomics"),
        (Feature::DmaBuf, "dma-buf"),
    ];
}

/// The settings of this process.
#[derive(Debug)]
pub(crate) struct Config {
    /// Devices of the machine, before `CUDA_VISIBLE_DEVICES` hides some.
    pub(crate) devices: usize,
    /// The host build of the kernels.
    pub(crate) kernels: Option<PathBuf>,
    /// Bytes of each device.
    pub(crate) memory: u64,
    /// The version that `cuDriverGetVersion` returns.
    pub(crate) version: i32,
    /// Streaming multiprocessors of each device.
    pub(crate) multiprocessors: i32,
    /// The time in which blocks that have begun only wait, and others have no room, before their kernel fails; `None`: for ever.
    pub(crate) patience: Option<Duration>,
    /// Seed of the order in which a kernel's threads run; `None`: by their numbers.
    pub(crate) seed: Option<u64>,
    /// Seed of the random delays; `None` for no delays.
    pub(crate) jitter: Option<u64>,
    /// `CUDA_VISIBLE_DEVICES` as given.
    pub(crate) visible: Option<String>,
    without: Vec<Feature>,
}

impl Config {
    /// Whether a feature is enabled.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        !self.without.contains(&feature)
    }

    fn read(var: impl Fn(&str) -> Option<String>) -> Result<Config, String> {
        let number = |name: &str, default: u64| match var(name) {
            None => Ok(default),
            Some(text) => text
                .trim()
                .parse::<u64>()
                .map_err(|_| format!("{name}={text}: not a number")),
        };
        let devices = number("SOFTCUDA_DEVICES", 1)?;
        if devices > MOST_DEVICES as u64 {
            return Err(format!(
                "SOFTCUDA_DEVICES={devices}: more than {MOST_DEVICES}"
            ));
        }
        let version = number("SOFTCUDA_DRIVER_VERSION", DEFAULT_VERSION as u64)?;
        let version = i32::try_from(version)
            .map_err(|_| format!("SOFTCUDA_DRIVER_VERSION={version}: a version is like 12080"))?;
        let seed = |name: &str| var(name).map(|_| number(name, 0)).transpose();
        let jitter = seed("SOFTCUDA_JITTER")?;
        let seed = seed("SOFTCUDA_SEED")?;
        let multiprocessors = number("SOFTCUDA_MULTIPROCESSORS", DEFAULT_MULTIPROCESSORS)?;
        if !(1..=MOST_MULTIPROCESSORS).contains(&multiprocessors) {
            return Err(format!(
                "SOFTCUDA_MULTIPROCESSORS={multiprocessors}: from 1 to {MOST_MULTIPROCESSORS}"
            ));
        }
        let mut without = Vec::new();
        for word in var("SOFTCUDA_WITHOUT")
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
        {
            match Feature::ALL.iter().find(|(_, name)| *name == word) {
                Some((feature, _)) => without.push(*feature),
                None if word.is_empty() => {}
                None => {
                    let known: Vec<_> = Feature::ALL.iter().map(|(_, name)| *name).collect();
                    return Err(format!(
                        "SOFTCUDA_WITHOUT: no feature is called '{word}'; there are {}",
                        known.join(", ")
                    ));
                }
            }
        }
        Ok(Config {
            devices: devices as usize,
            kernels: var("SOFTCUDA_KERNELS")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            memory: number("SOFTCUDA_MEMORY", DEFAULT_MEMORY)?,
            version,
            multiprocessors: multiprocessors as i32,
            patience: Some(number("SOFTCUDA_PATIENCE", DEFAULT_PATIENCE)?)
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            seed,
            jitter,
            visible: var("CUDA_VISIBLE_DEVICES"),
            without,
        })
    }
}

/// The settings, or the error in them.
pub(crate) fn config() -> Result<&'static Config, &'static str> {
    static CONFIG: OnceLock<Result<Config, String>> = OnceLock::new();
    CONFIG
        .get_or_init(|| Config::read(|name| std::env::var(name).ok()))
        .as_ref()
        .map_err(String::as_str)
}

/// Whether refused calls are printed on standard error.
pub(crate) fn traced() -> bool {
    static TRACED: OnceLock<bool> = OnceLock::new();
    *TRACED.get_or_init(|| std::env::var_os("SOFTCUDA_TRACE").is_some_and(|value| value == "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, String> {
        Config::read(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_gives_one_device_with_everything() {
        let config = read(&[]).unwrap();
        assert_eq!(
            (config.devices, config.memory, config.version),
            (1, 1 << 30, 12080)
        );
        assert!(Feature::ALL.iter().all(|(feature, _)| config.has(*feature)));
        assert!(config.jitter.is_none() && config.kernels.is_none());
    }

    #[test]
    fn features_are_switched_off_by_name() {
        let config = read(&[("SOFTCUDA_WITHOUT", "vmm, p2p-atomics")]).unwrap();
        assert!(!config.has(Feature::Vmm) && !config.has(Feature::P2pAtomics));
        assert!(config.has(Feature::P2p));
    }

    #[test]
    fn wrong_values_are_named() {
        for pairs in [
            [("SOFTCUDA_DEVICES", "many")],
            [("SOFTCUDA_DEVICES", "65")],
            [("SOFTCUDA_WITHOUT", "vvm")],
            [("SOFTCUDA_MEMORY", "-1")],
            [("SOFTCUDA_JITTER", "x")],
            [("SOFTCUDA_SEED", "x")],
            [("SOFTCUDA_PATIENCE", "long")],
            [("SOFTCUDA_MULTIPROCESSORS", "0")],
        ] {
            let (name, value) = pairs[0];
            let error = read(&pairs).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
