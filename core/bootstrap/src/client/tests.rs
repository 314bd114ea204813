use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;
use crate::protocol::HELLO_BYTES;

const PATIENCE: Duration = Duration::from_secs(30);

/// Else what the rendezvous sends meanwhile resets the connection, and a goodbye that was lost on its way is not sent
/// again.
#[test]
fn who_leaves_takes_what_comes_until_the_rendezvous_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let rendezvous = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.read_exact(&mut [0; HELLO_BYTES]).unwrap();
        stream.write_all(&Frame::Welcome.encode()).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        assert_eq!(said, Frame::Leave.encode());
        let exit = Frame::Exit {
            rank: 1,
            orderly: true,
        };
        for _ in 0..2 {
            stream.write_all(&exit.encode()).unwrap();
            // A connection that refuses it says so soon.
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let key = JobKey::random().unwrap();
    let pe = TcpBootstrap::connect(&address, 0, 2, key, PATIENCE).unwrap();
    pe.leave();
    drop(pe);
    rendezvous.join().unwrap();
}

/// A rendezvous that does not close it keeps nobody for long.
#[test]
fn who_leaves_waits_for_no_rendezvous_that_is_stuck() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let rendezvous = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&Frame::Welcome.encode()).unwrap();
        stream
    });
    let key = JobKey::random().unwrap();
    let pe = TcpBootstrap::connect(&address, 0, 2, key, PATIENCE).unwrap();
    let stuck = rendezvous.join().unwrap();
    pe.leave();
    let since = Instant::now();
    drop(pe);
    assert!(since.elapsed() < PATIENCE);
    drop(stuck);
}
