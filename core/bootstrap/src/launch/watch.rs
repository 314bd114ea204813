//! An agent's connection to the rendezvous: finds out where that is, and that it is gone.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt;

use crate::client::{Attempt, introduce};
use crate::job_key::JobKey;
use crate::protocol::{Hello, WATCHER};

/// When the kernel asks whether the silent other host is there: first after, then every, and how
/// often without an answer before the connection counts as broken.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(5), 4);

/// Connects to the rendezvous of this job, if `target` is that. The connection says nothing more; it
/// ends with the rendezvous, or when the host there has not answered the kernel for half a minute.
pub(super) fn watch(
    target: SocketAddr,
    size: u32,
    key: JobKey,
    limit: Duration,
) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, limit)?;
    let rank = WATCHER;
    let wrong = |what: String| Error::new(ErrorKind::InvalidData, what);
    introduce(&stream, Hello { rank, size, key }, limit, limit).map_err(
        |attempt| match attempt {
            Attempt::Failed(error) | Attempt::NoRoute(error) => error,
            Attempt::Refused(why) => wrong(why),
            Attempt::Unproven => {
                wrong("what listens there is not this job's rendezvous".to_owned())
            }
            Attempt::Foreign(error) => wrong(error.to_string()),
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
        let error = watch(target, 2, other, LIMIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);

        let mut stream = watch(target, 2, key, LIMIT).unwrap();
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        drop(hub);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}
