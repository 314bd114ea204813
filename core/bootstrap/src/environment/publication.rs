//! Joining through a process manager (PMI-1, PMI-2, PMIx), which carries rank 0's publication.
//!
//! A publication is the job's key and the addresses at which rank 0's rendezvous listens. It is one word without spaces of at
//! most 512 bytes, which any process manager carries. From there on the job is as any other.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::addresses;
use crate::bootstrap::Bootstrap;
use crate::client::TcpBootstrap;
use crate::client::connect::Listens;
use crate::error::{Error, Result};
use crate::hub::HubListener;
use crate::job_key::JobKey;
use crate::limits::MAX_PES;
use crate::process_manager::{ProcessManager, RankAndSize};
use crate::protocol::hello::Hello;
use crate::single::Single;
use crate::variables::{HUB_ADDRESS, Lookup};

/// The beginning of every publication.
const FORM: &str = "oxshmem-1";

/// Bytes of a publication, at most: any process manager carries so many.
const MAX_VALUE_BYTES: usize = 512;

/// Joins the job of `manager`'s PEs.
pub(super) fn join(
    mut manager: Box<dyn ProcessManager>,
    lookup: Lookup<'_>,
    deadline: Duration,
    end: Instant,
) -> Result<Arc<dyn Bootstrap>> {
    let RankAndSize { rank, size } = manager.rank_and_size();
    let name = manager.name();
    if size == 0 || size > MAX_PES || rank >= size {
        return Err(Error::ProcessManager {
            interface: name,
            step: "joining",
            why: format!("it calls this process rank {rank} of {size}"),
            hint: "a job has 1 to 65536 PEs, numbered from 0: start fewer, or see its output",
        });
    }
    if size == 1 {
        // The manager is still to see an orderly client.
        manager.exchange(Some(FORM))?;
        return Ok(Arc::new(Single::new()));
    }
    let mut hub = None;
    let mut published = None;
    if rank == 0 {
        // A user who gives an address may have PEs that do not share this process's loopback.
        let is_local = lookup(HUB_ADDRESS).is_none() && manager.is_on_one_host();
        let listener = listen(lookup, is_local)?;
        let key = JobKey::random()?;
        published = Some(publication(
            lookup,
            &key,
            listener.address(),
            MAX_VALUE_BYTES,
        )?);
        hub = Some(listener.serve_and_report(size, key)?);
    }
    let (key, addresses) = parse(&manager.exchange(published.as_deref())?)?;
    let hello = Hello { rank, size, key };
    let left = end.saturating_duration_since(Instant::now());
    let left = left.max(Duration::from_secs(1));
    let bootstrap = TcpBootstrap::new(&addresses, hello, left, Listens::Later, hub)?;
    Ok(Arc::new(bootstrap.found_by(name, deadline)))
}

/// Listens on all interfaces, or for this host's processes alone, at the port that `OXSHMEM_HUB_ADDRESS` names, if any.
pub(crate) fn listen(lookup: Lookup<'_>, is_local: bool) -> Result<HubListener> {
    const HINT: &str = "set OXSHMEM_HUB_ADDRESS to a name of this host and a free port, as \
                        node7:29400, or without a port to take any";
    let port = lookup(HUB_ADDRESS)
        .and_then(|text| port_of(&text))
        .unwrap_or(0);
    if is_local
        && let Ok(listener) =
            HubListener::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), HINT)
    {
        return Ok(listener);
    }
    // Linux's unspecified IPv6 address takes IPv4 connections too.
    HubListener::bind(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port), HINT)
        .or_else(|_| HubListener::bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port), HINT))
}

/// The port of `host:port`, `[::1]:port`; none of `host` and `::1`.
fn port_of(text: &str) -> Option<u16> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let whole = !host.contains(':') || host.ends_with(']');
    port.parse().ok().filter(|_| whole && !host.is_empty())
}

/// A publication of at most `most` bytes: the job's key and the addresses at which to try.
pub(crate) fn publication(
    lookup: Lookup<'_>,
    key: &JobKey,
    listens: SocketAddr,
    most: usize,
) -> Result<String> {
    let port = listens.port();
    let start = format!("{FORM}/{}/", key.to_hex());
    if let Some(given) = lookup(HUB_ADDRESS) {
        let text = given.trim();
        let fits = start.len() + text.len() + 8 <= most;
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        if text.is_empty() || !fits || !text.chars().all(plain) || text.ends_with(':') {
            return Err(Error::Variable {
                name: HUB_ADDRESS,
                value: given,
                problem: "is no address; give rank 0's host as the others reach it, by name or \
                          number, with or without :port"
                    .to_owned(),
            });
        }
        let address = match (port_of(text), text.parse::<Ipv6Addr>()) {
            (Some(_), _) => text.to_owned(),
            (None, Ok(bare)) => format!("[{bare}]:{port}"),
            (None, Err(_)) => format!("{text}:{port}"),
        };
        return Ok(start + &address);
    }
    let mut value = start;
    if listens.ip().is_loopback() {
        return Ok(value + &listens.to_string());
    }
    for ip in addresses::of_this_host() {
        let next = format!("{},", SocketAddr::new(ip, port));
        if value.len() + next.len() <= most {
            value.push_str(&next);
        }
    }
    Ok(value.trim_end_matches(',').to_owned())
}

/// The key and the addresses in a publication. Its errors never show the key.
pub(crate) fn parse(value: &str) -> Result<(JobKey, String)> {
    const MALFORMED: &str = "what was published is no rendezvous of oxshmem: rank 0 publishes it through the process manager, \
                             or the program passes on a unique id, which may not be changed on its way";
    let malformed = || Error::Protocol {
        what: MALFORMED.into(),
    };
    let mut parts = value.trim().splitn(3, '/');
    let (form, key, addresses) = (parts.next(), parts.next(), parts.next());
    if form != Some(FORM) {
        return Err(malformed());
    }
    let key = key.and_then(JobKey::from_hex).ok_or_else(malformed)?;
    let addresses = addresses
        .filter(|text| !text.is_empty())
        .ok_or_else(malformed)?;
    Ok((key, addresses.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn published(address: Option<&str>) -> Result<String> {
        let key = JobKey::from_hex(&"ab".repeat(32)).unwrap();
        let all = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 77);
        publication(&|_| address.map(str::to_owned), &key, all, MAX_VALUE_BYTES)
    }

    #[test]
    fn a_job_of_one_host_listens_on_loopback_alone_and_says_so() {
        let none = |_: &str| None;
        let listener = listen(&none, true).unwrap();
        let address = listener.address();
        assert!(address.ip().is_loopback(), "{address}");
        let value =
            publication(&none, &JobKey::random().unwrap(), address, MAX_VALUE_BYTES).unwrap();
        assert_eq!(parse(&value).unwrap().1, address.to_string());
        let listener = listen(&none, false).unwrap();
        assert!(listener.address().ip().is_unspecified());
    }

    #[test]
    fn what_is_published_is_what_the_others_read() {
        let value = published(None).unwrap();
        assert!(
            value.len() <= MAX_VALUE_BYTES && !value.contains(' '),
            "{value}"
        );
        let (key, addresses) = parse(&value).unwrap();
        assert_eq!(key.to_hex(), "ab".repeat(32));
        assert!(
            addresses
                .split(',')
                .all(|text| text.parse::<SocketAddr>().is_ok())
        );
        assert!(addresses.contains("127.0.0.1:77"), "{addresses}");
    }

    #[test]
    fn an_address_that_is_set_is_the_only_one() {
        for (set, expected) in [
            ("node7", "node7:77"),
            ("node7:5", "node7:5"),
            ("10.0.0.1", "10.0.0.1:77"),
            ("fe80::1", "[fe80::1]:77"),
            ("[fe80::1]:5", "[fe80::1]:5"),
        ] {
            let value = published(Some(set)).unwrap();
            assert_eq!(parse(&value).unwrap().1, expected);
        }
        for bad in ["", " ", "a b", "a/b", "a,b", "a=b", "a:", &"x".repeat(500)] {
            let complaint = published(Some(bad)).unwrap_err().to_string();
            assert!(complaint.contains(HUB_ADDRESS), "{complaint}");
        }
    }

    #[test]
    fn what_is_no_rendezvous_is_refused_and_not_shown() {
        let key = "ab".repeat(32);
        for value in [
            String::new(),
            FORM.to_owned(),
            format!("{FORM}/{key}"),
            format!("{FORM}/{key}/"),
            format!("{FORM}/{}/h:1", &key[1..]),
            format!("other/{key}/h:1"),
        ] {
            let complaint = parse(&value).unwrap_err().to_string();
            assert!(!complaint.contains("abab"), "{complaint}");
        }
    }

    proptest! {
        #[test]
        fn any_published_text_is_parsed_without_panic(text in ".*") {
            let _ = parse(&text);
            let _ = port_of(&text);
        }
    }
}
