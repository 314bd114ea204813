//! The bytes of a PE's waits, which it sends to the rendezvous.

use crate::codec::{Reader, Writer, cut, malformed};
use crate::error::{Error, Result};
use crate::waits::{Awaited, Waiting};

/// Waits in one answer, at most.
const MOST: usize = 16;
/// Bytes of a call's name, and of the words for the event that it waits for, at most.
const MAX_CALL: usize = 64;
const MAX_WHAT: usize = 512;

pub(super) fn encode(to: &mut Writer<'_>, waits: &[Waiting]) {
    for wait in waits.iter().take(MOST) {
        let (kind, rank) = match wait.whom {
            Awaited::Rank(rank) => (0, rank),
            Awaited::Lane(rank) => (1, rank),
            Awaited::Any => (2, 0),
            Awaited::Itself => (3, 0),
        };
        to.duration(wait.lasted).u8(kind).u32(rank);
        text(to, &wait.call, MAX_CALL);
        text(to, &wait.what, MAX_WHAT);
    }
}

fn text(to: &mut Writer<'_>, text: &str, most: usize) {
    to.bytes(cut(text, most).as_bytes());
}

pub(super) fn decode(from: &mut Reader<'_>) -> Result<Vec<Waiting>> {
    let mut waits = Vec::new();
    while !from.is_empty() {
        if waits.len() == MOST {
            return Err(too_much());
        }
        let lasted = from.duration()?;
        let (kind, rank) = (from.u8()?, from.u32()?);
        waits.push(Waiting {
            whom: match kind {
                0 => Awaited::Rank(rank),
                1 => Awaited::Lane(rank),
                2 => Awaited::Any,
                3 => Awaited::Itself,
                other => return Err(malformed("kind of wait", other)),
            },
            call: read_text(from, MAX_CALL)?,
            what: read_text(from, MAX_WHAT)?,
            lasted,
        });
    }
    Ok(waits)
}

fn read_text(from: &mut Reader<'_>, most: usize) -> Result<String> {
    let length = from.u32()? as usize;
    if length > most {
        return Err(too_much());
    }
    let text = String::from_utf8_lossy(from.raw(length)?);
    // A PE's words go to the user's terminal.
    Ok(text.replace(char::is_control, " "))
}

fn too_much() -> Error {
    Error::Protocol {
        what: "more words about a PE's waits than there may be".to_owned(),
    }
}
