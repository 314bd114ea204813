//! Reaching the rendezvous and being let in.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::handshake::{self, PROOF_BYTES, Proof, Role};
use crate::protocol::{Frame, FrameParser, HEADER_BYTES, Hello, MAX_WORDS};
use crate::{Error, Result};

/// Pause between attempts to connect: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// How long each of several addresses may take to answer at the first attempt; at each further one it is twice as long.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a route may take to come, where this host's network is being set up.
const ROUTE_PATIENCE: Duration = Duration::from_secs(2);

/// The words in place of a proof to a listener that has failed to prove itself.
const NO_PROOF: Proof = [0; PROOF_BYTES];

/// Whether the rendezvous listens when its address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listens {
    /// The rendezvous listens until all PEs have joined: a refused connection will not be taken later.
    Already,
    /// It may begin later.
    Later,
}

/// Why an attempt to join did not succeed.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// This host has no route there: worth another for a moment only.
    NoRoute(std::io::Error),
    /// Worth another.
    Failed(std::io::Error),
    /// The rendezvous, which has proven itself, said no.
    Refused(String),
    /// The listener does not know the job's key.
    Unproven,
    /// The listener does not speak this protocol.
    Foreign(Error),
}

impl Attempt {
    /// The more telling of two: an answer counts more than none, the later failure more than the
    /// earlier.
    fn or(self, next: Attempt) -> Attempt {
        match self.weight() > next.weight() {
            true => self,
            false => next,
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Attempt::NoRoute(_) => 0,
            Attempt::Failed(_) => 1,
            Attempt::Unproven | Attempt::Foreign(_) => 2,
            Attempt::Refused(_) => 3,
        }
    }

    fn of(error: std::io::Error) -> Attempt {
        match error.kind() {
            ErrorKind::NetworkUnreachable => Attempt::NoRoute(error),
            _ => Attempt::Failed(error),
        }
    }

    fn explain(self, rank: u32, address: &str, waited: Duration) -> Error {
        let address = address.to_owned();
        match self {
            Attempt::Refused(reason) => Error::Refused {
                rank,
                address,
                reason,
            },
            Attempt::Unproven => Error::Unproven { rank, address },
            Attempt::Foreign(error) => error,
            Attempt::NoRoute(source) => Error::NoRoute {
                rank,
                address,
                source,
            },
            Attempt::Failed(source) => Error::Connect {
                rank,
                address,
                waited,
                source,
            },
        }
    }
}

/// `address` may be several, between commas: they are tried in turn.
pub(super) fn connect(
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
            Attempt::Refused(_) => true,
            // Another address may be the rendezvous', and not have answered for now.
            Attempt::Unproven | Attempt::Foreign(_) => !several,
            Attempt::NoRoute(_) => waited >= ROUTE_PATIENCE,
            Attempt::Failed(error) => {
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
) -> std::result::Result<TcpStream, Attempt> {
    let mut failure: Option<Attempt> = None;
    let mut fail = |next: Attempt| {
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
                fail(Attempt::Failed(error));
                continue;
            }
        };
        for target in targets {
            let next = match TcpStream::connect_timeout(&target, limit.min(ANSWER)) {
                Ok(stream) if is_own_end(&stream) => Attempt::Failed(std::io::Error::new(
                    ErrorKind::ConnectionRefused,
                    "nothing listens there (the connection met its own end)",
                )),
                Ok(stream) => match introduce(
                    &stream,
                    hello,
                    limit,
                    limit.max(end.saturating_duration_since(Instant::now())),
                ) {
                    Ok(()) => return Ok(stream),
                    Err(next @ Attempt::Refused(_)) => return Err(next),
                    // One of several addresses may be another host's to whoever reads it here.
                    Err(next) if several => next,
                    Err(next) => return Err(next),
                },
                Err(error) => Attempt::of(error),
            };
            fail(next);
        }
    }
    Err(failure.unwrap_or_else(|| {
        let words = "the name has no address";
        Attempt::Failed(std::io::Error::new(ErrorKind::NotFound, words))
    }))
}

/// Whether a connection's ends are one. While nothing listens on a port of the range that the kernel
/// takes clients' ports from, a client on that host may get the port itself, and TCP then connects
/// it to itself.
fn is_own_end(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(own), Ok(other)) if own == other)
}

/// Says hello, has the rendezvous prove that it knows the job's key, proves the same, and hears whether this
/// PE is let in. The rendezvous' proof has to come within
/// `answer`, its word on this PE's within `welcome`, both from the call on.
pub(crate) fn introduce(
    stream: &TcpStream,
    hello: Hello,
    answer: Duration,
    welcome: Duration,
) -> std::result::Result<(), Attempt> {
    let start = Instant::now();
    let nonce = handshake::nonce().map_err(Attempt::Foreign)?;
    let opening = hello.encode(&nonce);
    stream.set_nodelay(true).map_err(Attempt::Failed)?;
    say(stream, &opening)?;
    let (nonce, proof) = match hear(stream, start + answer)? {
        Frame::Challenge { nonce, proof } => (nonce, proof),
        // Anybody may say so.
        Frame::Refusal(why) => return Err(foreign(format!("an unproven refusal: {why:?}"))),
        _ => return Err(foreign("no answer to the hello".to_owned())),
    };
    if !handshake::is_proven(&hello.key, Role::Rendezvous, &opening, &nonce, &proof) {
        // No proof of anything: the rendezvous, if this is one, tells its user of the other key.
        say(stream, &NO_PROOF)?;
        return Err(Attempt::Unproven);
    }
    say(
        stream,
        &handshake::prove(&hello.key, Role::Pe, &opening, &nonce),
    )?;
    // This is the rendezvous, and takes a PE once: another attempt would be one PE too many.
    match hear(stream, start + welcome)? {
        Frame::Welcome => Ok(stream.set_read_timeout(None).map_err(Attempt::Failed)?),
        Frame::Refusal(why) => Err(Attempt::Refused(why)),
        _ => Err(foreign("no answer to the proof".to_owned())),
    }
}

fn foreign(what: String) -> Attempt {
    Attempt::Foreign(Error::Protocol { what })
}

fn say(mut stream: &TcpStream, bytes: &[u8]) -> std::result::Result<(), Attempt> {
    stream.write_all(bytes).map_err(Attempt::Failed)
}

/// Reads one short frame, and nothing beyond it.
fn hear(stream: &TcpStream, end: Instant) -> std::result::Result<Frame, Attempt> {
    let mut parser = FrameParser::default();
    let mut header = [0; HEADER_BYTES];
    hear_exactly(stream, &mut header, end)?;
    parser.push(&header);
    let [a, b, c, d, _] = header;
    // Refusals are the longest; an announcement of more is none of these frames.
    let length = (u32::from_le_bytes([a, b, c, d]) as usize).min(MAX_WORDS);
    let mut body = vec![0; length];
    hear_exactly(stream, &mut body, end)?;
    parser.push(&body);
    match parser.next() {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(foreign("an answer that is too long".to_owned())),
        Err(error) => Err(Attempt::Foreign(error)),
    }
}

/// Fills `bytes` from the stream until `end`, however slowly they come.
fn hear_exactly(
    mut stream: &TcpStream,
    mut bytes: &mut [u8],
    end: Instant,
) -> std::result::Result<(), Attempt> {
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        let count = match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => stream
                .set_read_timeout(Some(left))
                .and_then(|()| stream.read(bytes)),
        };
        match count {
            Ok(0) => {
                let why = "it took the connection and closed it before an answer";
                return Err(Attempt::Failed(std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    why,
                )));
            }
            Ok(count) => bytes = bytes.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let why = "something listens there and does not answer; it is another program, or \
                           is kept busy by connections of strangers";
                return Err(Attempt::Failed(std::io::Error::new(
                    ErrorKind::TimedOut,
                    why,
                )));
            }
            Err(error) => return Err(Attempt::Failed(error)),
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
        let failed = |kind: ErrorKind| Attempt::of(kind.into());
        let (refused, away) = (ErrorKind::ConnectionRefused, ErrorKind::NetworkUnreachable);
        for (one, other, none) in [
            (away, away, true),
            (away, refused, false),
            (refused, away, false),
        ] {
            let both = failed(one).or(failed(other));
            assert_eq!(matches!(both, Attempt::NoRoute(_)), none, "{one} {other}");
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
