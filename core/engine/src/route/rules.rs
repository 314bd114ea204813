//! The user's rules for routes: `OXSHMEM_ROUTE`.

use std::fmt;

/// Rules about which transport goes where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    towards: Towards,
    /// Whether the transport is ruled out, or all others are.
    not: bool,
    transport: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Towards {
    /// The PEs of the same host.
    Local,
    /// Those of others.
    Remote,
    /// From the first to the last, and from them.
    Pes(usize, usize),
    /// Those of one host, and from them: its id, after `host:` where that reads as one of the above.
    Host(String),
}

/// Two PEs, as rules see them.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Their numbers.
    pub pes: [usize; 2],
    /// Their hosts.
    pub hosts: [&'a str; 2],
}

impl Rules {
    /// Reads `local=loopback,remote=^verbs,4-7=verbs`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let hint = "give rules such as remote=verbs, local=^loopback or 0-3=verbs, separated by \
                    commas: local, remote, PEs, a host id or host: and one, then = and a transport, ^ before one \
                    that is not to be used";
        let mut rules = Vec::new();
        for rule in text.split(',').map(str::trim) {
            let parts = rule.rsplit_once('=');
            let Some((towards, transport)) = parts.map(|(a, b)| (a.trim(), b.trim())) else {
                return Err(format!("{rule:?} has no =; {hint}"));
            };
            let bare = transport.strip_prefix('^');
            let name = bare.unwrap_or(transport);
            if towards.is_empty() || name.is_empty() {
                return Err(format!("{rule:?} lacks a side; {hint}"));
            }
            rules.push(Rule {
                towards: Towards::parse(towards)?,
                not: bare.is_some(),
                transport: name.into(),
            });
        }
        Ok(Rules(rules))
    }

    /// Every transport, PE and host that is named exists.
    pub fn check(&self, transports: &[&str], hosts: &[&str]) -> Result<(), String> {
        for rule in &self.0 {
            let name = rule.transport.as_str();
            if !transports.contains(&name) {
                return Err(format!(
                    "there is no transport {name:?} among {transports:?}"
                ));
            }
            match &rule.towards {
                Towards::Pes(_, last) if *last >= hosts.len() => {
                    let last_pe = hosts.len().saturating_sub(1);
                    return Err(format!(
                        "there is no PE {last}; this job's are 0 to {last_pe}"
                    ));
                }
                Towards::Host(host) if !hosts.contains(&host.as_str()) => {
                    let mut known = hosts.to_vec();
                    known.sort_unstable();
                    known.dedup();
                    // A job may have thousands.
                    known.truncate(8);
                    return Err(format!("there is no host {host:?}; there are {known:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The reason why the pair may not use a transport, if it may not. The same for both PEs.
    pub fn refuse(&self, pair: Pair<'_>, transport: &str) -> Option<String> {
        let rules = || self.0.iter().filter(|rule| rule.towards.includes(pair));
        let out = rules().find(|rule| rule.not && rule.transport == transport);
        // Of several that name the one to use, the first holds.
        let only = || rules().find(|rule| !rule.not);
        let rule = out.or_else(|| only().filter(|rule| rule.transport != transport))?;
        Some(format!("OXSHMEM_ROUTE says {rule}"))
    }
}

impl Towards {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "local" => return Ok(Towards::Local),
            "remote" => return Ok(Towards::Remote),
            _ => {}
        }
        match text.strip_prefix("host:") {
            Some("") => return Err("host: without a host id".into()),
            Some(id) => return Ok(Towards::Host(id.into())),
            None => {}
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Towards::Pes(first, last)),
            (Ok::<usize, _>(_), Ok(_)) => Err(format!("the PEs {text} run backwards")),
            _ => Ok(Towards::Host(text.into())),
        }
    }

    fn includes(&self, pair: Pair<'_>) -> bool {
        let [here, there] = pair.hosts;
        match self {
            Towards::Local => here == there,
            Towards::Remote => here != there,
            Towards::Pes(first, last) => pair.pes.iter().any(|pe| (first..=last).contains(&pe)),
            Towards::Host(host) => pair.hosts.contains(&host.as_str()),
        }
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.0.iter().map(Rule::to_string).collect();
        f.write_str(&rules.join(","))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.not { "^" } else { "" };
        match &self.towards {
            Towards::Local => write!(f, "local")?,
            Towards::Remote => write!(f, "remote")?,
            Towards::Pes(first, last) if first == last => write!(f, "{first}")?,
            Towards::Pes(first, last) => write!(f, "{first}-{last}")?,
            // An id that would be read as something else is shown as it must be written.
            Towards::Host(host) => match Towards::parse(host) {
                Ok(Towards::Host(same)) if same == *host => write!(f, "{host}")?,
                _ => write!(f, "host:{host}")?,
            },
        }
        write!(f, "={not}{}", self.transport)
    }
}
