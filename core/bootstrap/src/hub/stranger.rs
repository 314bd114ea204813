//! Connections that have yet to say who they are.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::protocol::{BadHello, Frame, HELLO_BYTES, Hello, version_refusal};
use crate::report;

/// How long a connection may take to say its hello.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection that has not said its whole hello. No more is read from it than that.
#[derive(Debug)]
pub(super) struct Stranger {
    pub(super) stream: TcpStream,
    until: Instant,
    bytes: [u8; HELLO_BYTES],
    filled: usize,
}

/// What a stranger turned out to be.
#[derive(Debug)]
pub(super) enum Identity {
    /// Not known yet.
    Unknown,
    /// One to drop without a word.
    Nobody,
    /// A PE of another version: to be refused with these words.
    Refused(String),
    /// One that says it is this PE.
    Pe(Hello),
}

impl Stranger {
    pub(super) fn new(stream: TcpStream, now: Instant) -> Stranger {
        Stranger {
            stream,
            until: now + PATIENCE,
            bytes: [0; HELLO_BYTES],
            filled: 0,
        }
    }

    /// When to drop it if it has not spoken.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Whether nothing has been heard from it.
    pub(super) fn is_silent(&self) -> bool {
        self.filled == 0
    }

    /// Reads what has come.
    pub(super) fn listen(&mut self) -> Identity {
        while self.filled < HELLO_BYTES {
            match self.stream.read(&mut self.bytes[self.filled..]) {
                Ok(0) => return Identity::Nobody,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let plausible = Hello::may_begin(&self.bytes[..self.filled.min(8)]);
                    return if plausible {
                        Identity::Unknown
                    } else {
                        Identity::Nobody
                    };
                }
                Err(_) => return Identity::Nobody,
            }
        }
        match Hello::decode(&self.bytes) {
            Ok(hello) => Identity::Pe(hello),
            Err(BadHello::Stranger) => Identity::Nobody,
            Err(BadHello::Version(theirs)) => Identity::Refused(version_refusal(theirs)),
        }
    }

    /// Lets one in that will say no more.
    pub(super) fn welcome(mut self) -> Option<TcpStream> {
        // A new connection's send buffer holds this; if not, the other end is in worse trouble.
        self.stream.write_all(&Frame::Welcome.encode()).ok()?;
        Some(self.stream)
    }

    /// Says why it may not join, and hangs up.
    pub(super) fn refuse(mut self, why: String) {
        let peer = self
            .stream
            .peer_addr()
            .map_or_else(|_| "unknown".into(), |peer| peer.to_string());
        report::warn(&format!("refused a connection from {peer}: {why}"));
        // A new connection's send buffer holds this; if not, the other end is in worse trouble.
        let _ = self.stream.write_all(&Frame::Refusal(why).encode());
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
