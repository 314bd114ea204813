//! The hosts that a job runs on, and the commands and addresses by which they are reached.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::addresses::towards;
use crate::environment::addresses::of_this_host;
use crate::error::{Error, Result};
use crate::hub::HubListener;
use crate::limits::MAX_PES;
use crate::variables::{
    DEFAULT_DEADLINE, HOST_ADDRESS, HUB_ADDRESS, JOB_KEY, LOCAL_RANK, RANK, RENDEZVOUS, RSH, SIZE,
};

/// Beginnings of the names of variables that other hosts get.
const FORWARDED: [&str; 4] = ["OXSHMEM_", "SHMEM_", "SMA_", "NVSHMEM_"];
/// Variables that are each host's, each PE's or the launcher's own.
const KEPT: [&str; 9] = [
    RANK,
    SIZE,
    LOCAL_RANK,
    RENDEZVOUS,
    JOB_KEY,
    "OXSHMEM_HOST_ID",
    HOST_ADDRESS,
    RSH,
    HUB_ADDRESS,
];

/// A host, and its number of PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// As the remote-shell command knows it, such as `node7` or `user@10.0.0.7`.
    pub name: String,
    /// The number of PEs that run there.
    pub pes: u32,
}

/// The hosts of a job that does not run on this one alone. Ranks are dealt out in the order of the list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hosts {
    /// The hosts. If one is named twice, the local ranks of its second PEs follow those of the first.
    pub list: Vec<Host>,
    /// The command that reaches a host, `ssh` unless set otherwise: words, where `{host}` stands
    /// for the host's name; if it is nowhere, the name becomes the last word. The words of `agent`
    /// follow. The command must pass on the standard streams unchanged, and end when its input does
    /// or when what it runs does.
    pub rsh: String,
    /// The command, on each host, that calls [`serve_agent`](crate::serve_agent).
    pub agent: Vec<OsString>,
    /// A host or address, with or without a port, at which all hosts reach this one. Without it
    /// each host tries this one's addresses.
    pub hub_address: Option<String>,
    /// The policy by which each host's agent is asked for CPU sets; an empty one binds nothing.
    pub bind: String,
    /// Time limit for the hosts to answer, and then again to start their PEs.
    pub deadline: Duration,
}

impl Hosts {
    /// The command by which hosts are reached unless set otherwise.
    pub const SSH: &str =
        "ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 {host}";

    /// These hosts, by ssh, with `agent` as each host's agent.
    pub fn new(list: Vec<Host>, agent: Vec<OsString>) -> Hosts {
        Hosts {
            list,
            rsh: Hosts::SSH.to_owned(),
            agent,
            hub_address: None,
            bind: String::new(),
            deadline: DEFAULT_DEADLINE,
        }
    }

    /// Hosts from a list such as `a:4,b:4`: names, each with a number of PEs, or 1.
    pub fn parse_list(text: &str) -> Result<Vec<Host>> {
        let hosts = text.split(',').map(|host| parse_host(host.trim()));
        hosts.collect()
    }

    /// Hosts from a file's text: one in each line, as `name:4`, `name slots=4` or `name`; a `#` begins a
    /// comment.
    pub fn parse_file(text: &str) -> Result<Vec<Host>> {
        let mut hosts = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                [host] => hosts.push(parse_host(host)?),
                [name, slots] if slots.starts_with("slots=") => {
                    let slots = slots.trim_start_matches("slots=");
                    hosts.push(parse_host(&format!("{name}:{slots}"))?);
                }
                _ => {
                    return Err(refused(format!(
                        "the host file's line {line:?} is none of `name`, `name:4` and `name slots=4`"
                    )));
                }
            }
        }
        if hosts.is_empty() {
            return Err(refused("the host file names no host".to_owned()));
        }
        Ok(hosts)
    }

    /// The number of PEs of all hosts together.
    pub fn pes(&self) -> u32 {
        let pes = self.list.iter().map(|host| host.pes);
        pes.fold(0, u32::saturating_add)
    }

    /// Leaves as many PEs as are wanted, of the first hosts.
    pub fn keep(&mut self, pes: u32) -> Result<()> {
        let places = self.pes();
        if pes > places {
            return Err(refused(format!(
                "{pes} PEs were asked for and the hosts have {places} places; give them more, such \
                 as {}:{}",
                self.list.first().map_or("a", |host| host.name.as_str()),
                pes.div_ceil(u32::try_from(self.list.len()).unwrap_or(1).max(1)),
            )));
        }
        let mut left = pes;
        for host in &mut self.list {
            host.pes = host.pes.min(left);
            left -= host.pes;
        }
        self.list.retain(|host| host.pes > 0);
        Ok(())
    }

    /// Refuses hosts and commands that cannot work.
    pub(super) fn check(&self, pes: u32) -> Result<()> {
        let places = self.pes();
        if places != pes || self.list.iter().any(|host| host.pes == 0) {
            return Err(refused(format!(
                "the hosts have {places} PEs and the job {pes}; make these the same, and give each \
                 host at least one"
            )));
        }
        self.list
            .iter()
            .try_for_each(|host| check_name(&host.name))?;
        for word in &self.agent {
            if !is_plain(word) {
                return Err(refused(format!(
                    "a remote shell might change {word:?}, which starts oxshmem's agent on the \
                     other hosts; install oxshmem at a path of letters, digits and any of /._+-"
                )));
            }
        }
        words(&self.rsh)?;
        Ok(())
    }

    /// The command that starts a host's agent.
    pub(super) fn command(&self, host: &str) -> Result<Vec<OsString>> {
        let mut words = words(&self.rsh)?;
        if words.iter().any(|word| word.contains("{host}")) {
            for word in &mut words {
                *word = word.replace("{host}", host);
            }
        } else {
            words.push(host.to_owned());
        }
        let words = words.into_iter().map(OsString::from);
        Ok(words.chain(self.agent.iter().cloned()).collect())
    }

    /// Listens on all interfaces, so that other hosts reach it.
    pub(super) fn listen(&self) -> Result<HubListener> {
        let port = self
            .hub_address
            .as_deref()
            .and_then(|address| split_port(address).1);
        let port = match port {
            None => 0,
            Some(text) => text.parse::<u16>().map_err(|_| {
                let address = self.hub_address.as_deref().unwrap_or_default();
                refused(format!(
                    "{address:?} is no address of this host; give a name or address, with or \
                     without :port (--hub-address, {HUB_ADDRESS})"
                ))
            })?,
        };
        let hint = "give another port (--hub-address, OXSHMEM_HUB_ADDRESS)";
        // With IPv6, one socket serves both.
        let any = |ip: IpAddr| HubListener::bind(SocketAddr::new(ip, port), hint);
        any(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| any(Ipv4Addr::UNSPECIFIED.into()))
    }

    /// The addresses at which a host may look for the rendezvous, likely ones first.
    pub(super) fn candidates(&self, host: &str, port: u16) -> Vec<String> {
        if let Some(address) = &self.hub_address {
            let (name, _) = split_port(address);
            return vec![match name.parse::<Ipv6Addr>() {
                Ok(bare) => format!("[{bare}]:{port}"),
                Err(_) => format!("{name}:{port}"),
            }];
        }
        // The address that other hosts see comes before those that they may not reach.
        let others = self.list.iter().map(|other| other.name.as_str());
        let names = std::iter::once(host).chain(others);
        let names = names.map(|name| name.rsplit_once('@').map_or(name, |(_, name)| name));
        let mut addresses: Vec<IpAddr> = names.filter_map(towards).collect();
        addresses.extend(of_this_host());
        let mut candidates: Vec<String> = Vec::new();
        for address in addresses {
            let text = SocketAddr::new(address, port).to_string();
            if !candidates.contains(&text) {
                candidates.push(text);
            }
        }
        candidates
    }
}

/// The variables of this process that other hosts get.
pub(super) fn forwarded() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            let ours = FORWARDED.iter().any(|prefix| name.starts_with(prefix));
            (ours || name == "RUST_LOG" || name == "RUST_BACKTRACE") && !KEPT.contains(&&*name)
        })
        .collect()
}

fn refused(what: String) -> Error {
    Error::Launch { what }
}

/// `name`, `name:4` or, for an IPv6 address with a number, `[address]:4`.
fn parse_host(text: &str) -> Result<Host> {
    let (name, pes) = split_port(text);
    let pes = match pes {
        None => 1,
        Some(number) => number
            .parse()
            .ok()
            .filter(|pes| (1..=MAX_PES).contains(pes))
            .ok_or_else(|| {
                refused(format!(
                    "{text:?} does not end in a number of PEs; give a host as name or name:4"
                ))
            })?,
    };
    check_name(name)?;
    Ok(Host {
        name: name.to_owned(),
        pes,
    })
}

/// A name or address, and the text behind its colon. Brackets around an IPv6 address are removed.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if text.parse::<Ipv6Addr>().is_ok() {
        return (text, None);
    }
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None if rest.is_empty() => (address, None),
            None => (text, None),
        };
    }
    match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    }
}

/// A host's name becomes a word of a command, and may be read by a shell.
fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || "._-@:%+".contains(c);
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
        return Ok(());
    }
    Err(refused(format!(
        "{name:?} is no host's name; give names or addresses, separated by commas, such as a:4,b:4"
    )))
}

/// Whether a word means itself to any shell, quoted or not.
fn is_plain(word: &OsStr) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._+-=:@%,".contains(byte);
    let bytes = word.as_encoded_bytes();
    !bytes.is_empty() && bytes.iter().all(plain)
}

/// A command's words, with quotes and backslashes as in a shell, and nothing else of one.
fn words(text: &str) -> Result<Vec<String>> {
    let unended = || {
        refused(format!(
            "the remote-shell command {text:?} has a quote or a backslash without its end (--rsh, \
             {RSH})"
        ))
    };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next().ok_or_else(unended)? {
                        end if end == letter => break,
                        '\\' if letter == '"' => word.push(letters.next().ok_or_else(unended)?),
                        other => word.push(other),
                    }
                }
            }
            '\\' => {
                let next = letters.next().ok_or_else(unended)?;
                word.get_or_insert_default().push(next);
            }
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err(refused(format!(
            "the remote-shell command is empty; give one such as \"ssh {{host}}\" (--rsh, {RSH})"
        )));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<(String, u32)> {
        let hosts = Hosts::parse_list(text).unwrap();
        hosts
            .into_iter()
            .map(|host| (host.name, host.pes))
            .collect()
    }

    fn hosts(text: &str) -> Hosts {
        Hosts::new(
            Hosts::parse_list(text).unwrap(),
            vec!["/opt/oxshmem".into(), "agent".into()],
        )
    }

    #[test]
    fn lists_give_names_and_numbers() {
        assert_eq!(
            list("a:4, me@b.example:2,c"),
            [("a".into(), 4), ("me@b.example".into(), 2), ("c".into(), 1)]
        );
        assert_eq!(
            list("[fe80::1]:3,fe80::2,10.0.8.1:2"),
            [
                ("fe80::1".into(), 3),
                ("fe80::2".into(), 1),
                ("10.0.8.1".into(), 2)
            ]
        );
        for bad in [
            "",
            "a,,b",
            "a:99999999",
            "a:0",
            "a:x",
            "a:",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "$(a)",
        ] {
            assert!(Hosts::parse_list(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn host_files_may_have_slots_and_comments() {
        let text = "# rack 1\na slots=4 # fast\n\nb:2\nc\n";
        let hosts = Hosts::parse_file(text).unwrap();
        let pes: Vec<u32> = hosts.iter().map(|host| host.pes).collect();
        assert_eq!(pes, [4, 2, 1]);
        assert!(Hosts::parse_file("# nothing\n").is_err());
        assert!(Hosts::parse_file("a max=3\n").is_err());
    }

    #[test]
    fn fewer_pes_than_places_fill_the_first_hosts() {
        let mut some = hosts("a:2,b:2,c:2");
        some.keep(3).unwrap();
        let kept: Vec<_> = some.list.iter().map(|host| host.pes).collect();
        assert_eq!(kept, [2, 1]);
        let error = hosts("a:2,b:2").keep(5).unwrap_err().to_string();
        assert!(
            error.contains("4 places") && error.contains("a:3"),
            "{error}"
        );
    }

    #[test]
    fn a_template_gets_the_host_where_it_says_or_last() {
        let mut some = hosts("h");
        let command = |some: &Hosts| {
            let words = some.command("h").unwrap();
            let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            words.join("|")
        };
        some.rsh = "ssh -p 22".into();
        assert_eq!(command(&some), "ssh|-p|22|h|/opt/oxshmem|agent");
        some.rsh = r#"env ID={host} sh -c 'exec "$@"' "a \" b" c\ d"#.into();
        assert_eq!(
            command(&some),
            r#"env|ID=h|sh|-c|exec "$@"|a " b|c d|/opt/oxshmem|agent"#
        );
        for bad in ["", "  ", "ssh 'x", "ssh \"x", "ssh \\"] {
            some.rsh = bad.into();
            assert!(some.command("h").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_agent_that_a_shell_would_read_otherwise_is_refused() {
        let mut some = hosts("a");
        some.check(1).unwrap();
        some.agent = vec!["/opt/my tools/oxshmem".into()];
        let error = some.check(1).unwrap_err().to_string();
        assert!(error.contains("install oxshmem at a path"), "{error}");
    }

    #[test]
    fn a_given_address_is_the_only_candidate() {
        let mut some = hosts("a");
        for (given, expected) in [
            ("head", "head:9"),
            ("head:9", "head:9"),
            ("10.0.8.254", "10.0.8.254:9"),
            ("fe80::1", "[fe80::1]:9"),
            ("[fe80::1]:9", "[fe80::1]:9"),
        ] {
            some.hub_address = Some(given.into());
            assert_eq!(some.candidates("a", 9), [expected]);
        }
        some.hub_address = Some("head:port".into());
        assert!(some.listen().is_err());
    }

    /// A host's own name often means loopback there; the launcher's address towards another host is none.
    #[test]
    fn the_address_towards_another_host_comes_before_the_rest() {
        // Names that need no resolver: loopback, and an address that every machine has a route to.
        let Some(towards) = towards("127.0.0.1").or(towards("192.0.2.1")) else {
            return;
        };
        let candidates = hosts("127.0.0.1,192.0.2.1").candidates("127.0.0.1", 9);
        let first = SocketAddr::new(towards, 9).to_string();
        assert_eq!(candidates.first(), Some(&first), "{candidates:?}");
    }

    #[test]
    fn the_loopback_is_the_last_candidate() {
        let candidates = hosts("a").candidates("no-such-host.invalid", 9);
        let last = candidates.last().unwrap();
        assert!(
            last.starts_with("127.") || last.starts_with("[::1]"),
            "{candidates:?}"
        );
    }
}
