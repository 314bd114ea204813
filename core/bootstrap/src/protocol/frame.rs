//! Frames between a PE and the rendezvous: their kinds, and their bytes.

use std::time::Duration;

use super::hello::{Nonce, Proof};
use super::{packed, waits};
use crate::codec::{Reader, Writer, malformed};
use crate::error::Result;
use crate::fault::Fault;
use crate::waits::Waiting;

/// Bytes before a frame's body.
pub(crate) const HEADER_BYTES: usize = 5;

/// A collective call's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Barrier,
    Allgather,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Barrier => "barrier",
            Kind::Allgather => "allgather",
        }
    }
}

/// The receiver of a message within its PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The user's message handler.
    User,
    /// The exchange of descriptors.
    Descriptors,
}

/// One frame, either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Hub: its nonce, and its proof that it knows the job's key.
    Challenge { nonce: Nonce, proof: Proof },
    /// Hub: the PE's proof is accepted.
    Welcome,
    /// Hub: the PE is not accepted, and why.
    Refusal(String),
    /// PE: enters a collective call.
    Enter {
        sequence: u64,
        kind: Kind,
        deadline: Duration,
        bytes: Vec<u8>,
    },
    /// Hub: all have entered; every rank's bytes (none for a barrier).
    Complete { sequence: u64, parts: Vec<Vec<u8>> },
    /// Hub: the collective call fails.
    Failed { sequence: u64, fault: Fault },
    /// PE: bytes for a rank. Hub: bytes from a rank.
    Message {
        rank: u32,
        channel: Channel,
        bytes: Vec<u8>,
    },
    /// PE: end the job. Hub: the job ends.
    Abort { by: u32, status: i32, why: String },
    /// PE: goodbye.
    Leave,
    /// PE: from here on its end counts as a goodbye, or does not.
    Rest { may_end: bool },
    /// Hub: a rank left or died.
    Exit { rank: u32, orderly: bool },
    /// Hub: asks for the PE's waits.
    Ask { question: u32 },
    /// PE: its waits, the answer to that question.
    Waits { question: u32, waits: Vec<Waiting> },
    /// PE: one of its waits lasts.
    Hangs,
}

impl Frame {
    /// The frame's bytes, header included. Callers check sizes first; a body is never cut.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let body_hint = match self {
            Frame::Enter { bytes, .. } | Frame::Message { bytes, .. } => bytes.len() + 32,
            Frame::Complete { parts, .. } => {
                parts.iter().map(|part| part.len() + 4).sum::<usize>() + 16
            }
            _ => 64,
        };
        let mut frame = Vec::with_capacity(HEADER_BYTES + body_hint);
        let mut to = Writer(&mut frame);
        to.u32(0);
        match self {
            Frame::Challenge { nonce, proof } => to.u8(12).raw(nonce).raw(proof),
            Frame::Welcome => to.u8(1),
            Frame::Refusal(why) => to.u8(2).words(why),
            Frame::Enter {
                sequence,
                kind,
                deadline,
                bytes,
            } => {
                let kind = match kind {
                    Kind::Barrier => 0,
                    Kind::Allgather => 1,
                };
                to.u8(3)
                    .u64(*sequence)
                    .u8(kind)
                    .duration(*deadline)
                    .raw(bytes)
            }
            Frame::Complete { sequence, parts } => {
                to.u8(4).u64(*sequence);
                let at = to.0.len();
                for part in parts {
                    to.bytes(part);
                }
                if let Some(packed) = packed::pack(&to.0[at..]) {
                    *to.0 = Vec::with_capacity(HEADER_BYTES + packed.len() + 8);
                    to.u32(0).u8(10).u64(*sequence).raw(&packed);
                }
                &mut to
            }
            Frame::Failed { sequence, fault } => {
                to.u8(5).u64(*sequence);
                encode_fault(&mut to, fault);
                &mut to
            }
            Frame::Message {
                rank,
                channel,
                bytes,
            } => {
                let channel = match channel {
                    Channel::User => 0,
                    Channel::Descriptors => 1,
                };
                to.u8(6).u32(*rank).u8(channel).raw(bytes)
            }
            Frame::Abort { by, status, why } => to.u8(7).u32(*by).i32(*status).words(why),
            Frame::Leave => to.u8(8),
            Frame::Rest { may_end } => to.u8(11).flag(*may_end),
            Frame::Exit { rank, orderly } => to.u8(9).u32(*rank).flag(*orderly),
            Frame::Ask { question } => to.u8(15).u32(*question),
            Frame::Waits { question, waits } => {
                to.u8(13).u32(*question);
                waits::encode(&mut to, waits);
                &mut to
            }
            Frame::Hangs => to.u8(14),
        };
        let body = u32::try_from(frame.len() - HEADER_BYTES).unwrap_or(u32::MAX);
        frame[..4].copy_from_slice(&body.to_le_bytes());
        frame
    }

    /// Whether this encoded frame is the answer to a collective call.
    pub(crate) fn is_answer(frame: &[u8]) -> bool {
        matches!(frame.get(HEADER_BYTES - 1), Some(4 | 5 | 10))
    }

    /// The frame of this kind and body.
    pub(super) fn decode(kind: u8, body: &[u8]) -> Result<Frame> {
        let mut from = Reader(body);
        let frame = match kind {
            12 => Frame::Challenge {
                nonce: from.array()?,
                proof: from.array()?,
            },
            1 => Frame::Welcome,
            2 => Frame::Refusal(from.words()?),
            3 => Frame::Enter {
                sequence: from.u64()?,
                kind: match from.u8()? {
                    0 => Kind::Barrier,
                    1 => Kind::Allgather,
                    other => return Err(malformed("collective kind", other)),
                },
                deadline: from.duration()?,
                bytes: from.rest().to_vec(),
            },
            4 => Frame::Complete {
                sequence: from.u64()?,
                parts: decode_parts(&mut from)?,
            },
            10 => {
                let sequence = from.u64()?;
                let plain = packed::unpack(from.rest())?;
                let parts = decode_parts(&mut Reader(&plain))?;
                Frame::Complete { sequence, parts }
            }
            5 => Frame::Failed {
                sequence: from.u64()?,
                fault: decode_fault(&mut from)?,
            },
            6 => Frame::Message {
                rank: from.u32()?,
                channel: match from.u8()? {
                    0 => Channel::User,
                    1 => Channel::Descriptors,
                    other => return Err(malformed("channel", other)),
                },
                bytes: from.rest().to_vec(),
            },
            7 => Frame::Abort {
                by: from.u32()?,
                status: from.i32()?,
                why: from.words()?,
            },
            8 => Frame::Leave,
            11 => Frame::Rest {
                may_end: from.flag()?,
            },
            9 => Frame::Exit {
                rank: from.u32()?,
                orderly: from.flag()?,
            },
            15 => Frame::Ask {
                question: from.u32()?,
            },
            13 => Frame::Waits {
                question: from.u32()?,
                waits: waits::decode(&mut from)?,
            },
            14 => Frame::Hangs,
            other => return Err(malformed("frame kind", other)),
        };
        from.end()?;
        Ok(frame)
    }
}

/// Every rank's bytes of an allgather.
fn decode_parts(from: &mut Reader<'_>) -> Result<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    while !from.is_empty() {
        parts.push(from.bytes()?.to_vec());
    }
    Ok(parts)
}

fn encode_fault(to: &mut Writer<'_>, fault: &Fault) {
    match fault {
        Fault::Missing { ranks, waited } => {
            to.u8(0).duration(*waited);
            for rank in ranks {
                to.u32(*rank);
            }
        }
        Fault::Gone { rank, orderly } => {
            to.u8(1).u32(*rank).flag(*orderly);
        }
        Fault::Mismatch { what } => {
            to.u8(2).words(what);
        }
        Fault::HubLost { why } => {
            to.u8(3).words(why);
        }
        Fault::Aborted { by, status, why } => {
            to.u8(4).u32(*by).i32(*status).words(why);
        }
    }
}

fn decode_fault(from: &mut Reader<'_>) -> Result<Fault> {
    Ok(match from.u8()? {
        0 => {
            let waited = from.duration()?;
            let mut ranks = Vec::new();
            while !from.is_empty() {
                ranks.push(from.u32()?);
            }
            Fault::Missing { ranks, waited }
        }
        1 => Fault::Gone {
            rank: from.u32()?,
            orderly: from.flag()?,
        },
        2 => Fault::Mismatch {
            what: from.words()?,
        },
        3 => Fault::HubLost { why: from.words()? },
        4 => Fault::Aborted {
            by: from.u32()?,
            status: from.i32()?,
            why: from.words()?,
        },
        other => return Err(malformed("fault", other)),
    })
}

/// Whether frames of this kind come from PEs.
pub(super) fn is_sent_by_pes(kind: u8) -> bool {
    matches!(kind, 3 | 6 | 7 | 8 | 11 | 13 | 14)
}
