//! Faults in words, such as `down mlx5_0 1 500`: the grammar of `softnic_control` and of
//! `OXSHMEM_SOFTNIC_CUES`.

use std::net::IpAddr;

use crate::abi::sys::{ibv_event_type as event, ibv_wc_status as status};

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The next request fails with a status.
    Status(status::Type),
    /// A port's link goes down; for so many milliseconds, or until it is put up.
    Down(String, u8, Option<u64>),
    Up(String, u8),
    Lid(String, u8, u16),
    /// An entry of a GID table changes, or is taken away.
    Gid(String, u8, usize, Option<[u8; 16]>),
    Pkey(String, u8, usize, u16),
    /// An event of a device, or of one of its ports.
    Event(String, event::Type, Option<u8>),
    /// A queue pair of a device fails, and its owner is told by this event.
    Fail(String, event::Type, u32),
    /// The state of all queue pairs goes to standard error.
    Dump,
    /// So many requests that are posted find their queue full, after the first so many.
    Full(u32, u32),
    /// The next so many queue pairs that are to fail or to be destroyed do neither, and stay as they are.
    Stuck(u32),
    /// The same, as if their device were gone.
    Gone(u32),
    /// The next so many queue pairs that become ready to receive wait for each other.
    Meet(u32),
    /// Queue pairs that fail give the shared buffer that they had begun to fill back so many milliseconds later.
    Flush(u64),
}

/// A fault at the request of a number, counted over the whole process from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cue {
    pub(crate) at: u64,
    pub(crate) command: Command,
}

const STATUSES: [(&str, status::Type); 12] = [
    ("LOC_LEN_ERR", status::IBV_WC_LOC_LEN_ERR),
    ("LOC_QP_OP_ERR", status::IBV_WC_LOC_QP_OP_ERR),
    ("LOC_PROT_ERR", status::IBV_WC_LOC_PROT_ERR),
    ("BAD_RESP_ERR", status::IBV_WC_BAD_RESP_ERR),
    ("REM_INV_REQ_ERR", status::IBV_WC_REM_INV_REQ_ERR),
    ("REM_ACCESS_ERR", status::IBV_WC_REM_ACCESS_ERR),
    ("REM_OP_ERR", status::IBV_WC_REM_OP_ERR),
    ("RETRY_EXC_ERR", status::IBV_WC_RETRY_EXC_ERR),
    ("RNR_RETRY_EXC_ERR", status::IBV_WC_RNR_RETRY_EXC_ERR),
    ("REM_ABORT_ERR", status::IBV_WC_REM_ABORT_ERR),
    ("FATAL_ERR", status::IBV_WC_FATAL_ERR),
    ("GENERAL_ERR", status::IBV_WC_GENERAL_ERR),
];

/// Events of devices and ports, and of all their shared receive queues. Those of other queues come from what happens to them.
const EVENTS: [(&str, event::Type); 10] = [
    ("DEVICE_FATAL", event::IBV_EVENT_DEVICE_FATAL),
    ("PORT_ACTIVE", event::IBV_EVENT_PORT_ACTIVE),
    ("PORT_ERR", event::IBV_EVENT_PORT_ERR),
    ("SRQ_ERR", event::IBV_EVENT_SRQ_ERR),
    ("LID_CHANGE", event::IBV_EVENT_LID_CHANGE),
    ("PKEY_CHANGE", event::IBV_EVENT_PKEY_CHANGE),
    ("SM_CHANGE", event::IBV_EVENT_SM_CHANGE),
    ("CLIENT_REREGISTER", event::IBV_EVENT_CLIENT_REREGISTER),
    ("GID_CHANGE", event::IBV_EVENT_GID_CHANGE),
    ("SPEED_CHANGE", event::IBV_EVENT_DEVICE_SPEED_CHANGE),
];

/// Events of queue pairs that fail.
const PAIR_EVENTS: [(&str, event::Type); 3] = [
    ("QP_FATAL", event::IBV_EVENT_QP_FATAL),
    ("QP_REQ_ERR", event::IBV_EVENT_QP_REQ_ERR),
    ("QP_ACCESS_ERR", event::IBV_EVENT_QP_ACCESS_ERR),
];

/// An event by its name, with or without `IBV_EVENT_`.
fn named(events: &[(&str, event::Type)], kind: &str) -> Result<event::Type, String> {
    let short = kind.trim_start_matches("IBV_EVENT_");
    let known = events.iter().find(|(one, _)| *one == short);
    known.map(|(_, code)| *code).ok_or_else(|| {
        let all: Vec<&str> = events.iter().map(|(one, _)| *one).collect();
        format!("{kind} is no event; there are {}", all.join(", "))
    })
}

/// A completion status by its name, with or without `IBV_WC_`, or by its number.
fn status(name: &str) -> Result<status::Type, String> {
    let short = name.trim_start_matches("IBV_WC_");
    let known = STATUSES.iter().find(|(one, _)| *one == short);
    match (known, short.parse()) {
        (Some((_, code)), _) => Ok(*code),
        (None, Ok(code)) if code > 0 => Ok(code),
        _ => Err(format!(
            "{name} is no status; there are {}",
            STATUSES.map(|(one, _)| one).join(", ")
        )),
    }
}

fn address(text: &str) -> Result<Option<[u8; 16]>, String> {
    if text == "none" {
        return Ok(None);
    }
    match text.parse() {
        Ok(IpAddr::V4(v4)) => Ok(Some(v4.to_ipv6_mapped().octets())),
        Ok(IpAddr::V6(v6)) => Ok(Some(v6.octets())),
        Err(_) => Err(format!("{text} is no address")),
    }
}

impl Command {
    pub(crate) fn parse(text: &str) -> Result<Command, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
            word.parse()
                .map_err(|_| format!("{word} is no number that fits"))
        }
        let device = |name: &str| name.to_owned();
        Ok(match *words {
            ["dump"] => Command::Dump,
            ["status", name] => Command::Status(status(name)?),
            ["flush", millis] => Command::Flush(number(millis)?),
            ["full", count] => Command::Full(number(count)?, 0),
            ["full", count, after] => Command::Full(number(count)?, number(after)?),
            ["stuck", count] => Command::Stuck(number(count)?),
            ["gone", count] => Command::Gone(number(count)?),
            ["meet", count] => Command::Meet(number(count)?),
            ["down", name, port] => Command::Down(device(name), number(port)?, None),
            ["down", name, port, millis] => {
                Command::Down(device(name), number(port)?, Some(number(millis)?))
            }
            ["up", name, port] => Command::Up(device(name), number(port)?),
            ["lid", name, port, lid] => Command::Lid(device(name), number(port)?, number(lid)?),
            ["gid", name, port, index, to] => {
                Command::Gid(device(name), number(port)?, number(index)?, address(to)?)
            }
            ["pkey", name, port, index, key] => {
                let digits = key.trim_start_matches("0x");
                let key = u16::from_str_radix(digits, 16)
                    .map_err(|_| format!("{key} is no partition key"))?;
                Command::Pkey(device(name), number(port)?, number(index)?, key)
            }
            ["event", name, kind, pair] if kind.contains("QP_") => {
                let kind = named(&PAIR_EVENTS, kind)?;
                Command::Fail(device(name), kind, number(pair)?)
            }
            ["event", name, kind, ref port @ ..] if port.len() < 2 => {
                let code = named(&EVENTS, kind)?;
                let port = port.first().map(|port| number(port)).transpose()?;
                Command::Event(device(name), code, port)
            }
            _ => return Err(format!("{text:?} is no command; see README.md")),
        })
    }
}

/// Faults on cue: `NUMBER:COMMAND`, with semicolons between.
pub(crate) fn cues(text: &str) -> Result<Vec<Cue>, String> {
    let parts = text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let parsed = part
                .split_once(':')
                .and_then(|(at, command)| Some((at.trim().parse().ok()?, command)));
            let (at, command) = parsed.ok_or_else(|| format!("{part:?} is no NUMBER:COMMAND"))?;
            Command::parse(command).map(|command| Cue { at, command })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood_and_others_are_named() {
        let v4 = Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 9]);
        for (text, want) in [
            ("status REM_ABORT_ERR", Command::Status(16)),
            ("status 21", Command::Status(21)),
            ("down mlx5_0 1", Command::Down("mlx5_0".into(), 1, None)),
            (
                "down mlx5_0 1 500",
                Command::Down("mlx5_0".into(), 1, Some(500)),
            ),
            ("lid a 2 77", Command::Lid("a".into(), 2, 77)),
            ("gid a 1 3 10.0.0.9", Command::Gid("a".into(), 1, 3, v4)),
            ("gid a 1 3 none", Command::Gid("a".into(), 1, 3, None)),
            ("pkey a 1 0 0x8001", Command::Pkey("a".into(), 1, 0, 0x8001)),
            ("event a DEVICE_FATAL", Command::Event("a".into(), 8, None)),
            (
                "event a SM_CHANGE 1",
                Command::Event("a".into(), 13, Some(1)),
            ),
            ("event a QP_FATAL 77", Command::Fail("a".into(), 1, 77)),
            ("full 3", Command::Full(3, 0)),
            ("full 3 5", Command::Full(3, 5)),
            ("stuck 2", Command::Stuck(2)),
            ("gone 2", Command::Gone(2)),
            ("meet 2", Command::Meet(2)),
            ("flush 20", Command::Flush(20)),
        ] {
            assert_eq!(Command::parse(text), Ok(want));
        }
        for text in [
            "status MAYBE",
            "event a PARTY",
            "event a QP_PARTY 7",
            "event a QP_FATAL",
            "down mlx5_0",
            "lid a 1 x",
            "explode",
            "",
        ] {
            assert!(Command::parse(text).is_err(), "{text}");
        }
        let all = cues("3:full 1; 9:status 12;").unwrap();
        assert_eq!((all[0].at, all[1].at), (3, 9));
        assert!(cues("soon:full 1").is_err());
    }
}
