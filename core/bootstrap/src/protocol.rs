//! The bytes between a PE and the job's rendezvous.
//!
//! A PE opens with a [`Hello`] of fixed size. Both sides then prove that they know the job's key (see
//! `handshake`); until then nothing longer than a proof is read from it. From then on both sides
//! exchange frames: a length (u32, little endian, of the body), a kind (u8), the
//! body. Lengths are checked before anything is stored, and memory grows with the bytes that come,
//! never with the length that is announced.

mod packed;
#[cfg(test)]
mod tests;
mod waits;

use std::time::Duration;

use crate::fault::Fault;
use crate::handshake::{NONCE_BYTES, Nonce, Proof};
use crate::job_key::JobKey;
use crate::waits::Waiting;
use crate::{Error, Result};

/// Bytes that all ranks together may give to one allgather.
pub const MAX_GATHERED_BYTES: usize = 64 << 20;
/// Bytes that one message may have.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// What each of so many ranks may give to one allgather.
pub(crate) fn gathered_share(ranks: usize) -> usize {
    MAX_GATHERED_BYTES / ranks
}

/// Refuses more bytes than a call takes.
pub(crate) fn check_bytes(operation: &'static str, bytes: usize, limit: usize) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::TooLarge {
        operation,
        bytes,
        limit,
    })
}

/// Bytes of a reason given in words.
pub(crate) const MAX_WORDS: usize = 4096;
/// The longest body: a whole allgather's result and its table of lengths.
pub(crate) const MAX_BODY: usize = MAX_GATHERED_BYTES + (4 << 20);
/// Most PEs in a job: bounds what a hello can make the rendezvous store.
pub(crate) const MAX_PES: u32 = 1 << 16;

/// The rank of one that joins no job and only watches over it: a host's agent, which finds out so
/// where the rendezvous is, and later that it is gone.
pub(crate) const WATCHER: u32 = u32::MAX;

const MAGIC: [u8; 8] = *b"\x89OXSHMEM";
const VERSION: u32 = 4;
/// Bytes of a hello.
pub(crate) const HELLO_BYTES: usize = 8 + 4 + 4 + 4 + NONCE_BYTES;
/// Bytes of a PE's frame beside those that it carries, at most.
const FIELD_BYTES: usize = 32;
/// Bytes before a frame's body.
pub(crate) const HEADER_BYTES: usize = 5;

/// A PE's place in its job, and the job's key. The key is never sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) key: JobKey,
}

/// The place that a hello claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

/// Why the first bytes of a connection are no acceptable hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHello {
    /// Not this protocol at all: not worth an answer.
    Stranger,
    /// This protocol, in another version.
    Version(u32),
}

impl Hello {
    /// The bytes that open a connection.
    pub(crate) fn encode(&self, nonce: &Nonce) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.rank.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.size.to_le_bytes());
        bytes[20..].copy_from_slice(nonce);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HELLO_BYTES]) -> std::result::Result<Claim, BadHello> {
        if !Hello::may_begin(bytes) {
            return Err(BadHello::Stranger);
        }
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let version = word(8);
        if version != VERSION {
            return Err(BadHello::Version(version));
        }
        Ok(Claim {
            rank: word(12),
            size: word(16),
        })
    }

    /// Whether a hello may begin with these bytes, however few.
    pub(crate) fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic)
    }
}

/// What to tell a PE of another version.
pub(crate) fn version_refusal(theirs: u32) -> String {
    format!(
        "it speaks version {theirs} of the bootstrap protocol and the rendezvous version \
         {VERSION}; build all of the job's programs and its launcher with one version of oxshmem"
    )
}

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

/// Who a message is for within its PE.
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
    /// PE: its end is as good as a goodbye from here on, or not.
    Rest { may_end: bool },
    /// Hub: a rank left or died.
    Exit { rank: u32, orderly: bool },
    /// Hub: say for what you wait.
    Ask { question: u32 },
    /// PE: its waits, as it was asked.
    Waits { question: u32, waits: Vec<Waiting> },
    /// PE: a wait of it lasts.
    Hangs,
}

/// Appends little-endian fields to a frame.
struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
    fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
    fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.0.extend_from_slice(value);
        self
    }
    fn words(&mut self, text: &str) -> &mut Self {
        let mut end = text.len().min(MAX_WORDS);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.bytes(&text.as_bytes()[..end])
    }
    fn duration(&mut self, value: Duration) -> &mut Self {
        self.u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Takes fields from the front of a body.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| Error::Protocol {
                what: format!("a frame that ends {} bytes too early", count - self.0.len()),
            })?;
        self.0 = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }
    fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(malformed("flag", other)),
        }
    }
    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    fn duration(&mut self) -> Result<Duration> {
        Ok(Duration::from_millis(self.u64()?))
    }
    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
    fn words(&mut self) -> Result<String> {
        let bytes = self.rest();
        if bytes.len() > MAX_WORDS {
            return Err(Error::Protocol {
                what: format!("a reason of {} bytes", bytes.len()),
            });
        }
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
    fn end(&self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Error::Protocol {
            what: format!("a frame with {} bytes too many", self.0.len()),
        })
    }
}

fn malformed(field: &str, value: u8) -> Error {
    Error::Protocol {
        what: format!("a {field} of {value}"),
    }
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
        let mut to = Writer(Vec::with_capacity(HEADER_BYTES + body_hint));
        to.u32(0);
        match self {
            Frame::Challenge { nonce, proof } => to.u8(12).bytes(nonce).bytes(proof),
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
                    .bytes(bytes)
            }
            Frame::Complete { sequence, parts } => {
                to.u8(4).u64(*sequence);
                let at = to.0.len();
                for part in parts {
                    to.u32(u32::try_from(part.len()).unwrap_or(u32::MAX))
                        .bytes(part);
                }
                if let Some(packed) = packed::pack(&to.0[at..]) {
                    to = Writer(Vec::with_capacity(HEADER_BYTES + packed.len() + 8));
                    to.u32(0).u8(10).u64(*sequence).bytes(&packed);
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
                to.u8(6).u32(*rank).u8(channel).bytes(bytes)
            }
            Frame::Abort { by, status, why } => {
                to.u8(7).u32(*by).bytes(&status.to_le_bytes()).words(why)
            }
            Frame::Leave => to.u8(8),
            Frame::Rest { may_end } => to.u8(11).u8(u8::from(*may_end)),
            Frame::Exit { rank, orderly } => to.u8(9).u32(*rank).u8(u8::from(*orderly)),
            Frame::Ask { question } => to.u8(15).u32(*question),
            Frame::Waits { question, waits } => {
                to.u8(13).u32(*question);
                waits::encode(&mut to, waits);
                &mut to
            }
            Frame::Hangs => to.u8(14),
        };
        let mut frame = to.0;
        let body = u32::try_from(frame.len() - HEADER_BYTES).unwrap_or(u32::MAX);
        frame[..4].copy_from_slice(&body.to_le_bytes());
        frame
    }

    /// Whether this encoded frame is the answer to a collective call.
    pub(crate) fn is_answer(frame: &[u8]) -> bool {
        matches!(frame.get(HEADER_BYTES - 1), Some(4 | 5 | 10))
    }

    /// The frame of this kind and body.
    fn decode(kind: u8, body: &[u8]) -> Result<Frame> {
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
                status: i32::from_le_bytes(from.array()?),
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
    while !from.0.is_empty() {
        let length = from.u32()?;
        parts.push(from.take(length as usize)?.to_vec());
    }
    Ok(parts)
}

fn encode_fault(to: &mut Writer, fault: &Fault) {
    match fault {
        Fault::Missing { ranks, waited } => {
            to.u8(0).duration(*waited);
            for rank in ranks {
                to.u32(*rank);
            }
        }
        Fault::Gone { rank, orderly } => {
            to.u8(1).u32(*rank).u8(u8::from(*orderly));
        }
        Fault::Mismatch { what } => {
            to.u8(2).words(what);
        }
        Fault::HubLost { why } => {
            to.u8(3).words(why);
        }
        Fault::Aborted { by, status, why } => {
            to.u8(4).u32(*by).bytes(&status.to_le_bytes()).words(why);
        }
    }
}

fn decode_fault(from: &mut Reader<'_>) -> Result<Fault> {
    Ok(match from.u8()? {
        0 => {
            let waited = from.duration()?;
            let mut ranks = Vec::new();
            while !from.0.is_empty() {
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
            status: i32::from_le_bytes(from.array()?),
            why: from.words()?,
        },
        other => return Err(malformed("fault", other)),
    })
}

/// Whether frames of this kind come from PEs.
fn is_sent_by_pes(kind: u8) -> bool {
    matches!(kind, 3 | 6 | 7 | 8 | 11 | 13 | 14)
}

/// Cuts a stream of bytes into frames.
#[derive(Debug)]
pub(crate) struct FrameParser {
    bytes: Vec<u8>,
    parsed: usize,
    /// The longest body taken.
    limit: usize,
    /// Whether a PE sends the stream: frames that only the rendezvous sends are then refused by their headers.
    of_pe: bool,
}

/// For what the rendezvous sends.
impl Default for FrameParser {
    fn default() -> FrameParser {
        FrameParser {
            bytes: Vec::new(),
            parsed: 0,
            limit: MAX_BODY,
            of_pe: false,
        }
    }
}

impl FrameParser {
    /// For what a PE of so many sends.
    pub(crate) fn of_pe(size: usize) -> FrameParser {
        FrameParser {
            limit: MAX_MESSAGE_BYTES.max(gathered_share(size)) + FIELD_BYTES,
            of_pe: true,
            ..FrameParser::default()
        }
    }

    /// Takes more of the stream's bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.parsed > 0 {
            self.bytes.drain(..self.parsed);
            self.parsed = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, if it has come. After an error the stream is unusable.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>> {
        let pending = &self.bytes[self.parsed..];
        let Some((header, rest)) = pending.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [a, b, c, d, kind] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            return Err(Error::Protocol {
                what: format!("a frame that announces {length} bytes"),
            });
        }
        if self.of_pe && !is_sent_by_pes(kind) {
            return Err(Error::Protocol {
                what: format!("a frame of kind {kind}, which no PE sends"),
            });
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame::decode(kind, body)?;
        self.parsed += HEADER_BYTES + length;
        if self.parsed == self.bytes.len() {
            self.parsed = 0;
            self.bytes.clear();
            // A large frame's memory is not kept for the small ones that follow.
            self.bytes.shrink_to(64 << 10);
        }
        Ok(Some(frame))
    }
}
