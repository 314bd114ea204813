use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};

use super::*;
use crate::protocol::{Channel, Frame, HEADER_BYTES, Hello};
use crate::{Bootstrap, PeerExit, TcpBootstrap};

const PATIENCE: Duration = Duration::from_secs(30);

fn listener() -> HubListener {
    HubListener::bind("127.0.0.1:0".parse().unwrap(), "").unwrap()
}

/// A connection that says what a PE says first, without waiting for an answer.
fn say_hello(address: SocketAddr, hello: Hello) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&hello.encode()).unwrap();
    stream
}

/// Reads the first frame, which is to be the welcome.
fn read_welcome(stream: &mut TcpStream) {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).unwrap();
    assert_eq!(header[..], Frame::Welcome.encode()[..]);
}

#[test]
fn a_crowd_of_silent_strangers_pushes_out_no_pe() {
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let address = listener.address();
    let hello = |rank| Hello { rank, size: 2, key };
    // All are there before the rendezvous looks, so that it meets them at once.
    let mut first = say_hello(address, hello(0));
    let crowd: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut last = say_hello(address, hello(1));
    let _hub = listener.serve(2, key).unwrap();
    read_welcome(&mut first);
    read_welcome(&mut last);
    drop(crowd);
}

/// What launched the ranks may kill all, the rendezvous' process too, as soon as one has ended of an abort.
#[test]
fn what_an_abort_is_for_is_said_before_any_rank_hears_of_it() {
    static SAID: AtomicBool = AtomicBool::new(false);
    let (listener, key) = (listener(), JobKey::random().unwrap());
    let mut rank = say_hello(
        listener.address(),
        Hello {
            rank: 0,
            size: 1,
            key,
        },
    );
    let say = |notice: &AbortNotice| {
        assert_eq!(notice.status, 7);
        std::thread::sleep(Duration::from_millis(200));
        SAID.store(true, Ordering::Relaxed);
        true
    };
    let _hub = listener.start(1, key, say).unwrap();
    read_welcome(&mut rank);
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
    let _hub = listener.start(3, key, say).unwrap();
    let mut ranks = [0, 1, 2].map(|rank| say_hello(address, hello(rank)));
    ranks.iter_mut().for_each(read_welcome);
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
        let mut deaf = say_hello(address, hello(0));
        set_socket_recv_buffer_size(&deaf, 1 << 16).unwrap();
        read_welcome(&mut deaf);
        let mut sender = say_hello(address, hello(1));
        read_welcome(&mut sender);
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
    trio.sender
        .write_all(&message(crate::MAX_MESSAGE_BYTES))
        .unwrap();
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
    // What the rendezvous had passed on before would come before this.
    trio.watcher.send(2, &[1]).unwrap();
    assert_eq!(messages.recv_timeout(PATIENCE).unwrap(), (2, vec![1]));
}
