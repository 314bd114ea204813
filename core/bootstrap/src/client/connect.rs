//! A PE's way into its job: connects to the rendezvous, authenticates, and waits for the welcome.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::handshake::{self, Role};
use crate::limits::MAX_WORDS;
use crate::protocol::frame::{Frame, HEADER_BYTES};
use crate::protocol::hello::{Hello, PROOF_BYTES, Proof};
use crate::protocol::parser::FrameParser;

/// Pause between attempts to connect: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// Time limit for the answer of each of several addresses at the first attempt; at each further one it is twice as long.
const ANSWER: Duration = Duration::from_secs(5);

/// Time limit for a route to appear, as this host's network may still be coming up.
const ROUTE_PATIENCE: Duration = Duration::from_secs(2);

/// The words in place of a proof to a listener that has failed to prove itself.
const NO_PROOF: Proof = [0; PROOF_BYTES];

/// Whether the rendezvous listens already when its address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listens {
    /// The rendezvous listens until all PEs have joined: a refused connection will not be taken later.
    Already,
    /// It may begin later.
    Later,
}

/// The failure of one attempt to join.
#[derive(Debug)]
pub(crate) enum JoinFailure {
    /// This host has no route there: another attempt is worth it for a moment only.
    NoRoute(std::io::Error),
    /// The connection failed: another attempt is worth it.
    Failed(std::io::Error),
    /// The rendezvous, which has proven itself, said no.
    Refused(String),
    /// The listener does not know the job's key.
    Unproven,
    /// The listener does not speak this protocol.
    Foreign(Error),
}

impl JoinFailure {
    /// The more telling of two: an answer counts more than none, the later failure more than the
    /// earlier.
    fn or(self, next: JoinFailure) -> JoinFailure {
        if self.weight() > next.weight() {
            self
        } else {
            next
        }
    }

    fn weight(&self) -> u32 {
        match self {
            JoinFailure::NoRoute(_) => 0,
            JoinFailure::Failed(_) => 1,
            JoinFailure::Unproven | JoinFailure::Foreign(_) => 2,
            JoinFailure::Refused(_) => 3,
        }
    }

    fn of(error: std::io::Error) -> JoinFailure {
        match error.kind() {
            ErrorKind::NetworkUnreachable => JoinFailure::NoRoute(error),
            _ => JoinFailure::Failed(error),
        }
    }

    fn explain(self, rank: u32, address: &str, waited: Duration) -> Error {
        let address = address.to_owned();
        match self {
            JoinFailure::Refused(reason) => Error::Refused {
                rank,
                address,
                reason,
            },
            JoinFailure::Unproven => Error::Unproven { rank, address },
            JoinFailure::Foreign(error) => error,
            JoinFailure::NoRoute(source) => Error::NoRoute {
                rank,
                address,
                source,
            },
            JoinFailure::Failed(source) => Error::Connect {
                rank,
                address,
                waited,
                source,
            },
        }
    }
}

/// Joins the job whose rendezvous is at `address`; several addresses, between commas, are tried in turn.
pub(crate) fn connect(
    address: &str,
    hello: Hello,
    deadline: Duration,
    listens: Listens,
) -> Result<TcpStream> {
    let start = Instant::now();
    let mut pause = RETRY.0;
    let mut answer = ANSWER;
    let several = address.contains(',');
    loop {
        let left = deadline.saturating_sub(start.elapsed());
        let left = left.max(Duration::from_millis(1));
        // One address that takes connections and is silent must not use up the others' time.
        let limit = if several { left.min(answer) } else { left };
        let failure = match attempt(address, hello, limit, start + deadline) {
            Ok(stream) => return Ok(stream),
            Err(failure) => failure,
        };
        let waited = start.elapsed();
        let is_final = match &failure {
            JoinFailure::Refused(_) => true,
            // Another address may be the rendezvous', and answer a later attempt.
            JoinFailure::Unproven | JoinFailure::Foreign(_) => !several,
            JoinFailure::NoRoute(_) => waited >= ROUTE_PATIENCE,
            JoinFailure::Failed(error) => {
                listens == Listens::Already && error.kind() == ErrorKind::ConnectionRefused
            }
        };
        if is_final || waited + pause > deadline {
            return Err(failure.explain(hello.rank, address, waited));
        }
        // Nothing tells when a port begins to listen: ask again, ever less often.
        std::thread::sleep(pause);
        pause = (pause * 2).min(RETRY.1);
        answer = answer.saturating_mul(2);
    }
}

/// Tries each address once. One that takes the connection may be silent for `limit`; after both proofs it has until
/// `end`.
fn attempt(
    address: &str,
    hello: Hello,
    limit: Duration,
    end: Instant,
) -> Result<TcpStream, JoinFailure> {
    let mut failure: Option<JoinFailure> = None;
    let mut fail = |next: JoinFailure| {
        failure = Some(match failure.take() {
            Some(before) => before.or(next),
            None => next,
        });
    };
    let several = address.contains(',');
    for address in address.split(',') {
        let targets = match address.to_socket_addrs() {
            Ok(targets) => targets,
            Err(error) => {
                fail(JoinFailure::Failed(error));
                continue;
            }
        };
        for target in targets {
            let next = match TcpStream::connect_timeout(&target, limit.min(ANSWER)) {
                Ok(stream) if is_own_end(&stream) => JoinFailure::Failed(std::io::Error::new(
                    ErrorKind::ConnectionRefused,
                    "nothing listens there (the connection met its own end)",
                )),
                Ok(stream) => match authenticate(
                    &stream,
                    hello,
                    limit,
                    limit.max(end.saturating_duration_since(Instant::now())),
                ) {
                    Ok(()) => return Ok(stream),
                    Err(next @ JoinFailure::Refused(_)) => return Err(next),
                    // One of several addresses may mean another host here than where it was written.
                    Err(next) if several => next,
                    Err(next) => return Err(next),
                },
                Err(error) => JoinFailure::of(error),
            };
            fail(next);
        }
    }
    Err(failure.unwrap_or_else(|| {
        let words = "the name has no address";
        JoinFailure::Failed(std::io::Error::new(ErrorKind::NotFound, words))
    }))
}

/// Whether a connection's two ends are one. While nothing listens on a port of the range that the kernel
/// takes clients' ports from, a client on that host may get the port itself, and TCP then connects
/// it to itself.
fn is_own_end(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(own), Ok(other)) if own == other)
}

/// Authenticates: says hello, has the rendezvous prove that it knows the job's key, proves the same, and waits for the
/// welcome. The rendezvous' proof has to come within `answer`, its word on this PE's proof within `welcome`, both from the
/// call on.
pub(crate) fn authenticate(
    stream: &TcpStream,
    hello: Hello,
    answer: Duration,
    welcome: Duration,
) -> Result<(), JoinFailure> {
    let start = Instant::now();
    let nonce = handshake::nonce().map_err(JoinFailure::Foreign)?;
    let opening = hello.encode(&nonce);
    stream.set_nodelay(true).map_err(JoinFailure::Failed)?;
    send(stream, &opening)?;
    let (nonce, proof) = match read_frame(stream, start + answer)? {
        Frame::Challenge { nonce, proof } => (nonce, proof),
        // Any listener may send one, so it says nothing about this job.
        Frame::Refusal(why) => return Err(foreign(format!("an unproven refusal: {why:?}"))),
        _ => return Err(foreign("no answer to the hello".to_owned())),
    };
    if !handshake::is_proven(&hello.key, Role::Rendezvous, &opening, &nonce, &proof) {
        // These bytes prove nothing. If the other end is a rendezvous with another key, it warns its user now.
        send(stream, &NO_PROOF)?;
        return Err(JoinFailure::Unproven);
    }
    send(
        stream,
        &handshake::prove(&hello.key, Role::Pe, &opening, &nonce),
    )?;
    // From here on the other end is known to be the rendezvous. It takes each PE once, so a failure is final.
    match read_frame(stream, start + welcome)? {
        Frame::Welcome => Ok(stream.set_read_timeout(None).map_err(JoinFailure::Failed)?),
        Frame::Refusal(why) => Err(JoinFailure::Refused(why)),
        _ => Err(foreign("no answer to the proof".to_owned())),
    }
}

fn foreign(what: String) -> JoinFailure {
    JoinFailure::Foreign(Error::Protocol { what })
}

fn send(mut stream: &TcpStream, bytes: &[u8]) -> Result<(), JoinFailure> {
    stream.write_all(bytes).map_err(JoinFailure::Failed)
}

/// Reads one short frame, and nothing beyond it.
fn read_frame(stream: &TcpStream, end: Instant) -> Result<Frame, JoinFailure> {
    let mut parser = FrameParser::default();
    let mut header = [0; HEADER_BYTES];
    read_exactly(stream, &mut header, end)?;
    parser.push(&header);
    let [a, b, c, d, _] = header;
    // Refusals are the longest; an announcement of more is none of these frames.
    let length = (u32::from_le_bytes([a, b, c, d]) as usize).min(MAX_WORDS);
    let mut body = vec![0; length];
    read_exactly(stream, &mut body, end)?;
    parser.push(&body);
    match parser.next() {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(foreign("an answer that is too long".to_owned())),
        Err(error) => Err(JoinFailure::Foreign(error)),
    }
}

/// Fills `bytes` from the stream until `end`, however slowly they come.
fn read_exactly(
    mut stream: &TcpStream,
    mut bytes: &mut [u8],
    end: Instant,
) -> Result<(), JoinFailure> {
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        let count = if left.is_zero() {
            Err(ErrorKind::TimedOut.into())
        } else {
            stream
                .set_read_timeout(Some(left))
                .and_then(|()| stream.read(bytes))
        };
        match count {
            Ok(0) => {
                let why = "it took the connection and closed it before an answer";
                return Err(JoinFailure::Failed(std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    why,
                )));
            }
            Ok(count) => bytes = bytes.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let why = "something listens there and does not answer; it is another program, or \
                           is kept busy by connections of strangers";
                return Err(JoinFailure::Failed(std::io::Error::new(
                    ErrorKind::TimedOut,
                    why,
                )));
            }
            Err(error) => return Err(JoinFailure::Failed(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

    use super::*;

    #[test]
    fn only_where_no_address_has_a_route_is_there_none() {
        let failed = |kind: ErrorKind| JoinFailure::of(kind.into());
        let (refused, away) = (ErrorKind::ConnectionRefused, ErrorKind::NetworkUnreachable);
        for (one, other, none) in [
            (away, away, true),
            (away, refused, false),
            (refused, away, false),
        ] {
            let both = failed(one).or(failed(other));
            assert_eq!(
                matches!(both, JoinFailure::NoRoute(_)),
                none,
                "{one} {other}"
            );
        }
    }

    #[test]
    fn a_connection_to_itself_is_recognised() {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let stream = TcpStream::from(socket);
        connect(&stream, &stream.local_addr().unwrap()).unwrap();
        assert!(is_own_end(&stream));

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!is_own_end(&stream));
    }
}
