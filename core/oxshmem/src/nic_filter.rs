//! The user's choice of NICs: `OXSHMEM_NIC` and `OXSHMEM_NIC_MAP`.

/// The devices that may be chosen, or that are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nics {
    /// Any.
    #[default]
    Any,
    /// One of these.
    Among(Vec<String>),
    /// None of these.
    Without(Vec<String>),
    /// By local rank: each device for so many PEs.
    Map(Vec<(String, usize)>),
}

/// More PEs than this on one host are a slip.
const MOST_PES: usize = 1 << 16;

impl Nics {
    /// Reads `mlx5_0:1,mlx5_2` or `^mlx5_0,mlx5_1`.
    pub(crate) fn parse_list(text: &str) -> Result<Self, String> {
        let hint = "give names such as mlx5_0 or mlx5_0:1, separated by commas; ^ before the first \
                    means all but these";
        let (without, list) = match text.strip_prefix('^') {
            Some(list) => (true, list),
            None => (false, text),
        };
        let mut names = Vec::new();
        for name in list.split(',').map(str::trim) {
            // A ^ before each of them says the same.
            let name = name.strip_prefix('^').filter(|_| without).unwrap_or(name);
            check_name(name).map_err(|why| format!("{why}; {hint}"))?;
            names.push(name.to_owned());
        }
        Ok(if without {
            Nics::Without(names)
        } else {
            Nics::Among(names)
        })
    }

    /// Reads `mlx5_0:1:2,mlx5_1:1:2`: each device with a number of PEs.
    pub(crate) fn parse_map(text: &str) -> Result<Self, String> {
        let hint = "give device:count, separated by commas, such as mlx5_0:1:2,mlx5_1:1:2 for two \
                    PEs on port 1 of each";
        let mut map = Vec::new();
        for entry in text.split(',').map(str::trim) {
            let (name, count) = entry
                .rsplit_once(':')
                .ok_or_else(|| format!("{entry:?} has no count; {hint}"))?;
            check_name(name).map_err(|why| format!("{why}; {hint}"))?;
            match count.parse() {
                Ok(count @ 1..=MOST_PES) => map.push((name.to_owned(), count)),
                _ => return Err(format!("{count:?} is no number of PEs; {hint}")),
            }
        }
        Ok(Nics::Map(map))
    }

    /// The variable that says so, with its value.
    pub(crate) fn setting(&self) -> (&'static str, String) {
        match self {
            Nics::Any => ("OXSHMEM_NIC", String::new()),
            Nics::Among(names) => ("OXSHMEM_NIC", names.join(",")),
            Nics::Without(names) => ("OXSHMEM_NIC", format!("^{}", names.join(","))),
            Nics::Map(map) => {
                let entries = map.iter().map(|(name, count)| format!("{name}:{count}"));
                ("OXSHMEM_NIC_MAP", entries.collect::<Vec<_>>().join(","))
            }
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Nics::Any => Vec::new(),
            Nics::Among(names) | Nics::Without(names) => names.iter().map(String::as_str).collect(),
            Nics::Map(map) => map.iter().map(|(name, _)| name.as_str()).collect(),
        }
    }

    /// Every name is that of a device of some transport. `all` are transports with their devices;
    /// the error lists them.
    pub(crate) fn check(&self, all: &[(&str, Vec<String>)]) -> Result<(), String> {
        let devices = || all.iter().flat_map(|(_, devices)| devices);
        let mut names = self.names().into_iter();
        match names.find(|name| !devices().any(|device| is_called(device, name))) {
            None => Ok(()),
            Some(unknown) => {
                let list = |(transport, devices): &(&str, Vec<String>)| {
                    format!("{transport} has {}", devices.join(", "))
                };
                let all: Vec<String> = all.iter().map(list).collect();
                Err(if all.is_empty() {
                    format!("there is no device {unknown:?}, and no other")
                } else {
                    format!("there is no device {unknown:?}: {}", all.join("; "))
                })
            }
        }
    }

    /// For each of a transport's devices, whether it may be chosen. A list that names none of a transport's devices
    /// does not concern it.
    pub(crate) fn allows(&self, devices: &[String]) -> Vec<bool> {
        let named = |device: &String, names: &[String]| names.iter().any(|n| is_called(device, n));
        match self {
            Nics::Among(names) if devices.iter().any(|d| named(d, names)) => {
                devices.iter().map(|d| named(d, names)).collect()
            }
            Nics::Without(names) => devices.iter().map(|d| !named(d, names)).collect(),
            _ => vec![true; devices.len()],
        }
    }

    /// For each of a transport's devices, whether a PE may get it: all that are [allowed](Self::allows), but with a map about
    /// this transport those in the map alone.
    pub(crate) fn may_get(&self, devices: &[String]) -> Vec<bool> {
        match self {
            Nics::Map(map) => {
                let is_mapped = |d: &String| map.iter().any(|(name, _)| is_called(d, name));
                let mapped: Vec<bool> = devices.iter().map(is_mapped).collect();
                if mapped.contains(&true) {
                    mapped
                } else {
                    vec![true; devices.len()]
                }
            }
            _ => self.allows(devices),
        }
    }

    /// The device that the map gives to this local rank of `pes`, if it is about these devices.
    pub(crate) fn mapped(
        &self,
        devices: &[String],
        local_rank: usize,
        pes: usize,
    ) -> Result<Option<usize>, String> {
        let Nics::Map(map) = self else {
            return Ok(None);
        };
        let index = |name: &str| devices.iter().position(|device| is_called(device, name));
        if !map.iter().any(|(name, _)| index(name).is_some()) {
            return Ok(None);
        }
        let mut end = 0;
        for (name, count) in map {
            end += count;
            if local_rank < end {
                return index(name).map(Some).ok_or_else(|| {
                    let devices = devices.join(", ");
                    format!("PE {local_rank} of this host is to have {name}, not one of {devices}")
                });
            }
        }
        Err(format!(
            "it has places for {end} PEs, and this host has {pes}; raise a count or add a device"
        ))
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let odd = |c: char| c.is_whitespace() || c == '^' || c == ',';
    if name.is_empty() || name.contains(odd) {
        return Err(format!("{name:?} is no name of a device"));
    }
    Ok(())
}

/// Whether the user's name means this device: its own, or that without the port.
fn is_called(device: &str, name: &str) -> bool {
    let port = device.strip_prefix(name);
    port.is_some_and(|port| port.is_empty() || port.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_list_of_nics_allows_what_it_names_and_leaves_other_transports_alone() {
        let nics = strings(&["mlx5_0:1", "mlx5_0:2", "mlx5_1:1", "mlx5_10:1"]);
        let allows = |text: &str| Nics::parse_list(text).unwrap().allows(&nics);
        assert_eq!(allows("mlx5_1"), [false, false, true, false]);
        assert_eq!(allows("mlx5_0, mlx5_10:1"), [true, true, false, true]);
        assert_eq!(allows("^mlx5_0:2,mlx5_1"), [true, false, false, true]);
        assert_eq!(allows("^mlx5_0:2,^mlx5_1"), [true, false, false, true]);
        let memory = strings(&["memory"]);
        assert_eq!(Nics::parse_list("mlx5_1").unwrap().allows(&memory), [true]);
    }

    #[test]
    fn a_nic_that_there_is_not_is_told_those_that_there_are() {
        let known = [
            ("loopback", strings(&["memory"])),
            ("verbs", strings(&["mlx5_0:1", "mlx5_1:1"])),
        ];
        for text in ["mlx5_9", "^mlx5_9", "mlx5_0,mlx5_"] {
            let why = Nics::parse_list(text).unwrap().check(&known).unwrap_err();
            assert!(why.contains("verbs has mlx5_0:1, mlx5_1:1"), "{why}");
        }
        assert_eq!(Nics::parse_map("mlx5_0:4").unwrap().check(&known), Ok(()));
        assert!(Nics::parse_list("mlx5_0").unwrap().check(&[]).is_err());
    }

    #[test]
    fn a_map_of_nics_is_used_up_in_the_order_of_local_ranks() {
        let nics = strings(&["mlx5_0:1", "mlx5_1:1"]);
        let map = Nics::parse_map("mlx5_1:1:2,mlx5_0:1").unwrap();
        let of = |rank| map.mapped(&nics, rank, 4);
        assert_eq!(
            [of(0), of(1), of(2)],
            [Ok(Some(1)), Ok(Some(1)), Ok(Some(0))]
        );
        let why = of(3).unwrap_err();
        assert!(
            why.contains("places for 3 PEs, and this host has 4"),
            "{why}"
        );
        assert_eq!(map.mapped(&strings(&["memory"]), 3, 4), Ok(None));
        for text in ["mlx5_0", "mlx5_0:0", ":2", "mlx5_0:1:many", "mlx5_0:1,,"] {
            assert!(Nics::parse_map(text).is_err(), "{text}");
        }
    }
}
