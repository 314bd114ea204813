//! The exchange of descriptors against leaders and followers that this process plays itself.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// Rank 1 of two; tells when it is asked who has gone.
struct Pair {
    asked: Mutex<Sender<()>>,
    gone: Option<PeerExit>,
}

impl Peers for Pair {
    fn rank(&self) -> u32 {
        1
    }

    fn send_invitation(&self, to: u32, _: &[u8]) -> Result<()> {
        Err(Error::NoSuchRank { rank: to, size: 2 })
    }

    fn await_invitation(&self, from: u32, _: &CallId, _: Instant) -> Result<Invitation> {
        Err(Error::NoSuchRank {
            rank: from,
            size: 2,
        })
    }

    fn gone(&self, _: &[u32]) -> Option<PeerExit> {
        let _ = self.asked.lock().unwrap().send(());
        self.gone
    }
}

fn call() -> CallId {
    CallId {
        list: vec![0, 1],
        count: 0,
    }
}

/// A socket whose queue of connections is full, its invitation, and the connections.
fn full_queue() -> (OwnedFd, Invitation, Vec<OwnedFd>) {
    let invitation = Invitation {
        call: call(),
        name: *JobKey::random().unwrap().bytes(),
        key: JobKey::random().unwrap(),
    };
    let address = abstract_address(&invitation.name).unwrap();
    let listener = new_socket().unwrap();
    bind(&listener, &address).unwrap();
    listen(&listener, 1).unwrap();
    let mut queued = Vec::new();
    loop {
        let socket = new_socket().unwrap();
        match connect(&socket, &address) {
            Ok(()) => queued.push(socket),
            Err(error) => {
                assert_eq!(error, rustix::io::Errno::AGAIN);
                return (listener, invitation, queued);
            }
        }
    }
}

#[test]
fn a_full_queue_of_connections_is_waited_for() {
    let (listener, invitation, queued) = full_queue();
    let (asked, asks) = channel();
    let peers = Pair {
        asked: Mutex::new(asked),
        gone: None,
    };
    let exchange = Exchange {
        peers: &peers,
        among: &[0, 1],
        call: call(),
        end: Instant::now() + PATIENCE,
    };
    std::thread::scope(|scope| {
        let visitor = scope.spawn(|| exchange.connect(0, &invitation));
        asks.recv_timeout(PATIENCE).expect("it met a full queue");
        for _ in &queued {
            accept_with(&listener, SocketFlags::CLOEXEC).unwrap();
        }
        visitor.join().unwrap().unwrap();
    });
}

#[test]
fn a_full_queue_is_not_waited_for_when_a_peer_has_gone() {
    let (_listener, invitation, _queued) = full_queue();
    let peers = Pair {
        asked: Mutex::new(channel().0),
        gone: Some(PeerExit {
            rank: 0,
            orderly: false,
        }),
    };
    let exchange = Exchange {
        peers: &peers,
        among: &[0, 1],
        call: call(),
        end: Instant::now() + PATIENCE,
    };
    let error = exchange.connect(0, &invitation).unwrap_err();
    assert!(matches!(error, Error::PeerGone { rank: 0, .. }), "{error}");
}

/// A socket's name is no secret: a stranger that comes and goes must not end the exchange.
#[test]
fn a_stranger_that_hangs_up_is_dropped() {
    let (asked, _asks) = channel();
    let peers = Pair {
        asked: Mutex::new(asked),
        gone: None,
    };
    let exchange = Exchange {
        peers: &peers,
        among: &[0, 1],
        call: call(),
        end: Instant::now() + PATIENCE,
    };
    let key = JobKey::random().unwrap();
    for is_own in [false, true] {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::SEQPACKET;
        let (socket, other) =
            rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        drop(other);
        let mut followers = [Follower {
            socket,
            is_own,
            announced: None,
            descriptors: Vec::new(),
        }];
        let heard = exchange.listen(0, &mut followers, &key);
        assert_eq!(heard.is_err(), is_own, "{heard:?}");
    }
}
