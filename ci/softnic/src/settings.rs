//! The settings from the environment, which is read once.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::command::{self, Cue};
use crate::profile::Profile;

/// The settings of this process.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The machine's devices.
    pub(crate) devices: Vec<Profile>,
    pub(crate) seed: u64,
    /// The number of the host that this process plays: hosts have devices of their own.
    pub(crate) host: u32,
    /// The folder of the sockets by which processes reach each other; abstract names without one.
    pub(crate) folder: Option<PathBuf>,
    /// The factor by which the times of time-outs are shorter or longer than on a NIC.
    pub(crate) time_scale: f64,
    /// The file to which the counters are written when the process ends.
    pub(crate) counters: Option<PathBuf>,
    /// Faults on cue.
    pub(crate) cues: Vec<Cue>,
    /// Whether each refused call is reported on standard error.
    pub(crate) trace: bool,
    /// The software CUDA driver that says which memory is a GPU's.
    pub(crate) cuda: Option<PathBuf>,
}

/// The devices of a text such as `cx6-ar:skew=500,no-srq`; `2*strict` is two alike.
fn devices(text: &str) -> Result<Vec<Profile>, String> {
    let mut all = Vec::new();
    for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let (count, rest) = match one.split_once('*') {
            Some((count, rest)) => (
                count
                    .parse::<usize>()
                    .map_err(|_| format!("{one}: how many?"))?,
                rest,
            ),
            None => (1, one),
        };
        if count > 16 {
            return Err(format!("{one}: at most 16 devices"));
        }
        let mut parts = rest.split(':');
        let name = parts.next().unwrap_or_default();
        let named = Profile::named(name).ok_or_else(|| {
            format!(
                "there is no profile {name:?}; there are {}",
                Profile::names()
            )
        })?;
        let mut named = named.to_vec();
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, "on"));
            for profile in &mut named {
                profile.set(key, value)?;
            }
        }
        for _ in 0..count {
            all.extend(named.iter().cloned());
        }
    }
    Ok(all)
}

fn parse<T: std::str::FromStr>(
    name: &str,
    default: T,
    read: &impl Fn(&str) -> Option<String>,
) -> Result<T, String> {
    match read(name) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("{name}={text} is no number")),
        None => Ok(default),
    }
}

impl Settings {
    fn from(read: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let text = read("OXSHMEM_SOFTNIC").unwrap_or_else(|| "2*strict".into());
        let devices = devices(&text).map_err(|why| format!("OXSHMEM_SOFTNIC={text}: {why}"))?;
        let time_scale: f64 = parse("OXSHMEM_SOFTNIC_TIME_SCALE", 1.0, &read)?;
        if !(0.0001..=1000.0).contains(&time_scale) {
            return Err("OXSHMEM_SOFTNIC_TIME_SCALE must be between 0.0001 and 1000".into());
        }
        let host: u32 = parse("OXSHMEM_SOFTNIC_HOST", 0, &read)?;
        if host > 250 {
            return Err("OXSHMEM_SOFTNIC_HOST must be at most 250".into());
        }
        Ok(Settings {
            devices,
            seed: parse("OXSHMEM_SOFTNIC_SEED", 1, &read)?,
            host,
            folder: read("OXSHMEM_SOFTNIC_DIR").map(PathBuf::from),
            time_scale,
            counters: read("OXSHMEM_SOFTNIC_COUNTERS").map(PathBuf::from),
            cues: command::cues(&read("OXSHMEM_SOFTNIC_CUES").unwrap_or_default())
                .map_err(|why| format!("OXSHMEM_SOFTNIC_CUES: {why}"))?,
            trace: read("OXSHMEM_SOFTNIC_TRACE").is_some_and(|value| value == "1"),
            cuda: read("OXSHMEM_SOFTNIC_CUDA").map(PathBuf::from),
        })
    }
}

static SETTINGS: OnceLock<Result<Settings, String>> = OnceLock::new();

/// The settings, or the variable that cannot be understood, in words.
pub(crate) fn settings() -> Result<&'static Settings, &'static str> {
    let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    SETTINGS
        .get_or_init(|| Settings::from(read))
        .as_ref()
        .map_err(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(devices: &str, name: &str, value: &str) -> Result<Settings, String> {
        Settings::from(|wanted| match wanted {
            "OXSHMEM_SOFTNIC" => Some(devices.into()),
            _ => (wanted == name).then(|| value.into()),
        })
    }

    #[test]
    fn a_list_names_devices_with_properties_of_their_own() {
        let settings = of(
            "2*cx6-ar:skew=5:srq=off,two-fabrics",
            "OXSHMEM_SOFTNIC_SEED",
            "9",
        )
        .unwrap();
        let names: Vec<_> = settings.devices.iter().map(|one| one.name).collect();
        assert_eq!(names, ["cx6-ar", "cx6-ar", "cx6", "lom"]);
        assert!(!settings.devices[1].srq && settings.devices[2].srq);
        assert_eq!(settings.seed, 9);
    }

    #[test]
    fn a_setting_that_cannot_be_understood_is_named() {
        for (devices, name, value, word) in [
            ("cx9", "", "", "cx6-ar"),
            ("strict:skew", "", "", "skew"),
            (
                "strict",
                "OXSHMEM_SOFTNIC_SEED",
                "x",
                "OXSHMEM_SOFTNIC_SEED",
            ),
            ("strict", "OXSHMEM_SOFTNIC_TIME_SCALE", "0", "between"),
            ("99*strict", "", "", "16"),
        ] {
            let error = of(devices, name, value).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
