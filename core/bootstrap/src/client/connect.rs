//! Reaching the rendezvous and being let in.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::protocol::{Frame, FrameParser, HEADER_BYTES, Hello};
use crate::{Error, Result};

/// Pause between attempts to connect: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// Why an attempt to join did not succeed.
enum Attempt {
    /// Worth another.
    Failed(std::io::Error),
    /// The rendezvous said no.
    Refused(String),
    /// What answered does not speak this protocol.
    Foreign(Error),
}

impl Attempt {
    /// The more telling of two: an answer counts more than none, the later failure more than the
    /// earlier.
    fn or(self, next: Attempt) -> Attempt {
        match (&self, &next) {
            (Attempt::Refused(_), Attempt::Failed(_) | Attempt::Foreign(_))
            | (Attempt::Foreign(_), Attempt::Failed(_)) => self,
            _ => next,
        }
    }
}

/// `address` may be several, between commas: they are tried in turn.
pub(super) fn connect(address: &str, hello: Hello, deadline: Duration) -> Result<TcpStream> {
    let start = Instant::now();
    let mut pause = RETRY.0;
    loop {
        let left = deadline.saturating_sub(start.elapsed());
        let failure = match attempt(address, hello, left.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(Attempt::Refused(reason)) => {
                let address = address.to_owned();
                return Err(Error::Refused {
                    rank: hello.rank,
                    address,
                    reason,
                });
            }
            Err(Attempt::Foreign(error)) => return Err(error),
            Err(Attempt::Failed(failure)) => failure,
        };
        let waited = start.elapsed();
        if waited + pause > deadline {
            let (rank, address) = (hello.rank, address.to_owned());
            return Err(Error::Connect {
                rank,
                address,
                waited,
                source: failure,
            });
        }
        // Nothing tells when a port begins to listen: ask again, ever less often.
        std::thread::sleep(pause);
        pause = (pause * 2).min(RETRY.1);
    }
}

fn attempt(address: &str, hello: Hello, left: Duration) -> std::result::Result<TcpStream, Attempt> {
    let mut failure = Attempt::Failed(std::io::Error::new(
        ErrorKind::NotFound,
        "the name has no address",
    ));
    let several = address.contains(',');
    for address in address.split(',') {
        let targets = match address.to_socket_addrs() {
            Ok(targets) => targets,
            Err(error) => {
                failure = failure.or(Attempt::Failed(error));
                continue;
            }
        };
        for target in targets {
            let next = match TcpStream::connect_timeout(&target, left.min(Duration::from_secs(5))) {
                Ok(stream) if is_own_end(&stream) => Attempt::Failed(std::io::Error::new(
                    ErrorKind::ConnectionRefused,
                    "nothing listens there (the connection met its own end)",
                )),
                Ok(stream) => match introduce(stream, hello, left) {
                    // One of several addresses may be another host's to whoever reads it here.
                    Err(next) if several => next,
                    result => return result,
                },
                Err(error) => Attempt::Failed(error),
            };
            failure = failure.or(next);
        }
    }
    Err(failure)
}

/// Whether a connection's ends are one. While nothing listens on a port of the range that the kernel
/// takes clients' ports from, a client on that host may get the port itself, and TCP then connects
/// it to itself.
fn is_own_end(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(own), Ok(other)) if own == other)
}

/// Says hello and reads exactly the answer's bytes.
fn introduce(
    mut stream: TcpStream,
    hello: Hello,
    left: Duration,
) -> std::result::Result<TcpStream, Attempt> {
    let answer = (|| {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(left))?;
        stream.write_all(&hello.encode())?;
        let mut header = [0; HEADER_BYTES];
        stream.read_exact(&mut header)?;
        let [a, b, c, d, _] = header;
        let length = u32::from_le_bytes([a, b, c, d]);
        let mut bytes = header.to_vec();
        // A welcome is empty and a refusal short; what announces more is neither.
        (&stream)
            .take(length.min(8192).into())
            .read_to_end(&mut bytes)?;
        stream.set_read_timeout(None)?;
        Ok(bytes)
    })();
    let bytes: Vec<u8> = answer.map_err(Attempt::Failed)?;
    let mut parser = FrameParser::default();
    parser.push(&bytes);
    match parser.next() {
        Ok(Some(Frame::Welcome)) => Ok(stream),
        Ok(Some(Frame::Refusal(why))) => Err(Attempt::Refused(why)),
        Ok(_) => Err(Attempt::Foreign(Error::Protocol {
            what: "no answer to the hello".into(),
        })),
        Err(error) => Err(Attempt::Foreign(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

    use super::*;

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
