//! Connections that have yet to prove that they are of this job.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::handshake::{self, Nonce, PROOF_BYTES, Proof, Role};
use crate::job_key::JobKey;
use crate::protocol::{BadHello, Claim, Frame, HELLO_BYTES, Hello, version_refusal};

/// How long a connection may take for its hello and its proof.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection that has not proven that it knows the job's key. No more is read from it than its hello
/// and its proof.
#[derive(Debug)]
pub(super) struct Stranger {
    pub(super) stream: TcpStream,
    until: Instant,
    hello: [u8; HELLO_BYTES],
    proof: Proof,
    /// Bytes of the hello and the proof that have come.
    filled: usize,
    /// The place that its whole hello claims, and the nonce that it has been sent.
    challenged: Option<(Claim, Nonce)>,
}

/// What is known of a stranger.
#[derive(Debug)]
pub(super) enum Identity {
    /// Nothing yet.
    Unknown,
    /// One to drop without a word.
    Nobody,
    /// A PE of another version, or one that does not know the key: to be refused with these words.
    Refused(String),
    /// A PE of this job, which claims this place.
    Pe(Claim),
}

impl Stranger {
    pub(super) fn new(stream: TcpStream, now: Instant) -> Stranger {
        Stranger {
            stream,
            until: now + PATIENCE,
            hello: [0; HELLO_BYTES],
            proof: [0; PROOF_BYTES],
            filled: 0,
            challenged: None,
        }
    }

    /// When to drop it if it has not proven itself.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Where it comes from, in words.
    pub(super) fn origin(&self) -> String {
        let peer = self.stream.peer_addr();
        peer.map_or_else(|_| "unknown".into(), |peer| peer.to_string())
    }

    /// Reads what has come, and challenges one whose hello is whole.
    pub(super) fn listen(&mut self, key: &JobKey) -> Identity {
        loop {
            if self.filled >= HELLO_BYTES && self.challenged.is_none() {
                match self.challenge(key) {
                    Ok(challenged) => self.challenged = Some(challenged),
                    Err(identity) => return identity,
                }
            }
            let rest = match self.filled.checked_sub(HELLO_BYTES) {
                None => &mut self.hello[self.filled..],
                Some(proven) => &mut self.proof[proven..],
            };
            if rest.is_empty() {
                return self.judge(key);
            }
            match self.stream.read(rest) {
                Ok(0) => return Identity::Nobody,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let plausible = Hello::may_begin(&self.hello[..self.filled.min(8)]);
                    return if plausible {
                        Identity::Unknown
                    } else {
                        Identity::Nobody
                    };
                }
                Err(_) => return Identity::Nobody,
            }
        }
    }

    /// Answers a whole hello with a nonce and this side's proof.
    fn challenge(&mut self, key: &JobKey) -> Result<(Claim, Nonce), Identity> {
        let claim = Hello::decode(&self.hello).map_err(|bad| match bad {
            BadHello::Stranger => Identity::Nobody,
            BadHello::Version(theirs) => Identity::Refused(version_refusal(theirs)),
        })?;
        let nonce = handshake::nonce().map_err(|_| Identity::Nobody)?;
        let proof = handshake::prove(key, Role::Rendezvous, &self.hello, &nonce);
        let challenge = Frame::Challenge { nonce, proof }.encode();
        // A new connection's send buffer holds this; if not, the other end is in worse trouble.
        let sent = self.stream.write_all(&challenge);
        sent.map_err(|_| Identity::Nobody)?;
        Ok((claim, nonce))
    }

    /// Checks a whole proof.
    fn judge(&self, key: &JobKey) -> Identity {
        match self.challenged {
            Some((claim, nonce))
                if handshake::is_proven(key, Role::Pe, &self.hello, &nonce, &self.proof) =>
            {
                Identity::Pe(claim)
            }
            _ => Identity::Refused(
                "its job key is not this job's; start all PEs with the same OXSHMEM_JOB_KEY, and \
                 check that no other job uses this address and port"
                    .to_owned(),
            ),
        }
    }

    /// Lets one in that will say no more.
    pub(super) fn welcome(mut self) -> Option<TcpStream> {
        // As above.
        self.stream.write_all(&Frame::Welcome.encode()).ok()?;
        Some(self.stream)
    }

    /// Says why it may not join, and hangs up.
    pub(super) fn refuse(mut self, why: String) {
        // As above.
        let _ = self.stream.write_all(&Frame::Refusal(why).encode());
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
