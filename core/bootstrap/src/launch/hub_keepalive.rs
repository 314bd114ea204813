//! An agent's connection to the rendezvous, kept alive by the kernel: it finds the rendezvous, and ends with it.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt;

use crate::client::connect::{JoinFailure, authenticate};
use crate::job_key::JobKey;
use crate::protocol::hello::{Hello, WATCHER};

/// The kernel's probes of a silent host: the time to the first, the time between two, and the number without
/// an answer after which the connection counts as broken.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(5), 4);

/// Connects to the rendezvous of this job, if `target` is that. The connection says nothing more; it
/// ends with the rendezvous, or when the host there has not answered the kernel for half a minute.
pub(super) fn connect(
    target: SocketAddr,
    size: u32,
    key: JobKey,
    limit: Duration,
) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, limit)?;
    let rank = WATCHER;
    let wrong = |what: String| Error::new(ErrorKind::InvalidData, what);
    authenticate(&stream, Hello { rank, size, key }, limit, limit).map_err(
        |attempt| match attempt {
            JoinFailure::Failed(error) | JoinFailure::NoRoute(error) => error,
            JoinFailure::Refused(why) => wrong(why),
            JoinFailure::Unproven => {
                wrong("what listens there is not this job's rendezvous".to_owned())
            }
            JoinFailure::Foreign(error) => wrong(error.to_string()),
        },
    )?;
    let (first, every, count) = KEEPALIVE;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, first)?;
    sockopt::set_tcp_keepintvl(&stream, every)?;
    sockopt::set_tcp_keepcnt(&stream, count)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::hub::HubListener;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn only_this_jobs_rendezvous_is_watched_and_its_end_is_seen() {
        let key = JobKey::random().unwrap();
        let listener = HubListener::bind("127.0.0.1:0".parse().unwrap(), "").unwrap();
        let target = listener.address();
        let hub = listener.serve(2, key).unwrap();
        let other = JobKey::random().unwrap();
        let error = connect(target, 2, other, LIMIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);

        let mut stream = connect(target, 2, key, LIMIT).unwrap();
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        drop(hub);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}
