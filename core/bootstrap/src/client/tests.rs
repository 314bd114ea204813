//! The client against rendezvous and impostors that this process plays itself.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::handshake::{self, Role};
use crate::protocol::hello::{HELLO_BYTES, PROOF_BYTES};

const PATIENCE: Duration = Duration::from_secs(30);

/// A rendezvous' part of the handshake, under this key.
fn welcome(stream: &mut TcpStream, key: &JobKey) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).unwrap();
    let nonce = handshake::nonce().unwrap();
    let proof = handshake::prove(key, Role::Rendezvous, &hello, &nonce);
    let challenge = Frame::Challenge { nonce, proof };
    stream.write_all(&challenge.encode()).unwrap();
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).unwrap();
    assert!(handshake::is_proven(key, Role::Pe, &hello, &nonce, &proof));
    stream.write_all(&Frame::Welcome.encode()).unwrap();
}

/// A listener that does with one connection what `serve` does, and its address.
fn listen<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    (address, thread)
}

/// An impostor that listens first and can only make up its proof.
#[test]
fn an_impostor_is_not_taken_for_the_rendezvous_and_gets_no_proof() {
    let key = JobKey::random().unwrap();
    let (address, impostor) = listen(move |mut stream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut said = vec![0; HELLO_BYTES];
        stream.read_exact(&mut said).unwrap();
        let (nonce, proof) = ([1; 32], [2; PROOF_BYTES]);
        let challenge = Frame::Challenge { nonce, proof };
        let abort = Frame::Abort {
            by: 0,
            // Heeded, it would end these tests.
            status: 7,
            why: "the impostor says so".into(),
        };
        let frames = [challenge, Frame::Welcome, abort].map(|frame| frame.encode());
        stream.write_all(&frames.concat()).unwrap();
        stream.read_to_end(&mut said).unwrap_or_default();
        said
    });
    let error = TcpBootstrap::connect(&address, 1, 2, key, PATIENCE).unwrap_err();
    assert!(matches!(error, Error::Unproven { rank: 1, .. }), "{error}");
    let said = impostor.join().unwrap();
    assert_eq!(said[HELLO_BYTES..], [0; PROOF_BYTES], "no proof is given");
    let shows = said.windows(8).any(|part| key.bytes().starts_with(part));
    assert!(!shows, "the key is not sent");
}

/// An impostor that welcomes or refuses at once, as rendezvous once did.
#[test]
fn an_answer_without_proof_is_not_believed() {
    for answer in [Frame::Welcome, Frame::Refusal("\x1b[31mgo away".into())] {
        let answer = answer.encode();
        let (address, impostor) = listen(move |mut stream| {
            stream.read_exact(&mut [0; HELLO_BYTES]).unwrap();
            stream.write_all(&answer).unwrap();
        });
        let key = JobKey::random().unwrap();
        let error = TcpBootstrap::connect(&address, 1, 2, key, PATIENCE).unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{error}");
        assert!(!error.to_string().contains('\x1b'), "{error}");
        impostor.join().unwrap();
    }
}

/// Addresses of which the first is an impostor's and the second the rendezvous'.
#[test]
fn an_impostor_at_one_of_several_addresses_keeps_nobody_out() {
    let key = JobKey::random().unwrap();
    let (first, impostor) = listen(|mut stream| {
        stream.read_exact(&mut [0; HELLO_BYTES]).unwrap();
        let (nonce, proof) = ([1; 32], [2; PROOF_BYTES]);
        let challenge = Frame::Challenge { nonce, proof };
        stream.write_all(&challenge.encode()).unwrap();
    });
    let (second, rendezvous) = listen(move |mut stream| {
        welcome(&mut stream, &key);
        stream
    });
    let addresses = format!("{first},{second}");
    let pe = TcpBootstrap::connect(&addresses, 1, 2, key, PATIENCE).unwrap();
    impostor.join().unwrap();
    drop((rendezvous.join().unwrap(), pe));
}

/// A listener that takes the connection and says nothing is named as such.
#[test]
fn a_silent_listener_is_told_apart_from_a_busy_system() {
    let (address, silent) = listen(|stream| stream);
    let key = JobKey::random().unwrap();
    let error = TcpBootstrap::connect(&address, 1, 2, key, Duration::from_millis(50)).unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("listens there and does not answer"),
        "{words}"
    );
    drop(silent.join().unwrap());
}

/// A rendezvous that listens before any PE starts: no PE need wait for it to begin.
#[test]
fn a_closed_rendezvous_is_told_of_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let (rank, size, key) = (1, 2, JobKey::random().unwrap());
    let hello = Hello { rank, size, key };
    // With a retry this would last for ever.
    let deadline = Duration::from_secs(86400);
    let error = TcpBootstrap::new(&address, hello, deadline, Listens::Already, None).unwrap_err();
    assert!(error.to_string().contains("joined before"), "{error}");
}

/// More attempts than a time can be doubled.
#[test]
fn a_rendezvous_that_does_not_begin_is_asked_until_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let key = JobKey::random().unwrap();
    let deadline = Duration::from_secs(14);
    let error = TcpBootstrap::connect(&address, 1, 2, key, deadline).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().contains("--network host"), "{error}");
}

#[test]
fn losing_the_rendezvous_means_losing_every_peer() {
    let key = JobKey::random().unwrap();
    let (address, rendezvous) = listen(move |mut stream| {
        welcome(&mut stream, &key);
        stream
    });
    let pe = TcpBootstrap::connect(&address, 1, 3, key, PATIENCE).unwrap();
    drop(rendezvous.join().unwrap());
    let (seen, exits) = std::sync::mpsc::channel();
    pe.on_exit(Box::new(move |exit| seen.send(exit).unwrap_or(())))
        .unwrap();
    let lost = [0, 2].map(|_| exits.recv_timeout(PATIENCE).unwrap());
    assert_eq!(
        lost.map(|exit| (exit.rank, exit.orderly)),
        [(0, false), (2, false)]
    );
    let error = pe.barrier().unwrap_err();
    assert!(matches!(error, Error::HubLost { .. }), "{error}");
    assert!(pe.send(0, &[]).is_err());
}

/// Otherwise frames that the rendezvous sends meanwhile reset the connection, and a goodbye that was lost on its way is not
/// sent again.
#[test]
fn who_leaves_takes_what_comes_until_the_rendezvous_closes_the_connection() {
    let key = JobKey::random().unwrap();
    let (address, rendezvous) = listen(move |mut stream| {
        welcome(&mut stream, &key);
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
    let pe = TcpBootstrap::connect(&address, 0, 2, key, PATIENCE).unwrap();
    pe.leave();
    drop(pe);
    rendezvous.join().unwrap();
}

/// A rendezvous that does not close it keeps nobody for long.
#[test]
fn who_leaves_waits_for_no_rendezvous_that_is_stuck() {
    let key = JobKey::random().unwrap();
    let (address, rendezvous) = listen(move |mut stream| {
        welcome(&mut stream, &key);
        stream
    });
    let pe = TcpBootstrap::connect(&address, 0, 2, key, PATIENCE).unwrap();
    let stuck = rendezvous.join().unwrap();
    pe.leave();
    let since = Instant::now();
    drop(pe);
    assert!(since.elapsed() < PATIENCE);
    drop(stuck);
}
