//! The rendezvous against ranks and other programs that this process plays itself.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};

use super::*;
use crate::bootstrap::{Bootstrap, PeerExit};
use crate::client::TcpBootstrap;
use crate::client::connect::{JoinFailure, authenticate};
use crate::handshake::{self, Role};
use crate::limits::MAX_MESSAGE_BYTES;
use crate::protocol::frame::{Channel, Frame, HEADER_BYTES, Kind};
use crate::protocol::hello::{HELLO_BYTES, Hello, NONCE_BYTES, Nonce, PROOF_BYTES, WATCHER};
use crate::protocol::parser::FrameParser;

const PATIENCE: Duration = Duration::from_secs(30);

fn listener() -> HubListener {
    HubListener::bind("127.0.0.1:0".parse().unwrap(), "").unwrap()
}

/// A connection that has said its hello and nothing else.
fn say_hello(address: SocketAddr, hello: Hello) -> (TcpStream, [u8; HELLO_BYTES]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let opening = hello.encode(&handshake::nonce().unwrap());
    stream.write_all(&opening).unwrap();
    (stream, opening)
}

/// A connection of a rank that has been let in.
fn join_as(address: SocketAddr, hello: Hello) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    authenticate(&stream, hello, PATIENCE, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reports aborts so; its owner takes the warnings.
fn quiet(report_abort: fn(&AbortNotice) -> bool) -> Diagnostics {
    Diagnostics {
        report_abort,
        warn: None,
    }
}

/// Waits until `done`, at most so long as all else here.
fn wait_until(mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "not in time");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_crowd_of_strangers_keeps_no_pe_out_whatever_it_says() {
    raise_descriptor_limit();
    let key = JobKey::random().unwrap();
    let (rank, size) = (0, 1);
    let hello = Hello { rank, size, key };
    let whole = hello.encode(&[0; NONCE_BYTES]);
    // Silent; with a plausible beginning; with a whole hello, and so with a challenge.
    for words in [&whole[..0], &whole[..1], &whole] {
        let listener = listener();
        let address = listener.address();
        // All are there before the rendezvous looks, and each would be waited for.
        let crowd = (0..2000).map(|_| {
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.write_all(words).unwrap();
            stranger
        });
        let crowd: Vec<TcpStream> = crowd.collect();
        let _hub = listener.serve(1, key).unwrap();
        drop(join_as(address, hello));
        drop(crowd);
    }
}

#[test]
fn the_key_is_neither_sent_nor_shown() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let hello = Hello {
        rank: 0,
        size: 1,
        key,
    };
    let address = listener.address();
    let _hub = listener.serve(1, key).unwrap();
    let (mut stream, opening) = say_hello(address, hello);
    let mut challenge = vec![0; HEADER_BYTES + NONCE_BYTES + PROOF_BYTES];
    stream.read_exact(&mut challenge).unwrap();
    let shows = |bytes: &[u8]| bytes.windows(8).any(|part| key.bytes().starts_with(part));
    assert!(!shows(&opening) && !shows(&challenge));
}

#[test]
fn a_recorded_proof_is_of_no_use_again() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let hello = Hello {
        rank: 0,
        size: 2,
        key,
    };
    let address = listener.address();
    let hub = listener.serve(2, key).unwrap();
    let (mut first, opening) = say_hello(address, hello);
    let nonce = read_challenge(&mut first);
    let proof = handshake::prove(&key, Role::Pe, &opening, &nonce);
    // The same hello and the same proof, on a connection of their own.
    let mut replay = TcpStream::connect(address).unwrap();
    replay.set_read_timeout(Some(PATIENCE)).unwrap();
    replay.write_all(&opening).unwrap();
    assert_ne!(read_challenge(&mut replay), nonce);
    replay.write_all(&proof).unwrap();
    assert!(matches!(read_frame(&mut replay), Frame::Refusal(why) if why.contains("job key")));
    // On its own connection it is right.
    first.write_all(&proof).unwrap();
    assert_eq!(read_frame(&mut first), Frame::Welcome);
    wait_until(|| {
        hub.take_warnings()
            .iter()
            .any(|line| line.contains("same OXSHMEM_JOB_KEY"))
    });
}

#[test]
fn wrong_keys_are_a_few_warnings_and_a_count() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hub = listener.serve(1, key).unwrap();
    let wrong = Hello {
        rank: 0,
        size: 1,
        key: JobKey::random().unwrap(),
    };
    for _ in 0..100 {
        let (mut stream, _) = say_hello(address, wrong);
        read_challenge(&mut stream);
        stream.write_all(&[0; PROOF_BYTES]).unwrap();
        assert!(matches!(read_frame(&mut stream), Frame::Refusal(_)));
    }
    let lines = hub.take_warnings();
    assert_eq!(lines.len(), 12, "{lines:?}");
    assert!(
        lines[11].contains("refused 100 connections so far"),
        "{lines:?}"
    );
}

#[test]
fn a_pe_with_another_key_and_the_rendezvous_both_tell_of_it() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hub = listener.serve(1, key).unwrap();
    let other = JobKey::random().unwrap();
    let refused = TcpBootstrap::connect(&address.to_string(), 0, 1, other, PATIENCE).unwrap_err();
    assert!(
        matches!(refused, Error::Unproven { rank: 0, .. }),
        "{refused}"
    );
    wait_until(|| {
        hub.take_warnings()
            .iter()
            .any(|line| line.contains("same OXSHMEM_JOB_KEY"))
    });
}

#[test]
fn nobody_listens_when_all_have_joined_or_ended() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hello = |rank| Hello { rank, size: 3, key };
    let hub = listener.serve(3, key).unwrap();
    let _first = join_as(address, hello(0));
    let _second = join_as(address, hello(1));
    // One is missing.
    drop(TcpStream::connect(address).unwrap());
    hub.process_ended(2);
    wait_until(|| TcpStream::connect(address).is_err());
}

#[test]
fn a_watcher_that_hung_up_is_forgotten() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hub = listener.serve(2, key).unwrap();
    let watcher = Hello {
        rank: WATCHER,
        size: 2,
        key,
    };
    // There is room for two at a time.
    for _ in 0..20 {
        wait_until(|| {
            let stream = TcpStream::connect(address).unwrap();
            authenticate(&stream, watcher, PATIENCE, PATIENCE).is_ok()
        });
    }
    let [_first, _second] = [0; 2].map(|_| {
        let mut joined = None;
        wait_until(|| {
            let stream = TcpStream::connect(address).unwrap();
            joined = authenticate(&stream, watcher, PATIENCE, PATIENCE)
                .is_ok()
                .then_some(stream);
            joined.is_some()
        });
        joined
    });
    let stream = TcpStream::connect(address).unwrap();
    assert!(matches!(
        authenticate(&stream, watcher, PATIENCE, PATIENCE),
        Err(JoinFailure::Refused(_))
    ));
    drop(hub);
}

#[test]
fn a_rank_that_takes_no_answers_is_dropped() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hub = listener.serve(1, key).unwrap();
    let mut rank = join_as(
        address,
        Hello {
            rank: 0,
            size: 1,
            key,
        },
    );
    // Each answer is as long as its question, and too short to be packed.
    let enter = |sequence| {
        let (kind, deadline) = (Kind::Allgather, PATIENCE);
        let bytes = vec![7; 512 << 10];
        Frame::Enter {
            sequence,
            kind,
            deadline,
            bytes,
        }
        .encode()
    };
    let written = (0..100).take_while(|number| rank.write_all(&enter(*number)).is_ok());
    assert!(written.count() < 100);
    wait_until(|| {
        hub.take_warnings()
            .iter()
            .any(|line| line.contains("taking their answers"))
    });
    wait_until(|| hub.lost() == [0]);
}

/// Unpacking comes before a look at who sent it, otherwise.
#[test]
fn frames_that_only_the_rendezvous_sends_are_refused_by_their_headers() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hub = listener.serve(2, key).unwrap();
    let mut rank = join_as(
        address,
        Hello {
            rank: 0,
            size: 2,
            key,
        },
    );
    // A packed result whose body never comes.
    rank.write_all(&[0, 0, 1, 0, 10]).unwrap();
    wait_until(|| {
        hub.take_warnings()
            .iter()
            .any(|line| line.contains("kind 10"))
    });
    wait_until(|| hub.lost() == [0]);
}

/// Reads one whole frame.
fn read_frame(stream: &mut TcpStream) -> Frame {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).unwrap();
    let [a, b, c, d, _] = header;
    let mut body = vec![0; u32::from_le_bytes([a, b, c, d]) as usize];
    stream.read_exact(&mut body).unwrap();
    let mut parser = FrameParser::default();
    parser.push(&header);
    parser.push(&body);
    parser.next().unwrap().unwrap()
}

/// The rendezvous' nonce.
fn read_challenge(stream: &mut TcpStream) -> Nonce {
    match read_frame(stream) {
        Frame::Challenge { nonce, .. } => nonce,
        other => panic!("{other:?}"),
    }
}

/// The launcher may kill all ranks, the rendezvous' process too, as soon as one has ended of an abort.
#[test]
fn what_an_abort_is_for_is_said_before_any_rank_hears_of_it() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let say = |notice: &AbortNotice| {
        assert_eq!(notice.status, 7);
        std::thread::sleep(Duration::from_millis(200));
        SAID.store(true, Ordering::Relaxed);
        true
    };
    let _hub = listener.start(1, key, quiet(say)).unwrap();
    let hello = Hello {
        rank: 0,
        size: 1,
        key,
    };
    let mut rank = join_as(address, hello);
    let abort = Frame::Abort {
        by: 0,
        status: 7,
        why: "the test".into(),
    }
    .encode();
    rank.write_all(&abort).unwrap();
    let mut heard = vec![0; abort.len()];
    rank.read_exact(&mut heard).unwrap();
    assert_eq!(heard, abort);
    assert!(SAID.load(Ordering::Relaxed));
}

fn wait_for(flag: &AtomicBool) {
    let since = std::time::Instant::now();
    while !flag.load(Ordering::Acquire) {
        assert!(since.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

/// The rendezvous writes to a rank whose connection was reset before it has read that rank's goodbye.
#[test]
fn a_goodbye_before_a_reset_is_heeded_though_a_write_meets_the_reset_first() {
    static BUSY: AtomicBool = AtomicBool::new(false);
    static GO_ON: AtomicBool = AtomicBool::new(false);
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hello = |rank| Hello { rank, size: 3, key };
    // The rendezvous' thread is in here until the goodbye and the reset have come.
    let say = |_: &AbortNotice| {
        BUSY.store(true, Ordering::Release);
        wait_for(&GO_ON);
        true
    };
    let _hub = listener.start(3, key, quiet(say)).unwrap();
    let ranks = [0, 1, 2].map(|rank| join_as(address, hello(rank)));
    let [mut aborts, mut leaves, mut watches] = ranks;
    let abort = Frame::Abort {
        by: 0,
        status: 7,
        why: "the test".into(),
    };
    aborts.write_all(&abort.encode()).unwrap();
    wait_for(&BUSY);
    leaves.write_all(&Frame::Leave.encode()).unwrap();
    set_socket_linger(&leaves, Some(Duration::ZERO)).unwrap();
    drop(leaves);
    GO_ON.store(true, Ordering::Release);
    let exit = Frame::Exit {
        rank: 1,
        orderly: true,
    };
    for expected in [abort, exit] {
        let expected = expected.encode();
        let mut heard = vec![0; expected.len()];
        watches.read_exact(&mut heard).unwrap();
        assert_eq!(heard, expected);
    }
}

/// Three ranks: a watcher with the exits that it hears of, one that reads nothing, and a sender.
struct Trio {
    watcher: TcpBootstrap,
    exits: Receiver<PeerExit>,
    _deaf: TcpStream,
    sender: TcpStream,
    hub: Hub,
}

impl Trio {
    fn new() -> Trio {
        let (listener, key) = (listener(), JobKey::random().unwrap());
        let address = listener.address();
        let hello = |rank| Hello { rank, size: 3, key };
        let hub = listener.serve(3, key).unwrap();
        let watcher = TcpBootstrap::connect(&address.to_string(), 2, 3, key, PATIENCE).unwrap();
        let (seen, exits) = channel();
        watcher
            .on_exit(Box::new(move |exit| seen.send(exit).unwrap_or(())))
            .unwrap();
        let deaf = join_as(address, hello(0));
        set_socket_recv_buffer_size(&deaf, 1 << 16).unwrap();
        let sender = join_as(address, hello(1));
        Trio {
            watcher,
            exits,
            _deaf: deaf,
            sender,
            hub,
        }
    }

    fn watch(&self) -> PeerExit {
        self.exits.recv_timeout(PATIENCE).unwrap()
    }
}

/// A message to the rank that reads nothing.
fn message(bytes: usize) -> Vec<u8> {
    Frame::Message {
        rank: 0,
        channel: Channel::User,
        bytes: vec![7; bytes],
    }
    .encode()
}

const DEATH: PeerExit = PeerExit {
    rank: 1,
    orderly: false,
};

#[test]
fn the_death_of_a_sender_that_is_held_back_is_told() {
    let mut trio = Trio::new();
    // The first is more than may wait, so the second holds its sender back.
    trio.sender.write_all(&message(MAX_MESSAGE_BYTES)).unwrap();
    trio.sender.write_all(&message(1)).unwrap();
    trio.sender.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(trio.watch(), DEATH);
}

#[test]
fn the_death_of_a_held_sender_with_more_on_its_way_is_told() {
    let mut trio = Trio::new();
    // Until its connection takes no more: its end then waits behind what it sent.
    trio.sender.set_nonblocking(true).unwrap();
    let message = message(1 << 20);
    let mut rest: &[u8] = &[];
    let patience = Timespec::try_from(Duration::from_millis(500)).unwrap();
    let room = |sender: &TcpStream| {
        let mut waits = [PollFd::new(sender, PollFlags::OUT)];
        poll(&mut waits, Some(&patience)).unwrap() > 0
    };
    while room(&trio.sender) {
        if rest.is_empty() {
            rest = &message;
        }
        rest = &rest[trio.sender.write(rest).unwrap()..];
    }
    trio.sender.shutdown(std::net::Shutdown::Both).unwrap();
    trio.hub.process_ended(1);
    assert_eq!(trio.watch(), DEATH);
}

#[test]
fn what_follows_a_frame_that_makes_no_sense_is_not_heeded() {
    let mut trio = Trio::new();
    let (heard, messages) = channel();
    trio.watcher
        .on_message(Box::new(move |from, bytes| {
            heard.send((from, bytes.to_vec())).unwrap_or(());
        }))
        .unwrap();
    let message = Frame::Message {
        rank: 2,
        channel: Channel::User,
        bytes: vec![7],
    };
    // At once, so that both are there when the first is looked at.
    let frames = [Frame::Welcome.encode(), message.encode()].concat();
    trio.sender.write_all(&frames).unwrap();
    assert_eq!(trio.watch(), DEATH);
    // A message that the rendezvous had forwarded before would come before this.
    trio.watcher.send(2, &[1]).unwrap();
    assert_eq!(messages.recv_timeout(PATIENCE).unwrap(), (2, vec![1]));
}
