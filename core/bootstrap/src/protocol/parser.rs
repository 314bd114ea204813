//! A stream's bytes, cut into frames.
//!
//! Lengths are checked before anything is stored, and memory grows with the bytes that come, never with the length that is
//! announced.

use super::frame::{Frame, HEADER_BYTES, is_sent_by_pes};
use crate::error::{Error, Result};
use crate::limits::{MAX_BODY, MAX_MESSAGE_BYTES, gathered_share};

/// Bytes of a PE's frame beside those that it carries, at most.
const FIELD_BYTES: usize = 32;

/// Cuts a stream of bytes into frames.
#[derive(Debug)]
pub(crate) struct FrameParser {
    pub(super) bytes: Vec<u8>,
    parsed: usize,
    /// The longest body taken.
    limit: usize,
    /// Whether a PE sends the stream: frames that only the rendezvous sends are then refused by their headers.
    of_pe: bool,
}

/// A parser of the rendezvous' stream.
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
    /// A parser of the stream of one of so many PEs.
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
