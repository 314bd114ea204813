//! The settings of this transport, in one table of environment variables. Nothing else here reads the
//! environment.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use oxshmem_transport::Variable;

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable {
        name,
        default,
        meaning,
    }
}

const PROVIDER: &str = "OXSHMEM_OFI_PROVIDER";
const INTERFACE: &str = "OXSHMEM_OFI_INTERFACE";
const PUTS: &str = "OXSHMEM_OFI_PUTS";
const ATOMICS: &str = "OXSHMEM_OFI_ATOMICS";
const HMEM: &str = "OXSHMEM_OFI_HMEM";
const CONNECT_TIMEOUT: &str = "OXSHMEM_OFI_CONNECT_TIMEOUT";
/// Set by a launcher of several hosts, and no setting of this transport alone.
const HOST_ADDRESS: &str = "OXSHMEM_HOST_ADDRESS";

/// All variables that this transport reads.
pub const VARIABLES: &[Variable] = &[
    variable(
        PROVIDER,
        "the best that all hosts have",
        "the providers of libfabric that may be used: cxi, efa, tcp, 'tcp;ofi_rxm' (names)",
    ),
    variable(
        INTERFACE,
        "all of a fabric's NICs; of ordinary networks that of OXSHMEM_HOST_ADDRESS",
        "the interfaces that may be used, by name or by their address: eth1, 10.1.0.0/16, fd00::/8, fe80::/10, fe80::1%eth1; a provider over TCP or UDP uses only \
         interfaces named here, or the one by which oxshmem run --hosts joined the hosts (names, prefixes)",
    ),
    variable(
        PUTS,
        "auto: rma where a NIC places data in memory, else messages",
        "whether puts are messages that the target's CPU copies, each word whole (messages), or writes of the provider (rma), which is refused where \
         software copies them byte by byte",
    ),
    variable(
        ATOMICS,
        "auto: provider where a NIC performs them, else messages",
        "who performs atomics of 64 bits on memory whose atomics NICs perform (OXSHMEM_ATOMICS): the provider of libfabric \
         (provider), which is refused where it has none; or nobody, so that all atomics are messages to the target's CPU (messages)",
    ),
    variable(
        HMEM,
        "auto: where a NIC places data, and libfabric has FI_HMEM",
        "whether the GPU heap is registered with libfabric, so that NICs reach it; where it is not, transfers are staged in host memory (auto, off)",
    ),
    variable(
        CONNECT_TIMEOUT,
        "40",
        "how long a PE tries to reach another for the first time before the connection has failed; three times as long for one that it has \
         reached before (seconds)",
    ),
];

/// The longest time for a first connection: longer than the fifth try of TCP, which a network that loses packets needs.
const CONNECTS: Duration = Duration::from_secs(40);

/// The way of puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Puts {
    /// As fits the provider.
    Auto,
    /// Writes of the provider; refused where these may split words.
    Rma,
    /// Writes of the provider, whatever it does to words: for tests of one process. No variable gives this.
    SplitRma,
    /// Messages that the target's CPU copies.
    Messages,
}

/// The performer of atomics of 64 bits on words of the NICs' atomic domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomics {
    /// The provider, where a NIC performs its atomics.
    Auto,
    /// The provider; refused where it has none.
    Provider,
    /// Nobody: there is no such domain.
    Messages,
}

/// The use of libfabric's registration of GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hmem {
    /// Where a NIC reaches it.
    Auto,
    /// None.
    Off,
}

/// An interface, as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Its name.
    Name(String),
    /// The network that its address is in, and the length of the prefix in bits.
    Network(IpAddr, u8),
    /// The same of one interface alone, by its name: a network of addresses that each link has.
    Scoped(IpAddr, u8, String),
}

/// The settings; none where the default depends on the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `OXSHMEM_OFI_PROVIDER`.
    pub providers: Option<Vec<String>>,
    /// `OXSHMEM_OFI_INTERFACE`.
    pub interfaces: Option<Vec<Interface>>,
    /// `OXSHMEM_HOST_ADDRESS`: this host's address in the network by which a launcher has joined the job's hosts. Where no
    /// interface is named, its interface may be used.
    pub host_address: Option<IpAddr>,
    /// `OXSHMEM_OFI_PUTS`.
    pub puts: Puts,
    /// `OXSHMEM_OFI_ATOMICS`.
    pub atomics: Atomics,
    /// `OXSHMEM_OFI_HMEM`.
    pub hmem: Hmem,
    /// `OXSHMEM_OFI_CONNECT_TIMEOUT`.
    pub connect_timeout: Duration,
    /// libfabric's own `FI_PROVIDER`, which hides providers from this transport, too.
    pub hidden_by: Option<String>,
}

/// A variable whose value cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The reason, in words.
    pub why: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}: {}", self.name, self.value, self.why)
    }
}

impl std::error::Error for SettingsError {}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            providers: None,
            interfaces: None,
            host_address: None,
            puts: Puts::Auto,
            atomics: Atomics::Auto,
            hmem: Hmem::Auto,
            connect_timeout: CONNECTS,
            hidden_by: None,
        }
    }
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Settings, SettingsError> {
        Settings::from(|name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()))
    }

    /// Reads the variables that `get` gives. One that is empty counts as not set.
    fn from(get: impl Fn(&'static str) -> Option<String>) -> Result<Settings, SettingsError> {
        let get = |name| get(name).filter(|value: &String| !value.trim().is_empty());
        let wrong = |name, value: &str, why: String| SettingsError {
            name,
            value: value.into(),
            why,
        };
        let mut settings = Settings {
            hidden_by: get("FI_PROVIDER"),
            ..Settings::default()
        };
        if let Some(value) = get(PROVIDER) {
            let names = items(&value).map_err(|why| wrong(PROVIDER, &value, why))?;
            settings.providers = Some(names.into_iter().map(str::to_owned).collect());
        }
        if let Some(value) = get(INTERFACE) {
            let read = |items: Vec<&str>| items.into_iter().map(Interface::parse).collect();
            let read: Result<Vec<_>, _> = items(&value).and_then(read);
            settings.interfaces = Some(read.map_err(|why| wrong(INTERFACE, &value, why))?);
        }
        if let Some(value) = get(HOST_ADDRESS) {
            let address = value.trim().parse();
            let why = |_| {
                wrong(
                    HOST_ADDRESS,
                    &value,
                    "give an address, such as 10.1.0.7".into(),
                )
            };
            settings.host_address = Some(address.map_err(why)?);
        }
        if let Some(value) = get(PUTS) {
            settings.puts = match value.trim() {
                "auto" => Puts::Auto,
                "rma" => Puts::Rma,
                "messages" => Puts::Messages,
                _ => return Err(wrong(PUTS, &value, "give auto, rma or messages".into())),
            };
        }
        if let Some(value) = get(ATOMICS) {
            settings.atomics = match value.trim() {
                "auto" => Atomics::Auto,
                "provider" => Atomics::Provider,
                "messages" => Atomics::Messages,
                _ => {
                    let why = "give auto, provider or messages".into();
                    return Err(wrong(ATOMICS, &value, why));
                }
            };
        }
        if let Some(value) = get(HMEM) {
            settings.hmem = match value.trim() {
                "auto" => Hmem::Auto,
                "off" => Hmem::Off,
                _ => return Err(wrong(HMEM, &value, "give auto or off".into())),
            };
        }
        if let Some(value) = get(CONNECT_TIMEOUT) {
            let seconds = value.trim().parse().ok().filter(|seconds| *seconds > 0);
            let seconds: u32 = seconds.ok_or_else(|| {
                let why = "give a number of whole seconds, 1 or more".into();
                wrong(CONNECT_TIMEOUT, &value, why)
            })?;
            settings.connect_timeout = Duration::from_secs(seconds.into());
        }
        Ok(settings)
    }

    /// Whether the user has said anything about this transport, or the launcher joins hosts.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.providers.is_some() || self.interfaces.is_some() || self.host_address.is_some()
    }
}

fn items(list: &str) -> Result<Vec<&str>, String> {
    let items: Vec<&str> = list.split(',').map(str::trim).collect();
    if items.iter().any(|item| item.is_empty()) {
        return Err("an item of the list is empty; separate items by one comma".into());
    }
    Ok(items)
}

impl Interface {
    fn parse(text: &str) -> Result<Interface, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let (address, scope) = match address.split_once('%') {
            Some((address, scope)) => (address, Some(scope)),
            None => (address, None),
        };
        let Ok(ip) = address.parse::<IpAddr>() else {
            return match bits {
                None => Ok(Interface::Name(text.into())),
                Some(_) => Err(format!(
                    "{address:?} is no address; write a network as 10.1.0.0/16 or fd00::/8"
                )),
            };
        };
        let most = if ip.is_ipv4() { 32 } else { 128 };
        match bits.map_or(Ok(most), str::parse) {
            Ok(bits) if bits <= most => match scope {
                None => Ok(Interface::Network(ip, bits)),
                Some(scope) if !scope.is_empty() && scope.parse::<u32>().is_err() => {
                    Ok(Interface::Scoped(ip, bits, scope.into()))
                }
                Some(_) => Err(format!(
                    "{text:?} has no name of an interface behind %: write it as fe80::1%eth1"
                )),
            },
            _ => Err(format!("a prefix of {ip} has 0 to {most} bits: {text:?}")),
        }
    }

    /// Whether it names an interface.
    pub(crate) fn includes(&self, names: &[&str], address: Option<IpAddr>) -> bool {
        let within = |network: &IpAddr, bits: &u8| match (network, address) {
            (IpAddr::V4(network), Some(IpAddr::V4(ip))) => {
                let differ = network.to_bits() ^ ip.to_bits();
                differ.leading_zeros() >= u32::from(*bits)
            }
            (IpAddr::V6(network), Some(IpAddr::V6(ip))) => {
                let differ = network.to_bits() ^ ip.to_bits();
                differ.leading_zeros() >= u32::from(*bits)
            }
            _ => false,
        };
        match self {
            Interface::Name(name) => names.contains(&name.as_str()),
            Interface::Network(network, bits) => within(network, bits),
            Interface::Scoped(network, bits, scope) => {
                names.contains(&scope.as_str()) && within(network, bits)
            }
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interface::Name(name) => f.write_str(name),
            Interface::Network(ip, bits) => write!(f, "{ip}/{bits}"),
            Interface::Scoped(ip, bits, scope) => write!(f, "{ip}%{scope}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from(|name| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_is_not_set_or_empty_has_its_default() {
        assert_eq!(read(&[]), Ok(Settings::default()));
        assert_eq!(
            read(&[(PROVIDER, ""), (PUTS, " ")]),
            Ok(Settings::default())
        );
        assert!(!Settings::default().is_asked_for());
    }

    #[test]
    fn providers_and_interfaces_are_lists() {
        let settings = read(&[
            (PROVIDER, "cxi, tcp;ofi_rxm"),
            (INTERFACE, "eth1, 10.1.0.0/16,fd00::/8,192.0.2.7"),
            (PUTS, "rma"),
            (ATOMICS, "provider"),
            (HMEM, "off"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(
            settings.providers,
            Some(vec!["cxi".into(), "tcp;ofi_rxm".into()])
        );
        assert_eq!(settings.puts, Puts::Rma);
        assert_eq!(settings.atomics, Atomics::Provider);
        assert_eq!(settings.hmem, Hmem::Off);
        let interfaces = settings.interfaces.unwrap();
        let named: Vec<String> = interfaces.iter().map(Interface::to_string).collect();
        assert_eq!(named, ["eth1", "10.1.0.0/16", "fd00::/8", "192.0.2.7/32"]);
    }

    #[test]
    fn an_interface_is_named_or_by_the_network_of_its_address() {
        let one = |text| Interface::parse(text).unwrap();
        let ip = |text: &str| Some(text.parse().unwrap());
        assert!(one("eth1").includes(&["mlx5_0", "eth1"], None));
        assert!(!one("eth1").includes(&["eth10"], ip("10.1.2.3")));
        assert!(one("10.1.0.0/16").includes(&["eth0"], ip("10.1.2.3")));
        assert!(!one("10.1.0.0/16").includes(&["eth0"], ip("10.2.2.3")));
        assert!(one("0.0.0.0/0").includes(&["eth0"], ip("10.2.2.3")));
        assert!(!one("0.0.0.0/0").includes(&["eth0"], ip("fd00::1")));
        assert!(one("fd00::/8").includes(&["eth0"], ip("fd00::1")));
        assert!(!one("10.1.0.0/16").includes(&["eth0"], None));
        // A link-local address is named with its interface, as ip and ssh write it.
        let local = one("fe80::1%eth1");
        assert_eq!(local.to_string(), "fe80::1%eth1/128");
        assert!(local.includes(&["eth1"], ip("fe80::1")));
        assert!(!local.includes(&["eth0"], ip("fe80::1")));
        assert!(!local.includes(&["eth1"], ip("fe80::2")));
        assert!(one("fe80::%eth1/10").includes(&["eth1"], ip("fe80::2")));
    }

    #[test]
    fn what_makes_no_sense_names_the_variable_and_how_to_write_it() {
        for (name, value, words) in [
            (PUTS, "write", "auto, rma or messages"),
            (ATOMICS, "nic", "auto, provider or messages"),
            (HMEM, "on", "auto or off"),
            (INTERFACE, "10.1.0.0/33", "0 to 32 bits"),
            (CONNECT_TIMEOUT, "0", "whole seconds"),
            (CONNECT_TIMEOUT, "-1", "whole seconds"),
            (CONNECT_TIMEOUT, "2.5", "whole seconds"),
            (INTERFACE, "eth0/16", "is no address"),
            (INTERFACE, "fe80::1%", "fe80::1%eth1"),
            (INTERFACE, "fe80::1%3", "fe80::1%eth1"),
            (INTERFACE, "eth0,,eth1", "is empty"),
            (PROVIDER, "tcp,", "is empty"),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(name), "{error}");
        }
    }
}
