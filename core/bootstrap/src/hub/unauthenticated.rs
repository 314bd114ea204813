//! A connection that has yet to prove that it is of this job.
//!
//! No more is read from it than its hello and its proof, without waiting for either.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::handshake::{self, Role};
use crate::job_key::JobKey;
use crate::protocol::frame::Frame;
use crate::protocol::hello::{
    BadHello, Claim, HELLO_BYTES, Hello, Nonce, PROOF_BYTES, Proof, version_refusal,
};

/// Time limit of a connection for its hello and its proof.
const AUTHENTICATION_LIMIT: Duration = Duration::from_secs(5);

/// A connection that has not proven that it knows the job's key.
#[derive(Debug)]
pub(super) struct Unauthenticated {
    pub(super) stream: TcpStream,
    deadline: Instant,
    hello: [u8; HELLO_BYTES],
    proof: Proof,
    /// Bytes of the hello and the proof received so far.
    filled: usize,
    /// The claim of its whole hello, and the nonce that it has been sent.
    challenged: Option<(Claim, Nonce)>,
}

/// The judgement of a connection.
#[derive(Debug)]
pub(super) enum Verdict {
    /// None yet.
    Pending,
    /// Drop it without a word.
    Drop,
    /// Refuse it with these words: a PE of another version, or one that does not know the key.
    Refuse(String),
    /// A PE of this job, with this claim.
    Pe(Claim),
}

impl Unauthenticated {
    pub(super) fn new(stream: TcpStream, now: Instant) -> Unauthenticated {
        Unauthenticated {
            stream,
            deadline: now + AUTHENTICATION_LIMIT,
            hello: [0; HELLO_BYTES],
            proof: [0; PROOF_BYTES],
            filled: 0,
            challenged: None,
        }
    }

    /// The time at which to drop it if it has not proven itself.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Its address, in words.
    pub(super) fn origin(&self) -> String {
        let peer = self.stream.peer_addr();
        peer.map_or_else(|_| "unknown".into(), |peer| peer.to_string())
    }

    /// Reads without waiting, and challenges the other end once its hello is whole.
    pub(super) fn read(&mut self, key: &JobKey) -> Verdict {
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
                Ok(0) => return Verdict::Drop,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let plausible = Hello::may_begin(&self.hello[..self.filled.min(8)]);
                    return if plausible {
                        Verdict::Pending
                    } else {
                        Verdict::Drop
                    };
                }
                Err(_) => return Verdict::Drop,
            }
        }
    }

    /// Answers a whole hello with a nonce and this side's proof.
    fn challenge(&mut self, key: &JobKey) -> Result<(Claim, Nonce), Verdict> {
        let claim = Hello::decode(&self.hello).map_err(|bad| match bad {
            BadHello::Foreign => Verdict::Drop,
            BadHello::Version(theirs) => Verdict::Refuse(version_refusal(theirs)),
        })?;
        let nonce = handshake::nonce().map_err(|_| Verdict::Drop)?;
        let proof = handshake::prove(key, Role::Rendezvous, &self.hello, &nonce);
        let challenge = Frame::Challenge { nonce, proof }.encode();
        // A new connection's send buffer holds this; if not, the other end is in worse trouble.
        let sent = self.stream.write_all(&challenge);
        sent.map_err(|_| Verdict::Drop)?;
        Ok((claim, nonce))
    }

    /// Checks a whole proof.
    fn judge(&self, key: &JobKey) -> Verdict {
        match self.challenged {
            Some((claim, nonce))
                if handshake::is_proven(key, Role::Pe, &self.hello, &nonce, &self.proof) =>
            {
                Verdict::Pe(claim)
            }
            _ => Verdict::Refuse(
                "its job key is not this job's; start all PEs with the same OXSHMEM_JOB_KEY, and \
                 check that no other job uses this address and port"
                    .to_owned(),
            ),
        }
    }

    /// Welcomes a peer that will say no more.
    pub(super) fn welcome(mut self) -> Option<TcpStream> {
        // The send buffer holds this, as in `challenge`.
        self.stream.write_all(&Frame::Welcome.encode()).ok()?;
        Some(self.stream)
    }

    /// Sends the reason for which it may not join, and hangs up.
    pub(super) fn refuse(mut self, why: String) {
        // The send buffer holds this, as in `challenge`.
        let _ = self.stream.write_all(&Frame::Refusal(why).encode());
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
